import { limits } from '@tollbase/contract/limits'
import type { Database } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

/** The index by which the live records of an encrypted collection are found by tokens of their fields. */
export function buildTokenIndex(schema: string, number: number): SqlStatement {
  return sql`
    CREATE INDEX IF NOT EXISTS ${sql.id(getTokenIndexName(number))} ON ${sql.id(schema, `c_${number}`)}
    USING gin ((data -> 'tokens')) WHERE superseded_by IS NULL`
}

export function dropTokenIndex(schema: string, number: number): SqlStatement {
  return sql`DROP INDEX IF EXISTS ${sql.id(schema, getTokenIndexName(number))}`
}

function getTokenIndexName(number: number): string {
  return `c_${number}_tokens`
}

export type SealedRow = { readonly leaf: bigint; readonly key: string; readonly body: string }

export type SealedPage = {
  readonly rows: readonly SealedRow[]
  /** There are more records, or bytes, than are opened at once; then there are no rows. */
  readonly isOver: boolean
  readonly position: { readonly height: bigint; readonly sequence: number; readonly size: bigint }
}

/**
 * The names by which records are looked up: tokens of their keys, or tokens of a field's values, where versions before
 * a leaf have none and come too.
 */
export type SealedNames =
  | { readonly keys: readonly string[] }
  | { readonly values: readonly string[]; readonly from: number }

type Row = { readonly leaf: bigint | null } & Omit<SealedRow, 'leaf'> & {
    readonly height: bigint
    readonly sequence: number
    readonly size: bigint
    readonly records: bigint | null
    readonly bytes: bigint | null
  }

/**
 * The envelopes of an encrypted collection, in the order of storing: of live records or, with history, of all
 * versions; of those with these names, or of all. The watermark is of the same snapshot.
 */
export async function readSealed(
  database: Pick<Database, 'queryHeavy'>,
  wanted: {
    readonly schema: string
    readonly table: string
    readonly history: boolean
    readonly names: SealedNames | undefined
    readonly signal: AbortSignal | undefined
  },
): Promise<SealedPage> {
  const { schema, history, names } = wanted
  const live = history ? sql`true` : sql`superseded_by IS NULL AND NOT deleted`
  const named = names === undefined ? sql`true` : buildNamed(names)
  const statement = sql`
    SELECT mark.height, mark.sequence, mark.leaf AS size, page.leaf, page.key,
      CASE WHEN page.records <= ${limits.openedRecordsMax} AND page.bytes <= ${limits.openedBytesMax}
        THEN page.body END AS body, page.records, page.bytes
    FROM ${sql.id(schema, 'watermark')} AS mark
    LEFT JOIN (
      SELECT leaf, key, body, count(*) OVER () AS records,
        (sum(octet_length(body)) OVER ())::int8 AS bytes
      FROM (
        SELECT leaf, key, body FROM ${sql.id(schema, wanted.table)}
        WHERE ${live} AND ${named} ORDER BY leaf LIMIT ${limits.openedRecordsMax + 1}) AS version
    ) AS page ON true
    WHERE mark.id = 1 ORDER BY page.leaf`
  const rows = await database.queryHeavy<Row>(statement, { signal: wanted.signal })
  const [first] = rows
  if (first === undefined) throw new Error('the watermark is missing')
  const isOver =
    Number(first.records ?? 0) > limits.openedRecordsMax ||
    Number(first.bytes ?? 0) > limits.openedBytesMax
  const { height, sequence, size } = first
  const found = rows.flatMap(({ leaf, key, body }) => (leaf === null ? [] : [{ leaf, key, body }]))
  return { rows: isOver ? [] : found, isOver, position: { height, sequence, size } }
}

function buildNamed(names: SealedNames): SqlStatement {
  if ('keys' in names) return sql`key = ANY(${[...names.keys]}::text[])`
  const { values, from } = names
  const found = sql`(data -> 'tokens') ?| ${[...values]}::text[]`
  return from > 0 ? sql`(${found} OR leaf < ${from})` : found
}
