import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

const table = sql.id('operations', 'scrub')

/** The chains of which entries were erased since the files of the database were last written anew. */
export function buildScrubTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      chain text NOT NULL, since int8 NOT NULL, newest int8 NOT NULL, CONSTRAINT scrub_pkey PRIMARY KEY (chain))`,
  ]
}

/** Notes, before it is done, that entries are erased; times are in milliseconds since 1970. */
export async function addScrubMark(database: Queryable, chain: string, now: number): Promise<void> {
  await database.execute(sql`
    INSERT INTO ${table} AS scrub (chain, since, newest) VALUES (${chain}, ${now}, ${now})
    ON CONFLICT (chain) DO UPDATE SET newest = greatest(scrub.newest, excluded.newest)`)
}

/** Chains with entries that were erased before a time. */
export async function listScrubMarks(database: Queryable, before: number): Promise<string[]> {
  const rows = await database.query<{ chain: string }>(
    sql`SELECT chain FROM ${table} WHERE since < ${before} ORDER BY chain`,
  )
  return rows.map(({ chain }) => chain)
}

/** Deletes the mark where nothing was erased from a time on; else it is as old as the newest of that. */
export async function deleteScrubMark(
  database: Queryable,
  chain: string,
  before: number,
): Promise<void> {
  await database.execute(sql`DELETE FROM ${table} WHERE chain = ${chain} AND newest < ${before}`)
  await database.execute(sql`UPDATE ${table} SET since = newest WHERE chain = ${chain}`)
}

/** Has the mark that a chain has wait as long as one that is new. */
export async function setScrubMark(database: Queryable, chain: string, now: number): Promise<void> {
  await database.execute(sql`UPDATE ${table} SET since = ${now} WHERE chain = ${chain}`)
}
