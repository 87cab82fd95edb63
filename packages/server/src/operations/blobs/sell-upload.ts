import { makeInvalidFault } from '../../base/fault.ts'
import { parseJsonBytes } from '../../base/json-body.ts'
import { toJsonSource } from '../../base/json-source.ts'
import { listItemTexts } from '../../base/json-text.ts'
import type { World } from '../../base/world.ts'
import type { RefuseOverQuota } from '../../blobs/blob-store.ts'
import type { HttpReply } from '../../http/reply.ts'
import { type BlobFacts, blobKey, makeBlobRow } from '../../model/blob.ts'
import { EncryptionChanged, isEncrypted } from '../../model/encrypted-collections.ts'
import { getWritePrice, isFree } from '../../model/find-price.ts'
import { refuseOverQuota } from '../../model/quota.ts'
import type { FileSealing } from '../../sealing/segments.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { hasUnnamedFiles } from '../../services/blobs/named-files.ts'
import { removeUnnamedFiles } from '../../services/blobs/remove-files.ts'
import type { ReceivedBlob } from '../../services/blobs/sealed-blobs.ts'
import type { Call, Uses } from '../../services/call.ts'
import { ensureCollection, refuseNewCollection } from '../../services/collections/new-collection.ts'
import { hasPayment } from '../../services/payments/presented/presented-payment.ts'
import { findEarlierReply } from '../../services/payments/replies/earlier-reply.ts'
import { sellWrite } from '../../services/payments/sell-write.ts'
import {
  makePreparer,
  type PreparedRecord,
  type RecordShape,
} from '../../services/records/prepare-records.ts'
import { refuseOtherType } from './require-blobs.ts'
import { storeBlobRow } from './store-blob-row.ts'

export type BlobParts =
  | 'world'
  | 'log'
  | 'database'
  | 'tenants'
  | 'payments'
  | 'ticketKey'
  | 'blobs'

/** A blob that has arrived, and its row. */
export type BlobUpload = {
  readonly tenant: Tenant
  readonly collection: string
  readonly blob: ReceivedBlob
  /** The key of its bytes, where its collection is encrypted. */
  readonly sealing: FileSealing | undefined
  readonly record: PreparedRecord
  /** The definition by which the record was checked. */
  readonly shape: RecordShape
  readonly wait: boolean
}

/** The shape that rows of a collection have now, also of one that is still to be made. */
export function findRowShape({ data }: Tenant, name: string): RecordShape {
  return data.catalog.byName.get(name) ?? { primary_column: blobKey, schema_definition: null }
}

/** Says whether a blob of this collection is sealed now; one that is still to be made is as the application is. */
export function isUploadSealed({ data: { catalog } }: Tenant, name: string): boolean {
  const known = catalog.byName.get(name)
  return known === undefined ? catalog.encryption.private_app : isEncrypted(known)
}

/** Prepares the row of a blob; 400 or 422 where the metadata cannot be a part of it. */
export async function prepareBlobRow(
  world: World,
  facts: BlobFacts & { readonly contentSha256: string; readonly metadata: string | undefined },
  shape: RecordShape,
): Promise<PreparedRecord> {
  const uploadedAt = new Date(world.now()).toISOString()
  const text = makeBlobRow({ ...facts, uploadedAt }, parseMetadata(facts.metadata))
  const prepare = makePreparer(shape, world)
  return prepare({
    value: JSON.parse(text),
    text,
    pointer: '/metadata',
    title: 'The row of the blob',
    details: {},
  })
}

/** Clients write '' for what they do not have. */
function parseMetadata(text: string | undefined): { text: string; value: unknown } {
  if (text === undefined || text.trim() === '') return { text: '{}', value: {} }
  const { value } = parseJsonBytes(Buffer.from(text))
  const [storable] = listItemTexts(toJsonSource(`{"metadata":[${text}]}`), 'metadata')
  if (storable === undefined) throw makeInvalidFault('/metadata', 'must be a JSON object')
  return { text, value }
}

/** Says whether an upload to this collection costs nothing now. */
export function isUploadFree({ data: { catalog } }: Tenant, name: string): boolean {
  return isFree(getWritePrice(catalog, catalog.byName.get(name)))
}

