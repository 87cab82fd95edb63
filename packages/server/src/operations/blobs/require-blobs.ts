import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { findBlobHash } from '../../model/blob.ts'
import type { Collection } from '../../model/readable.ts'
import { readRecord } from '../../projections/read-records.ts'
import type { Tenant } from '../../services/applications/tenants.ts'

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
 * has none.
 */
export async function requireBlobRow(
  database: Database,
  { schema }: Pick<Tenant, 'schema'>,
  { collection, id }: BlobRowPlace,
): Promise<{ readonly sha256: string; readonly body: string }> {
  const { name, table, collection_type: type } = collection
  const sha256 = type === 'blob' ? findBlobHash(id) : undefined
  if (sha256 !== undefined) {
    const { version } = await readRecord(database, { schema, table, key: id })
    if (version !== undefined && !version.deleted) return { sha256, body: version.body }
  }
  throw new Fault('BLOB_NOT_FOUND', { message: `There is no blob ${id} in ${name}` })
}
