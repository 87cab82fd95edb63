import type { Database, Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

export type Version = {
  readonly leaf: bigint
  readonly height: bigint
  readonly sequence: number
  readonly deleted: boolean
  readonly body: string
}

export type RecordPlace = { readonly schema: string; readonly table: string; readonly key: string }

export type AsOfRow = { readonly as_of_height: bigint; readonly as_of_sequence: number }

/** The newest version of a record, with the watermark of the same snapshot. */
export async function readRecord(
  database: Pick<Database, 'queryShort'>,
  place: RecordPlace,
): Promise<{ asOf: AsOfRow; version: Version | undefined }> {
  const [row] = await database.queryShort<AsOfRow & Partial<Version> & { leaf: bigint | null }>(sql`
    SELECT mark.height AS as_of_height, mark.sequence AS as_of_sequence,
      live.leaf, live.height, live.sequence, live.deleted, live.body
    FROM ${sql.id(place.schema, 'watermark')} AS mark
    LEFT JOIN ${sql.id(place.schema, place.table)} AS live ON live.key = ${place.key} AND live.superseded_by IS NULL
    ORDER BY live.leaf DESC LIMIT 1`)
  if (row === undefined) throw new Error('the watermark is missing')
  const { leaf, height, sequence, deleted, body } = row
  const found =
    leaf !== null &&
    height !== undefined &&
    sequence !== undefined &&
    deleted !== undefined &&
    body !== undefined
  return { asOf: row, version: found ? { leaf, height, sequence, deleted, body } : undefined }
}

/** A row of a history: a version, or the watermark alone. `over` where there are more versions, or bytes, than asked. */
export type HistoryRow = AsOfRow &
  Omit<Version, 'leaf'> & { readonly leaf: bigint | null; readonly over: boolean }

/**
 * Prints a query for all versions of a record, oldest first, with the watermark of the same snapshot. No index has the
 * versions that were replaced, so it may take long.
 */
export function printHistoryQuery(
  { schema, table, key }: RecordPlace,
  { rowsMax, bytesMax }: { readonly rowsMax: number; readonly bytesMax: number },
): SqlStatement {
  return sql`
    WITH version AS (
      SELECT leaf, height, sequence, deleted, body FROM ${sql.id(schema, table)}
      WHERE key = ${key} ORDER BY leaf LIMIT ${rowsMax + 1}),
    size AS (SELECT count(*) > ${rowsMax} OR coalesce(sum(octet_length(body)), 0) > ${bytesMax} AS over FROM version)
    SELECT mark.height AS as_of_height, mark.sequence AS as_of_sequence, size.over,
      version.leaf, version.height, version.sequence, version.deleted, version.body
    FROM ${sql.id(schema, 'watermark')} AS mark CROSS JOIN size LEFT JOIN version ON NOT size.over
    ORDER BY version.leaf`
}

/** Prints a query for the newest version of a record whose text is a part of this one; it may take long, too. */
export function printVersionIn({ schema, table, key }: RecordPlace, text: string): SqlStatement {
  return sql`
    SELECT leaf, height, sequence, deleted, body FROM (
      SELECT leaf, height, sequence, deleted, body FROM ${sql.id(schema, table)}
      WHERE key = ${key} AND NOT deleted ORDER BY leaf DESC OFFSET 0) AS version
    WHERE position(body IN ${text}::text) > 0 LIMIT 1`
}

/** Those of the keys that have a live record. */
export async function listExistingKeys(
  database: Queryable,
  place: { schema: string; table: string; keys: readonly string[] },
): Promise<string[]> {
  const rows = await database.query<{ key: string }>(sql`
    SELECT key FROM ${sql.id(place.schema, place.table)}
    WHERE key = ANY(${place.keys}::text[]) AND superseded_by IS NULL`)
  return rows.map((row) => row.key)
}

/** Those of the keys that have a record which is not deleted. */
export async function listLiveKeys(
  database: Queryable,
  place: { schema: string; table: string; keys: readonly string[] },
): Promise<string[]> {
  const rows = await database.query<{ key: string }>(sql`
    SELECT key FROM ${sql.id(place.schema, place.table)}
    WHERE key = ANY(${place.keys}::text[]) AND superseded_by IS NULL AND NOT deleted`)
  return rows.map((row) => row.key)
}

/**
 * The newest versions of those of the records that are there, deleted ones too; undefined where they have more bytes
 * together than that.
 */
export async function readLatest(
  database: Queryable,
  place: { schema: string; table: string; keys: readonly string[]; bytesMax: number },
): Promise<{ key: string; deleted: boolean; body: string }[] | undefined> {
  const rows = await database.query<{ key: string; deleted: boolean; body: string | null }>(sql`
    SELECT key, deleted, CASE WHEN sum(octet_length(body)) OVER () <= ${place.bytesMax} THEN body END AS body
    FROM ${sql.id(place.schema, place.table)}
    WHERE key = ANY(${place.keys}::text[]) AND superseded_by IS NULL`)
  const read = rows.flatMap(({ body, ...row }) => (body === null ? [] : { ...row, body }))
  return read.length === rows.length ? read : undefined
}

/** Reads the keys of the versions with these leaves, as far as they are there. */
export async function readKeys(
  database: Queryable,
  place: { schema: string; table: string; leaves: readonly number[] },
): Promise<ReadonlyMap<number, string>> {
  const rows = await database.query<{ leaf: bigint; key: string }>(sql`
    SELECT leaf, key FROM ${sql.id(place.schema, place.table)}
    WHERE leaf = ANY(${[...place.leaves]}::int8[])`)
  return new Map(rows.map(({ leaf, key }) => [Number(leaf), key]))
}
