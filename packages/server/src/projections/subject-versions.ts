import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { expiredTable, type ListedVersion } from './expiry.ts'

type Place = { readonly schema: string; readonly table: string }

/** Versions that one statement looks at: no index serves it, and a statement has some seconds. */
const searchedMax = 1_000

/** Lists the versions behind a leaf whose field has one of these values, given as JSON. */
export async function listVersionsOf(
  database: Queryable,
  { schema, table }: Place,
  {
    field,
    values,
    after: from,
  }: { readonly field: string; readonly values: readonly string[]; readonly after: number },
): Promise<number[]> {
  const found: number[] = []
  for (let after = from; ; ) {
    const rows = await database.query<{ leaf: bigint; isFound: boolean }>(sql`
      WITH page AS MATERIALIZED (
        SELECT leaf, coalesce(data -> ${field}::text = ANY(${[...values]}::text[]::jsonb[]), false) AS is_found
        FROM ${sql.id(schema, table)} WHERE leaf > ${after} ORDER BY leaf LIMIT ${searchedMax})
      SELECT leaf, is_found AS "isFound" FROM page
      WHERE is_found OR leaf = (SELECT max(leaf) FROM page) ORDER BY leaf`)
    const last = rows.at(-1)
    if (last === undefined) return found
    after = Number(last.leaf)
    for (const { leaf, isFound } of rows) if (isFound) found.push(Number(leaf))
  }
}

export type StoredPage = readonly (ListedVersion & { readonly body: string })[]

/** The versions behind a leaf: at most so many, and no more than some bytes unless the first alone has more. */
export async function readVersionPage(
  database: Queryable,
  { schema, table }: Place,
  { after, rows, bytes }: { readonly after: number; readonly rows: number; readonly bytes: number },
): Promise<StoredPage> {
  const found = await database.query<{ leaf: bigint; key: string; body: string }>(sql`
    SELECT leaf, key, body FROM (
      SELECT leaf, key, body, sum(octet_length(body)) OVER (ORDER BY leaf) - octet_length(body) AS before
      FROM (
        SELECT leaf, key, body FROM ${sql.id(schema, table)}
        WHERE leaf > ${after} ORDER BY leaf LIMIT ${rows}) AS page) AS sized
    WHERE before < ${bytes} ORDER BY leaf`)
  return found.map(({ leaf, key, body }) => ({ leaf: Number(leaf), key, body }))
}

/**
 * Adds to versions all versions that they replaced, however old, and the deletions of their records; returns those that
 * have not expired, oldest first. Without the replaced versions, a replay from a log that lacks the erased entries
 * would make older versions live again.
 */
export async function listWithReplaced(
  database: Queryable,
  { schema, table, hasExpired }: Place & { readonly hasExpired: boolean },
  leaves: readonly number[],
): Promise<ListedVersion[]> {
  const version = sql.id(schema, table)
  const isLeft: SqlStatement = hasExpired
    ? sql`NOT EXISTS (SELECT 1 FROM ${sql.id(schema, expiredTable)} AS expired WHERE expired.leaf = version.leaf)`
    : sql`true`
  const rows = await database.query<{ leaf: bigint; key: string }>(sql`
    WITH RECURSIVE leaving (leaf) AS (
      SELECT leaf FROM ${version} WHERE leaf = ANY(${[...leaves]}::int8[])
      UNION SELECT deletion.leaf FROM ${version} AS named
        JOIN ${version} AS deletion ON deletion.leaf = named.superseded_by AND deletion.deleted
        WHERE named.leaf = ANY(${[...leaves]}::int8[])
      UNION SELECT replaced.leaf FROM leaving
        JOIN ${version} AS replaced ON replaced.superseded_by = leaving.leaf)
    SELECT version.leaf, version.key FROM leaving JOIN ${version} AS version ON version.leaf = leaving.leaf
    WHERE ${isLeft} ORDER BY version.leaf`)
  return rows.map(({ leaf, key }) => ({ leaf: Number(leaf), key }))
}
