import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { resealedTable } from './reseal.ts'

// While the encryption of a collection of blobs changes, its two tables have the same leaves, and tell by them what
// became of each blob. Later the names that blobs had lead to those leaves.

/** The collection's own table, and the one that it will have. */
type Tables = { readonly from: string; readonly to: string }

/** The copy of the version that one of the page has replaced. */
export type EarlierCopy = {
  /** The id that its blob has still. */
  readonly key: string
  /** The id that it will have. */
  readonly id: string
  readonly deleted: boolean
  /** The row as it will be. */
  readonly body: string
}

/** Reads what became of the versions that those with these leaves have replaced, where they are copied. */
export function readEarlierCopies(
  database: Queryable,
  schema: string,
  { from, to, leaves }: Tables & { readonly leaves: readonly number[] },
): Promise<EarlierCopy[]> {
  return database.query(sql`
    SELECT before.key, copy.key AS id, copy.deleted, copy.body
    FROM ${sql.id(schema, from)} AS before
    JOIN ${sql.id(schema, to)} AS copy ON copy.leaf = before.leaf
    WHERE before.superseded_by = ANY(${[...leaves]}::int8[]) ORDER BY before.leaf`)
}

/** Those of the keys that have become the same blob as another one, which is not deleted. */
export async function listOtherHolders(
  database: Queryable,
  schema: string,
  { from, to, keys }: Tables & { readonly keys: readonly string[] },
): Promise<string[]> {
  if (keys.length === 0) return []
  const rows = await database.query<{ key: string }>(sql`
    SELECT DISTINCT own.key
    FROM ${sql.id(schema, from)} AS own
    JOIN ${sql.id(schema, to)} AS copy ON copy.leaf = own.leaf
    JOIN ${sql.id(schema, to)} AS same ON same.key = copy.key
    JOIN ${sql.id(schema, from)} AS holder ON holder.leaf = same.leaf
    WHERE own.key = ANY(${[...keys]}::text[]) AND holder.key <> own.key
      AND holder.superseded_by IS NULL AND NOT holder.deleted`)
  return rows.map(({ key }) => key)
}

/** Finds the id that a blob has, by a name that it had before the encryption of its collection changed. */
export async function findRenamedBlob(
  database: Queryable,
  schema: string,
  { collection, table, former }: Readonly<Record<'collection' | 'table' | 'former', string>>,
): Promise<string | undefined> {
  const [row] = await database.query<{ key: string }>(sql`
    SELECT version.key FROM ${sql.id(schema, resealedTable)} AS resealed
    JOIN ${sql.id(schema, table)} AS version ON version.leaf = resealed.leaf
    WHERE resealed.former = ${former} AND resealed.collection = ${collection}
    ORDER BY resealed.leaf DESC LIMIT 1`)
  return row?.key
}
