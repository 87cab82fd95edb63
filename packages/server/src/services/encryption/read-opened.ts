import type { Database, Queryable } from '../../database/database.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import { readHistory, readRecord } from '../../projections/read-records.ts'
import type { Tenant } from '../applications/tenants.ts'

type RecordName = { readonly collection: Collection; readonly key: string }

/** The names that records of these keys have in the collection's table. */
export function listStoredKeys(
  { sealer }: Tenant,
  collection: Collection,
  keys: readonly string[],
): Promise<string[]> {
  return isEncrypted(collection) ? sealer.listTokens(collection, keys) : Promise.resolve([...keys])
}

/** Versions of a collection as they were sent: those of an encrypted one are opened. */
export function openVersions<T extends { readonly key: string; readonly body: string }>(
  { sealer }: Tenant,
  collection: Collection,
  versions: readonly T[],
): Promise<readonly T[]> {
  return isEncrypted(collection) ? sealer.open(collection, versions) : Promise.resolve(versions)
}

/** The newest version of a record, as it was sent, with the watermark of the same snapshot. */
export async function readOpened(
  database: Pick<Database, 'queryShort'>,
  tenant: Tenant,
  { collection, key }: RecordName,
): Promise<Awaited<ReturnType<typeof readRecord>>> {
  const [stored = key] = await listStoredKeys(tenant, collection, [key])
  const place = { schema: tenant.schema, table: collection.table, key: stored }
  const { asOf, version } = await readRecord(database, place)
  const named = version === undefined ? [] : [{ ...version, key: stored }]
  const [opened] = await openVersions(tenant, collection, named)
  return { asOf, version: opened }
}

/** All versions of a record, as they were sent, oldest first. */
export async function readOpenedHistory(
  database: Queryable,
  tenant: Tenant,
  { collection, key }: RecordName,
): Promise<Awaited<ReturnType<typeof readHistory>>> {
  const [stored = key] = await listStoredKeys(tenant, collection, [key])
  const place = { schema: tenant.schema, table: collection.table, key: stored }
  const { asOf, versions } = await readHistory(database, place)
  const named = versions.map((version) => ({ ...version, key: stored }))
  return { asOf, versions: [...(await openVersions(tenant, collection, named))] }
}
