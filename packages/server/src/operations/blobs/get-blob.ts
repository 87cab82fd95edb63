import { makeGoneFault, type StoredFile } from '../../blobs/blob-shelf.ts'
import { HttpReply } from '../../http/reply.ts'
import { refuseRange } from '../../http/send-file.ts'
import { type BlobFacts, blobKey, parseBlobRow } from '../../model/blob.ts'
import { getDefinitionVersion } from '../../model/definition-version.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import { getReadPrice, isFree } from '../../model/find-price.ts'
import { makeMeasuredRead } from '../../model/measured-use.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Collection } from '../../model/readable.ts'
import { makeSourceName } from '../../model/source-names.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { computeSealedSize } from '../../sealing/segments.ts'
import type { Caller } from '../../services/access/access.ts'
import {
  type ReadableSource,
  refuseUnoffered,
  requireReadableCollection,
} from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { openSealedFile } from '../../services/blobs/sealed-blobs.ts'
import type { Call } from '../../services/call.ts'
import { openVersions } from '../../services/encryption/read-opened.ts'
import { encodeSoldFile, soldFileType } from '../../services/payments/replies/sold-file.ts'
import type { Operation } from '../operation.ts'
import { type BlobRowPlace, requireBlobRow } from './require-blobs.ts'

export const getBlob: Operation<'getBlob', 'database' | 'tenants' | 'payments' | 'blobs'> = async (
  call,
  { params },
) => {
  const tenant = await call.service.tenants.load(params.app)
  const { catalog } = tenant.data
  const { collection, free } = requireBlobSource(call.caller, tenant, params.collection)
  const { file, facts } = await requireBlob(call, tenant, { collection, id: params.blob })
  refuseRange(call.requestInfo.headers, facts)
  const isPriced = !isFree(getReadPrice(catalog, collection))
  if (!free && isPriced) return sellBlob(call, tenant, { collection, facts, file })
  const access = isPriced || !isOpen(catalog, collection) ? 'own' : 'public'
  return new HttpReply('', { file: { ...facts, access, read: file.read } })
}

/**
 * Sells the blob whole, whatever range of it is asked for: with the same payment its buyer gets the rest. Its size is
 * no secret, as the quote is made of it.
 */
function sellBlob(
  call: Call<'payments'>,
  tenant: Tenant,
  { collection, facts, file }: { collection: Collection; facts: BlobFacts; file: StoredFile },
): Promise<HttpReply> {
  const { app_id: appId, number: folder } = tenant.application
  const price = { ...getReadPrice(tenant.data.catalog, collection), emptyFree: false }
  const size = { rows: 1, bytes: facts.size }
  return call.service.payments.sell(call, {
    tenant,
    operation: 'getBlob',
    description: `A blob of ${appId}::${collection.name}, ${facts.size} bytes`,
    meaning: [getDefinitionVersion(tenant, collection), facts.sha256],
    payees: [
      {
        account: toApplicationAccount(appId),
        platformBasisPoints: 0,
        item: { kind: 'collection', name: collection.name },
      },
    ],
    pricedBy: [tenant],
    pricesNow: () => [price],
    mostUnder: () => [size],
    sellerUnder: () => appId,
    breakdownUnder: () => ({}),
    deliver: async ([one = price]) => {
      if (!(await file.isIntact())) throw makeGoneFault(facts.sha256, 'damaged')
      return {
        status: 200,
        body: encodeSoldFile({ folder, ...facts }),
        contentType: soldFileType,
        sizes: [size],
        measured: [makeMeasuredRead(one, size)],
        sources: [makeSourceName(appId, collection.id)],
        rows: 1,
        asOf: null,
      }
    },
  })
}

/** The collection if the caller may get blobs of it, free or by paying. */
export function requireBlobSource(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): ReadableSource<Collection> {
  const source = requireReadableCollection(caller, tenant, nameOrId)
  const used = { filter: [blobKey], sort: [], select: [] }
  if (!source.free) refuseUnoffered(source.collection, used, false)
  return source
}

/** Finds a blob by the row that this collection has of it, and its file. */
async function requireBlob(
  call: Call<'database' | 'blobs'>,
  tenant: Tenant,
  place: BlobRowPlace,
): Promise<{ readonly file: StoredFile; readonly facts: BlobFacts }> {
  const { sha256, body } = await requireBlobRow(call, tenant, place)
  const { collection, id: key } = place
  const find = async (size: number) => {
    const file = await call.service.blobs.store.find(
      { folder: tenant.application.number, sha256 },
      size,
    )
    if (file === undefined) throw makeGoneFault(sha256, 'missing')
    return file
  }
  if (!isEncrypted(collection)) {
    const facts = { ...parseBlobRow(body), sha256 }
    return { file: await find(facts.size), facts }
  }
  const sealed = { key, body }
  const [row = sealed] = await openVersions(tenant, collection, [sealed])
  const facts = { ...parseBlobRow(row.body), sha256 }
  const sealing = await tenant.sealer.openFileSealing(collection, sealed)
  const file = await find(computeSealedSize(facts.size))
  return { file: openSealedFile(file, sealing, facts), facts }
}
