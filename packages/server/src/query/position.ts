import { quoteName } from './sql-text.ts'

/**
 * The rows that hold the position of the answer, where that is not the application's own: those of the views read.
 */
export type PositionRow = {
  /** A table of the same schema with columns id, height, sequence, leaf and refreshed_at. */
  readonly table: string
  /** The views' ids; the oldest position counts. */
  readonly ids: readonly number[]
  /** Further tables of that form, of one row each; without any one of the rows there is no position. */
  readonly singles?: readonly string[]
}

/** Prints FROM and WHERE of the position that an answer states, and further columns of the answer's row. */
export function printPosition(
  schema: string,
  row: PositionRow | undefined,
): { readonly from: string; readonly where: string; readonly columns: string } {
  const chain = quoteName(schema, 'watermark')
  if (row === undefined)
    return { from: `${chain} AS watermark`, where: 'watermark.id = 1', columns: '' }
  const { ids, singles = [] } = row
  const isAlone = singles.length === 0
  return {
    from: isAlone
      ? `${quoteName(schema, row.table)} AS watermark`
      : printOldestOfAll(schema, row, singles),
    where: isAlone
      ? printOldest(ids, quoteName(schema, row.table))
      : `watermark.found = ${ids.length + singles.length}`,
    columns: `, (SELECT chain.height FROM ${chain} AS chain WHERE chain.id = 1) - watermark.height AS lag, watermark.refreshed_at`,
  }
}

function printOldest(ids: readonly number[], table: string): string {
  const [first, ...others] = ids
  if (others.length === 0) return `watermark.id = ${first}`
  return `watermark.id = (SELECT oldest.id FROM ${table} AS oldest WHERE oldest.id IN (${ids.join(', ')}) ORDER BY oldest.leaf, oldest.id LIMIT 1)`
}

function printOldestOfAll(schema: string, row: PositionRow, singles: readonly string[]): string {
  const columns = 'one.height, one.sequence, one.leaf, one.refreshed_at'
  const parts = [
    ...row.ids.map((id) => `${quoteName(schema, row.table)} AS one WHERE one.id = ${id}`),
    ...singles.map((table) => `${quoteName(schema, table)} AS one`),
  ].map((part) => `SELECT ${columns} FROM ${part}`)
  return `(SELECT oldest.*, count(*) OVER () AS found
 FROM (${parts.join(' UNION ALL ')}) AS oldest ORDER BY oldest.leaf LIMIT 1) AS watermark`
}
