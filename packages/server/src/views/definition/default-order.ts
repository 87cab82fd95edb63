import { makeExactKey } from '../../query/tree/expression-key.ts'
import type { Expression, Query, SelectQuery } from '../../query/tree/query.ts'

/** The columns by which rows are ordered if a reader asks for no order. */
export type DefaultOrder = readonly {
  /** Dotted name of a field of the view's rows. */
  readonly column: string
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | undefined
}[]

/**
 * Separates the order from a query if it does not choose the rows: a view is a set of rows. An order that LIMIT
 * depends on stays in the query.
 */
export function splitDefaultOrder(query: Query): {
  readonly query: Query
  readonly defaultOrder: DefaultOrder | undefined
} {
  const order: { column: string; descending: boolean; nulls: 'first' | 'last' | undefined }[] = []
  const names = nameExpressions(query)
  for (const { expression, descending, nulls } of query.orderBy) {
    const column = findColumnName(expression, { query, names })
    if (column === undefined) break
    order.push({ column, descending, nulls })
  }
  const isCut = query.limit !== undefined || query.offset > 0
  return {
    query: isCut ? query : Object.freeze({ ...query, orderBy: Object.freeze([]) }),
    defaultOrder: order.length === 0 ? undefined : order,
  }
}

/** The names of the columns, by the keys of their expressions. */
type Names = ReadonlyMap<string, string>

/** Names each expression that is a column; the first column where several are of the same. */
function nameExpressions(query: Query): Names {
  if (query.kind === 'set' || query.orderBy.length === 0) return new Map()
  const columns = query.columns.toReversed()
  return new Map(columns.map(({ name, expression }) => [makeExactKey(expression), name]))
}

type Named<Q extends Query> = { readonly query: Q; readonly names: Names }

function findColumnName(
  expression: Expression,
  { query, names }: Named<Query>,
): string | undefined {
  if (expression.kind === 'column' && expression.relation === query.id)
    return query.columns[expression.column]?.name
  return query.kind === 'set' ? undefined : selectedColumn(expression, { query, names })
}

function selectedColumn(
  expression: Expression,
  { query, names }: Named<SelectQuery>,
): string | undefined {
  const name = names.get(makeExactKey(expression))
  if (name !== undefined) return name
  const field = expression.kind === 'convert' ? expression.argument : expression
  const isGiven = field.kind === 'field' && query.records.includes(field.relation)
  return isGiven ? field.path.join('.') : undefined
}
