import { limits } from '@tollbase/contract/limits'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'

/** A place in an application's chain; without a sequence the end of the block. Height 0 is before all blocks. */
export type ChainPosition = { readonly height: number; readonly sequence: number | undefined }

export type Change = {
  readonly height: bigint
  readonly sequence: number
  readonly key: string
  readonly deleted: boolean
  readonly body: string
}

export type ChangePage = {
  readonly changes: readonly Change[]
  /** True if a limit cut the page, so that more may follow. */
  readonly isCut: boolean
  /** The position that all of it was read at. */
  readonly asOf: { readonly height: number; readonly sequence: number }
}

type TablePlace = { readonly schema: string; readonly table: string }

type Row = { readonly as_of_height: bigint; readonly as_of_sequence: number; read: bigint | null }

/** The versions after a position in the order of the chain, with the watermark of the same snapshot. */
export async function readChanges(
  database: Queryable,
  { schema, table }: TablePlace,
  { since, limit }: { readonly since: ChainPosition; readonly limit: number },
): Promise<ChangePage> {
  const rows = await database.query<Row & Change>(sql`
    SELECT mark.height AS as_of_height, mark.sequence AS as_of_sequence,
      page.read, page.height, page.sequence, page.key, page.deleted, page.body
    FROM ${sql.id(schema, 'watermark')} AS mark
    LEFT JOIN (
      SELECT version.*, count(*) OVER () AS read, row_number() OVER so_far AS position,
        sum(octet_length(version.body)) OVER so_far AS bytes
      FROM (
        SELECT leaf, height, sequence, key, deleted, body FROM ${sql.id(schema, table)}
        WHERE leaf >= ${compileFirstLeaf(schema, since)} ORDER BY leaf LIMIT ${limit}) AS version
      WINDOW so_far AS (ORDER BY version.leaf ROWS UNBOUNDED PRECEDING)
    ) AS page ON page.position = 1 OR page.bytes <= ${limits.changesBytesMax}
    WHERE mark.id = 1 ORDER BY page.leaf`)
  const [first] = rows
  if (first === undefined) throw new Error('the watermark is missing')
  const asOf = { height: Number(first.as_of_height), sequence: first.as_of_sequence }
  if (first.read === null) return { changes: [], isCut: false, asOf }
  const isCut = rows.length === limit || rows.length < Number(first.read)
  return { changes: rows, isCut, asOf }
}

/** The table is ordered by leaves, and the log knows which ones a block has. */
function compileFirstLeaf(schema: string, { height, sequence }: ChainPosition) {
  if (height === 0) return sql`0`
  const after =
    sequence === undefined ? sql`entry_count` : sql`least(${sequence + 1}::int4, entry_count)`
  return sql`(SELECT first_leaf + ${after} FROM ${sql.id(schema, 'block')} WHERE height = ${height})`
}
