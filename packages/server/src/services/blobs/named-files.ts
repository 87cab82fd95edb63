import type { Queryable } from '../../database/queryable.ts'
import { makeBlobId } from '../../model/blob.ts'
import { listLiveKeys } from '../../projections/read-records.ts'
import type { Tenant } from '../applications/tenants.ts'
import { listNamedByReplies } from '../payments/claims/reply-store.ts'

/** Those of an application's files that a row of a collection of blobs, or a bought answer, names. */
export async function listNamedFiles(
  database: Queryable,
  tenant: Tenant,
  hashes: readonly string[],
): Promise<readonly string[]> {
  const { data, schema, application } = tenant
  const found = await listNamedByReplies(database, { folder: application.number, hashes })
  const keys = new Map(hashes.map((sha256) => [makeBlobId(sha256), sha256]))
  for (const { collection_type: type, table } of data.catalog.byId.values()) {
    if (type !== 'blob') continue
    const live = await listLiveKeys(database, { schema, table, keys: [...keys.keys()] })
    for (const key of live) found.push(keys.get(key) ?? '')
  }
  return found
}

/** Returns whether blobs of an application are getting other files, which no row names yet. */
export function hasUnnamedFiles({ data: { catalog } }: Tenant): boolean {
  return [...catalog.resealings.values()].some(
    ({ collection, state }) =>
      state === 'copying' && catalog.byId.get(collection)?.collection_type === 'blob',
  )
}
