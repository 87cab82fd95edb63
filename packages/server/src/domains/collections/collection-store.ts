import { limits } from '@tollbase/contract/limits'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { compileList, type ListRow } from '../../query/compile-list.ts'
import { parseList } from '../../query/list-query.ts'

export type CollectionStats = {
  readonly documents: number
  readonly bytes: number
  readonly versions: number
}

export const noStats: CollectionStats = { documents: 0, bytes: 0, versions: 0 }

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
  database: Queryable,
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
