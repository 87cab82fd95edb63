import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { findBlobHash } from '../../model/blob.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Collection } from '../../model/readable.ts'
import { readRecord } from '../../projections/read-records.ts'
import { findRenamedBlob } from '../../projections/resealed-blobs.ts'
import { canRead } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'

/** 409 where a collection holds something else than blobs. */
export function refuseOtherType({ name, collection_type: type }: Collection): void {
  if (type === 'blob') return
  throw new Fault('CONFLICT', {
    message: `Blobs cannot be stored in ${name}, which is of type ${type}; a first upload makes a collection of its own`,
  })
}

export type BlobRowPlace = { readonly collection: Collection; readonly id: string }

/**
 * Returns the row that this collection has of a blob, as it is stored, and the hash that names its file; 404 where it
 * has none. A blob that had this id before the encryption of its collection changed is at another address.
 */
export async function requireBlobRow(
  { caller, service: { database }, requestInfo }: Call<'database'>,
  tenant: Tenant,
  { collection, id }: BlobRowPlace,
): Promise<{ readonly sha256: string; readonly body: string }> {
  const { name, table, collection_type: type } = collection
  const sha256 = type === 'blob' ? findBlobHash(id) : undefined
  if (sha256 !== undefined) {
    const read = (key: string) => readRecord(database, { schema: tenant.schema, table, key })
    const { version } = await read(id)
    if (version !== undefined && !version.deleted) return { sha256, body: version.body }
    // The id is the hash of the bytes: who may not read them is not told that a guess of them is right.
    const mayRead = isOpen(tenant.data.catalog, collection) || canRead(caller, tenant.application)
    const now = mayRead ? await findRenamed(database, tenant, { collection, id }) : undefined
    const found = now === undefined ? undefined : (await read(now)).version
    if (now !== undefined && found?.deleted === false)
      throw makeMovedFault(requestInfo.url.replace(id, now), now)
  }
  throw new Fault('BLOB_NOT_FOUND', { message: `There is no blob ${id} in ${name}` })
}

/** Finds the id that a blob has now; undefined where none of this collection has had this one. */
async function findRenamed(
  database: Database,
  { schema, sealer, data }: Tenant,
  { collection, id }: BlobRowPlace,
): Promise<string | undefined> {
  const { id: owner, table } = collection
  if (!data.catalog.resealings.has(owner)) return undefined
  const names = isEncrypted(collection) ? await sealer.listFormerNames(collection, [id]) : [id]
  const [former = id] = names
  return findRenamedBlob(database, schema, { collection: owner, table, former })
}

/** Nobody keeps the redirection: after the next change of encryption it would lead to an address that is gone. */
function makeMovedFault(location: string, id: string): Fault {
  return new Fault('BLOB_MOVED', {
    details: { blob_id: id },
    headers: { location, 'cache-control': 'no-store' },
  })
}
