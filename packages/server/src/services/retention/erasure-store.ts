import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'erasure')

/** The progress of erasing the log's bytes of expired versions: up to and with the entry `expire` of this leaf. */
export function buildErasureTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      chain text NOT NULL, leaf int8 NOT NULL, CONSTRAINT erasure_pkey PRIMARY KEY (chain))`,
  ]
}

/** The leaf of the last entry `expire` that is carried out; -1 before the first. */
export async function readErased(database: Queryable, schema: string): Promise<number> {
  const [row] = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${table} WHERE chain = ${schema}`,
  )
  return Number(row?.leaf ?? -1)
}

export async function markErased(database: Queryable, schema: string, leaf: number): Promise<void> {
  await database.execute(sql`
    INSERT INTO ${table} AS erasure (chain, leaf) VALUES (${schema}, ${leaf})
    ON CONFLICT (chain) DO UPDATE SET leaf = greatest(erasure.leaf, excluded.leaf)`)
}
