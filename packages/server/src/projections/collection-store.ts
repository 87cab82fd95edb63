import { limits } from '@tollbase/contract/limits'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { CollectionStats } from '../model/collection-stats.ts'
import { compileList, type ListRow } from '../query/compile-list.ts'
import { parseList } from '../query/list-query.ts'
import type { CompiledStatement } from '../query/sql-text.ts'

/** Counts and bytes of live records by collection id. */
export async function readStats(
  database: Queryable,
  schema: string,
): Promise<ReadonlyMap<string, CollectionStats>> {
  const rows = await database.query<{
    collection: string
    documents: bigint
    bytes: bigint
    versions: bigint
  }>(sql`SELECT collection, documents, bytes, versions FROM ${sql.id(schema, 'collection_stats')}`)
  return new Map(
    rows.map((row) => [
      row.collection,
      {
        documents: Number(row.documents),
        bytes: Number(row.bytes),
        versions: Number(row.versions),
      },
    ]),
  )
}

/**
 * The first live records of a collection as JSON texts joined by commas: the same ones at every call, so a sample
 * cannot be walked to the whole.
 */
export async function readSample(
  database: Pick<Queryable, 'query'>,
  schema: string,
  sample: { table: string; rows: number; fields: readonly string[] | undefined },
): Promise<string> {
  const select = Object.fromEntries((sample.fields ?? []).map((field) => [field, true]))
  const { text, values } = compileList(parseList({ select, limit: sample.rows }), {
    schema,
    table: sample.table,
    caps: { rows: limits.previewRowsMax, bytes: limits.resultBytesMax },
    total: false,
  })
  const [row] = await database.query<ListRow>(sql.compiled(text, values))
  return row?.records ?? ''
}

/**
 * Compiles a query for the live records that a `find` matches, oldest first; its row has no records where these have
 * more bytes than a block takes.
 */
export function compileLive(
  schema: string,
  wanted: { table: string; primaryColumn: string; find: unknown; limit: number },
): CompiledStatement {
  const { table, primaryColumn, find, limit } = wanted
  return compileList(parseList({ find, limit }), {
    schema,
    table,
    caps: { rows: limit, bytes: limits.blockBytesMax },
    total: false,
    primaryColumn,
  })
}

export type LiveRow = { readonly leaf: bigint; readonly key: string; readonly body: string }

/**
 * Live records behind a leaf, in the order of storing: at most so many, and no more than some bytes unless the first
 * alone has more. `all` says that there are no others behind the leaf.
 */
export async function readLive(
  database: Queryable,
  schema: string,
  wanted: { table: string; after: bigint; rows: number; bytes: number },
): Promise<{ rows: LiveRow[]; all: boolean }> {
  const { after, bytes } = wanted
  const found = await database.query<LiveRow & { found: bigint }>(sql`
    SELECT leaf, key, body, found FROM (
      SELECT leaf, key, body, count(*) OVER () AS found,
        sum(octet_length(body)) OVER (ORDER BY leaf) - octet_length(body) AS before
      FROM (
        SELECT leaf, key, body FROM ${sql.id(schema, wanted.table)}
        WHERE leaf > ${after} AND superseded_by IS NULL AND NOT deleted ORDER BY leaf LIMIT ${wanted.rows}
      ) AS page) AS sized
    WHERE before < ${bytes} ORDER BY leaf`)
  const count = Number(found[0]?.found ?? 0)
  return { rows: found, all: count < wanted.rows && found.length === count }
}
