import { createHash } from 'node:crypto'
import type { Applier } from '../../packages/server/src/chain/applier.ts'
import {
  buildChainTables,
  buildLeaseSizeColumns,
  buildLeaseTables,
} from '../../packages/server/src/chain/tables.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'

export const logSchema = 'app_1'
export const emptyDigest = Buffer.alloc(32)

/** Extends a hash over all bodies so far, in their order. */
export function extendDigest(digest: Buffer, bodies: readonly string[]): Buffer {
  let after = digest
  for (const body of bodies) after = createHash('sha256').update(after).update(body).digest()
  return after
}

/**
 * Creates an empty chain, and the table of its projection: how many entries were applied, and a hash over them in
 * order.
 */
export async function createLog(database: Database): Promise<void> {
  for (const statement of [...buildLeaseTables(), ...buildLeaseSizeColumns()])
    await database.execute(statement)
  await database.execute(sql`CREATE SCHEMA ${sql.id(logSchema)}`)
  for (const statement of buildChainTables(logSchema)) await database.execute(statement)
  await database.execute(
    sql`CREATE TABLE ${sql.id(logSchema, 'summary')} (count int8 NOT NULL, digest bytea NOT NULL)`,
  )
  await database.execute(
    sql`INSERT INTO ${sql.id(logSchema, 'summary')} (count, digest) VALUES (0, ${emptyDigest})`,
  )
}

/** Applying an entry twice, not at all, or in another order leaves another summary. */
export const summarize: Applier = {
  apply: async (tx, blocks) => {
    const table = sql.id(logSchema, 'summary')
    const bodies = blocks.flatMap(({ entries }) => entries.map(({ body }) => body))
    const [row] = await tx.query<{ digest: Buffer }>(sql`SELECT digest FROM ${table}`)
    const digest = extendDigest(row?.digest ?? emptyDigest, bodies)
    await tx.execute(sql`UPDATE ${table} SET count = count + ${bodies.length}, digest = ${digest}`)
    return undefined
  },
}
