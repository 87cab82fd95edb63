import { makeInvalidFault } from '../../base/fault.ts'
import { type JsonBody, parseJsonBytes } from '../../base/json-body.ts'
import { listItemTexts } from '../../base/json-text.ts'
import { refuseUnknown } from '../../base/known-members.ts'
import type { Admit } from '../../blobs/blob-store.ts'
import type { HttpReply } from '../../http/reply.ts'
import { type Form, readForm } from '../../http/upload.ts'
import { type BlobFacts, makeBlobRow } from '../../model/blob.ts'
import { EncryptionChanged, isEncrypted } from '../../model/encrypted-collections.ts'
import { getWritePrice, isFree } from '../../model/price.ts'
import { refuseOverQuota } from '../../model/quota.ts'
import type { FileSealing } from '../../sealing/segments.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { type ReceivedBlob, takeBlob } from '../../services/blobs/sealed-blobs.ts'
import type { Call } from '../../services/call.ts'
import { ensureCollection } from '../../services/collections/new-collection.ts'
import { findEarlierReply } from '../../services/payments/replies/earlier-reply.ts'
import { sellWrite } from '../../services/payments/sell-write.ts'
import { hasPayment, proofMembers } from '../../services/payments/settling/presented-payment.ts'
import {
  makePreparer,
  type PreparedRecord,
  type RecordShape,
} from '../../services/records/prepare-records.ts'
import type { Operation } from '../operation.ts'
import { refuseOtherType } from './require-blobs.ts'
import { storeBlobRow } from './store-blob-row.ts'

type Parts = 'world' | 'database' | 'tenants' | 'payments' | 'ticketKey' | 'blobs'

/** A blob that has arrived, and its row. */
type Upload = {
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

export const uploadBlob: Operation<'uploadBlob', Parts> = async (call, { params, query }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const findKnown = () => tenant.data.catalog.byName.get(params.collection)
  const known = findKnown()
  if (known !== undefined) refuseOtherType(known)
  const isSealed = willBeEncrypted(tenant, params.collection)
  const sealing = isSealed ? tenant.sealer.makeFileSealing() : undefined
  const leave = service.blobs.uploads.occupy(params.app)
  try {
    const form = await receive(call, sealing)
    const { blob } = form.taken
    try {
      refuseUnknown(knownFields, Object.fromEntries(form.fields), '')
      // As it is by now: the body may have taken minutes.
      const shape = findKnown() ?? { primary_column: 'blob_id', schema_definition: null }
      const record = await prepareRow(call, form, shape)
      const wait = query.wait === true
      return await sellUpload(
        call,
        { tenant, collection: params.collection, blob, sealing, record, shape, wait },
        form,
      )
    } finally {
      await blob.file.discard()
    }
  } finally {
    leave()
  }
}

/** The public clients send more beside the blob: a proof of payment, as they put it into a store too. */
const knownFields = {
  members: new Map([...['metadata'], ...proofMembers].map((name) => [name, undefined])),
}

type Received = { readonly blob: ReceivedBlob; readonly facts: BlobFacts }

function receive(
  { service, requestInfo }: Call<Parts>,
  sealing: FileSealing | undefined,
): Promise<Form<Received>> {
  const { store, bytesMax } = service.blobs
  return readForm(requestInfo, {
    world: service.world,
    file: 'blob',
    fileBytesMax: bytesMax,
    take: async ({ stream, contentType, filename }) => {
      const blob = await takeBlob(store, stream, sealing)
      const { size, file } = blob
      return { blob, facts: { sha256: file.sha256, size, contentType, filename } }
    },
    drop: ({ blob }) => blob.file.discard(),
  })
}

async function prepareRow(
  { service }: Call<'world'>,
  { taken, fields }: Form<Received>,
  shape: RecordShape,
): Promise<PreparedRecord> {
  const uploadedAt = new Date(service.world.now()).toISOString()
  const metadata = parseMetadata(fields.get('metadata'))
  const { contentSha256 } = taken.blob
  const text = makeBlobRow({ ...taken.facts, contentSha256, uploadedAt }, metadata)
  const prepare = makePreparer(shape, service.world)
  return prepare({
    value: JSON.parse(text),
    text,
    pointer: '/metadata',
    title: 'The row of the blob',
    details: {},
  })
}

/** Clients write '' for what they do not have. */
function parseMetadata(text: string | undefined): JsonBody {
  if (text === undefined || text.trim() === '') return { text: '{}', value: {} }
  const parsed = parseJsonBytes(Buffer.from(text))
  const [storable] = listItemTexts(`{"metadata":[${parsed.text}]}`, 'metadata')
  if (storable === undefined) throw makeInvalidFault('/metadata', 'must be a JSON object')
  return parsed
}

/** The file is there, durably, before its row is. */
async function store(
  call: Call<Parts>,
  { tenant, collection: name, blob, sealing, record, shape, wait }: Upload,
  paymentId?: string,
): Promise<HttpReply> {
  const { world } = call.service
  world.failpoint?.('blob.received')
  const isSealed = sealing !== undefined
  // Looked at before the bytes get their name: what is to be encrypted by now must come again.
  if (willBeEncrypted(tenant, name) !== isSealed) throw new EncryptionChanged()
  await blob.file.publish(tenant.application.number, (files) => refuseFull(call, tenant, files))
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

/** Says whether a blob of this collection is sealed now; one that is still to be made is as the application is. */
function willBeEncrypted({ data: { catalog } }: Tenant, name: string): boolean {
  const known = catalog.byName.get(name)
  return known === undefined ? catalog.encryption.private_app : isEncrypted(known)
}

/** Sells an upload by its size. Two requests are the same where blob, metadata and names are, whatever their form. */
async function sellUpload(
  call: Call<Parts>,
  upload: Upload,
  form: Form<Received>,
): Promise<HttpReply> {
  const { tenant, collection, blob, record, wait } = upload
  // An encrypted collection has no price, and what is sealed is named in nobody's receipt.
  if (upload.sealing !== undefined) return store(call, upload)
  const text = describeRequest(form)
  const body = { text, value: JSON.parse(text) }
  const requestInfo = { ...call.requestInfo, bodyBytes: Buffer.from(text), json: () => body }
  const asked = { ...call, requestInfo }
  const price = getWritePrice(tenant.data.catalog, tenant.data.catalog.byName.get(collection))
  // A payment that is under way may have written already, whatever the price is by now.
  if (isFree(price) && !hasPayment(asked)) return store(call, upload)
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
    run: (paymentId) => store(call, upload, paymentId),
  })
}

/** The request as a payment is bound to it: a client that repeats it makes a new boundary for the same parts. */
function describeRequest({ taken, fields }: Form<Received>): string {
  const { sha256, contentType, filename } = taken.facts
  const { metadata = null, ...proof } = Object.fromEntries(fields)
  return JSON.stringify({ blob: sha256, contentType, filename, metadata, ...proof })
}

/** The files of an application count to its quota beside its log. */
function refuseFull(
  { service }: Call<Parts>,
  { application, chain }: Tenant,
  files: Parameters<Admit>[0],
): void {
  const { entries, bytes } = chain.contents()
  const before = { entries, bytes: bytes + files.before }
  const after = { entries, bytes: before.bytes + files.more }
  const quota = service.tenants.getCurrentQuota(application.app_id)
  refuseOverQuota(quota, { before, after, isData: true })
}