/** Sells an upload by its size, for the payment of the request `asked`, and stores it. */
export async function sellUpload(
  call: Call<BlobParts>,
  upload: BlobUpload,
  asked: Call<BlobParts>,
): Promise<HttpReply> {
  const { tenant, collection, blob, record, wait } = upload
  // An encrypted collection has no price, and what is sealed is named in nobody's receipt.
  if (upload.sealing !== undefined) return storeBlob(call, upload)
  // A payment that is under way may have written already, whatever the price is by now.
  if (isUploadFree(tenant, collection) && !hasPayment(asked)) return storeBlob(call, upload)
  const earlier = await findEarlierReply(asked)
  if (earlier !== undefined) return earlier
  return sellWrite(asked, {
    tenant,
    form: { operation: 'upload', rows: 1, wait },
    description: `Upload a blob of ${blob.size} bytes to ${tenant.application.app_id}::${collection}`,
    parts: [
      {
        collection,
        rows: 1,
        bytes: blob.size,
        records: [{ text: record.body, deleted: false, pointer: '/metadata' }],
      },
    ],
    run: (paymentId) => storeBlob(call, upload, paymentId),
  })
}

/**
 * Stores a blob. Where its collection has become encrypted meanwhile, the plain file must not stay for the hours in which
 * others that nobody names are collected.
 */
async function storeBlob(
  call: Call<BlobParts>,
  upload: BlobUpload,
  paymentId?: string,
): Promise<HttpReply> {
  try {
    return await publishBlob(call, upload, paymentId)
  } catch (error) {
    if (error instanceof EncryptionChanged) await takeBack(call.service, upload)
    throw error
  }
}

/** The file is there, durably, before its row is. */
async function publishBlob(
  call: Call<BlobParts>,
  { tenant, collection: name, blob, sealing, record, shape, wait }: BlobUpload,
  paymentId?: string,
): Promise<HttpReply> {
  const { service } = call
  const { world } = service
  world.failpoint?.('blob.received')
  const isSealed = sealing !== undefined
  // Looked at before the bytes get their name: what is to be encrypted by now must come again.
  if (isUploadSealed(tenant, name) !== isSealed) throw new EncryptionChanged()
  await blob.file.publish(tenant.application.number, (files) => refuseFull(service, tenant, files))
  world.failpoint?.('blob.published')
  const collection = await ensureCollection(world, tenant, {
    name,
    collection_type: 'blob',
    ...(paymentId !== undefined && { madeBy: paymentId }),
  })
  refuseOtherType(collection)
  if (isEncrypted(collection) !== isSealed) throw new EncryptionChanged()
  const row = { collection, record, shape, wait, verb: 'stored', paymentId } as const
  return storeBlobRow(call, tenant, { ...row, fileKey: sealing?.key })
}

/** A file that cannot be removed now is collected later. */
async function takeBack(
  { database, blobs, world, log }: Uses<'database' | 'blobs' | 'world' | 'log'>,
  { tenant, blob }: BlobUpload,
): Promise<void> {
  await blob.file.discard()
  const refuseNeeded = () => {
    if (hasUnnamedFiles(tenant)) throw new EncryptionChanged()
  }
  await removeUnnamedFiles({ database, blobs, world }, tenant, {
    hashes: [blob.file.sha256],
    refuseNeeded,
  }).catch((error: unknown) => {
    log.warn(
      { error, app: tenant.application.app_id },
      'the file of a refused upload stays until the collector finds it',
    )
  })
}

/**
 * Refuses before its bytes come an upload that has no place, whatever they are: its collection cannot be made, or its row
 * does not fit. The bytes themselves are judged when they are there, as they may be stored already.
 */
export function refuseWithoutPlace(
  { tenants }: Uses<'tenants'>,
  tenant: Tenant,
  collection: string,
): void {
  if (!tenant.data.catalog.byName.has(collection)) refuseNewCollection(tenant, collection, 0)
  tenants.refuseOverQuota(tenant, { entries: 1, bytes: 0 })
}

/**
 * The files of an application count to its quota beside its log. While the encryption of blobs changes, each counts in
 * one of its forms.
 */
export function refuseFull(
  { tenants }: Uses<'tenants'>,
  { application, chain, resealing }: Tenant,
  files: Parameters<RefuseOverQuota>[0],
): void {
  const { entries, bytes } = chain.contents()
  const doubled = [...resealing.values()].reduce((sum, { fileBytes }) => sum + fileBytes, 0)
  const before = { entries, bytes: bytes + files.before - doubled }
  const after = { entries, bytes: before.bytes + files.more }
  const quota = tenants.getCurrentQuota(application.app_id)
  refuseOverQuota(quota, { before, after, isData: true })
}
