import { quoteName } from './sql-text.ts'

/** A row that says which position is answered for, where that is not the application's own: a view's. */
export type PositionRow = {
  /** A table of the same schema with columns id, height, sequence, leaf and refreshed_at. */
  readonly table: string
  readonly id: number
}

/** FROM and WHERE of the position that an answer states, and further columns of the answer's row. */
export function positionText(
  schema: string,
  row: PositionRow | undefined,
): { readonly from: string; readonly where: string; readonly columns: string } {
  const chain = quoteName(schema, 'watermark')
  if (row === undefined)
    return { from: `${chain} AS watermark`, where: 'watermark.id = 1', columns: '' }
  return {
    from: `${quoteName(schema, row.table)} AS watermark`,
    where: `watermark.id = ${row.id}`,
    columns: `, (SELECT chain.height FROM ${chain} AS chain WHERE chain.id = 1) - watermark.height AS lag, watermark.refreshed_at`,
  }
}
