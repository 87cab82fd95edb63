import type { Expression, Query, SelectQuery } from '../../query/tree/query.ts'

/** Columns that rows are read in the order of where a reader asks for none. */
export type DefaultOrder = readonly {
  /** Dotted name of a field of the view's rows. */
  readonly column: string
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | undefined
}[]

/**
 * Parts the order from a query whose rows it does not choose: a view is a set of rows. An order that LIMIT goes by
 * stays in the query.
 */
export function defaultOrderOf(query: Query): {
  readonly query: Query
  readonly defaultOrder: DefaultOrder | undefined
} {
  const order: { column: string; descending: boolean; nulls: 'first' | 'last' | undefined }[] = []
  for (const { expression, descending, nulls } of query.orderBy) {
    const column = columnOf(expression, query)
    if (column === undefined) break
    order.push({ column, descending, nulls })
  }
  const isCut = query.limit !== undefined || query.offset > 0
  return {
    query: isCut ? query : Object.freeze({ ...query, orderBy: Object.freeze([]) }),
    defaultOrder: order.length === 0 ? undefined : order,
  }
}

function columnOf(expression: Expression, query: Query): string | undefined {
  if (expression.kind === 'column' && expression.relation === query.id)
    return query.columns[expression.column]?.name
  return query.kind === 'set' ? undefined : selectedColumn(expression, query)
}

function selectedColumn(expression: Expression, query: SelectQuery): string | undefined {
  const text = JSON.stringify(expression)
  const found = query.columns.find((column) => JSON.stringify(column.expression) === text)
  if (found !== undefined) return found.name
  const field = expression.kind === 'convert' ? expression.argument : expression
  const isGiven = field.kind === 'field' && query.records.includes(field.relation)
  return isGiven ? field.path.join('.') : undefined
}
