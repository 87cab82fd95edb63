import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { Turn } from '../../base/semaphore.ts'
import type { Database } from '../../database/database.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import {
  type AsOfRow,
  type HistoryRow,
  printHistoryQuery,
  readRecord,
  type Version,
} from '../../projections/read-records.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { runRead } from '../reading/run-query.ts'

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

/** All versions of a record, as they were sent, oldest first; RESULT_TOO_LARGE where one answer cannot have them. */
export async function readOpenedHistory(
  { queryRunner }: Uses<'queryRunner'>,
  tenant: Tenant,
  { collection, key, turn }: RecordName & { readonly turn: Turn },
): Promise<{ readonly asOf: AsOfRow; readonly versions: readonly Version[] }> {
  const [stored = key] = await listStoredKeys(tenant, collection, [key])
  const place = { schema: tenant.schema, table: collection.table, key: stored }
  const bounds = { rowsMax: limits.rowsMax, bytesMax: limits.resultBytesMax }
  const statement = printHistoryQuery(place, bounds)
  const rows = await runRead<HistoryRow>(queryRunner, statement, { isHeavy: false, turn })
  const asOf = requirePresent(rows[0], 'the watermark')
  if (asOf.over)
    throw new Fault('RESULT_TOO_LARGE', {
      message: `The record has more than ${limits.rowsMax} versions, or ${limits.resultBytesMax} bytes of them; GET .../collections/${collection.name}/changes gives all in pages`,
    })
  const named = rows.flatMap((row) =>
    row.leaf === null ? [] : [{ ...row, leaf: row.leaf, key: stored }],
  )
  return { asOf, versions: await openVersions(tenant, collection, named) }
}
