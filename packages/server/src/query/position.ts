import { quoteName } from './sql-text.ts'

/**
 * The rows that hold the position of the answer, where that is not the application's own: those of the views read.
 */
export type PositionRow = {
  /** A table of the same schema with columns id, height, sequence, leaf and refreshed_at. */
  readonly table: string
  /** The views' ids; the oldest position counts. */
  readonly ids: readonly number[]
}

/** Prints FROM and WHERE of the position that an answer states, and further columns of the answer's row. */
export function printPosition(
  schema: string,
  row: PositionRow | undefined,
): { readonly from: string; readonly where: string; readonly columns: string } {
  const chain = quoteName(schema, 'watermark')
  if (row === undefined)
    return { from: `${chain} AS watermark`, where: 'watermark.id = 1', columns: '' }
  return {
    from: `${quoteName(schema, row.table)} AS watermark`,
    where: printOldest(row.ids, quoteName(schema, row.table)),
    columns: `, (SELECT chain.height FROM ${chain} AS chain WHERE chain.id = 1) - watermark.height AS lag, watermark.refreshed_at`,
  }
}

function printOldest(ids: readonly number[], table: string): string {
  const [first, ...others] = ids
  if (others.length === 0) return `watermark.id = ${first}`
  return `watermark.id = (SELECT oldest.id FROM ${table} AS oldest WHERE oldest.id IN (${ids.join(', ')}) ORDER BY oldest.leaf, oldest.id LIMIT 1)`
}
