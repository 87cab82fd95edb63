import { limits } from '@tollbase/contract/limits'
import { dayMs } from '../../../base/durations.ts'
import type { BlobStore } from '../../../blobs/blob-store.ts'
import { findSizeAt } from '../../../chain/find-size.ts'
import type { Database } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { ApplicationRecord } from '../../../model/application.ts'
import { getSchemaName } from '../../applications/tenants.ts'

/**
 * Reads what an application keeps and pays for: the bytes of its log that are older than the free days, and of its
 * files. The application need not be open.
 */
export async function readStoredBytes(
  { database, files }: { readonly database: Database; readonly files: Pick<BlobStore, 'list'> },
  { number }: ApplicationRecord,
  nowMs: number,
): Promise<bigint> {
  const schema = getSchemaName(number)
  const time = nowMs - limits.retentionFreeDays * dayMs
  let bytes = await sumLogBytes(database, { schema, time })
  for await (const { size } of files.list(number)) bytes += BigInt(size)
  return bytes
}

/** The blocks that one statement measures, so that none comes near its time limit however long the log is. */
const pageBlocksDefault = 10_000

/** Sums the bytes of the blocks that were made before a time, milliseconds since 1970. */
export async function sumLogBytes(
  database: Database,
  {
    schema,
    time,
    pageBlocks = pageBlocksDefault,
  }: { readonly schema: string; readonly time: number; readonly pageBlocks?: number },
): Promise<bigint> {
  const [table] = await database.query<{ found: boolean }>(
    sql`SELECT to_regclass(${`${schema}.block`}) IS NOT NULL AS found`,
  )
  if (table?.found !== true) return 0n
  const blocks = sql.id(schema, 'block')
  const [head] = await database.query<{ height: bigint }>(
    sql`SELECT coalesce(max(height), 0)::int8 AS height FROM ${blocks}`,
  )
  const height = Number(head?.height ?? 0)
  const size = await findSizeAt(database, { schema, height, time })
  let bytes = 0n
  for (let after = 0; after < height; after += pageBlocks) {
    const [page] = await database.query<{ bytes: string }>(sql`
      SELECT coalesce(sum(octet_length(body)), 0)::text AS bytes FROM ${blocks}
      WHERE height > ${after}::int8 AND height <= ${after + pageBlocks}::int8 AND first_leaf < ${size}::int8`)
    bytes += BigInt(page?.bytes ?? 0)
  }
  return bytes
}
