import { mapExpression, mapOrder, mapQuery } from '../tree/map-expression.ts'
import {
  type Expression,
  hasWindow,
  listParts,
  listRelations,
  makeSelect,
  type SelectQuery,
} from '../tree/query.ts'
import { isSubQuery, makeColumnList } from './sub-query-parts.ts'

/**
 * Moves the windows of a query into a sub-query, where one of them stands in a function that is printed as a
 * sub-query: PostgreSQL would take it for a window over that one's rows.
 */
export function wrapWindows(query: SelectQuery): SelectQuery {
  const outside = [
    ...query.columns.map(({ expression }) => expression),
    ...(query.distinct ? [] : query.orderBy.map(({ expression }) => expression)),
  ]
  if (query.grouped || !outside.some(isAskingWindow)) return query
  const own = new Set(listRelations(query.from).map(({ id }) => id))
  const { columns, add } = makeColumnList(query.id)
  const replace = (each: Expression): Expression | undefined => {
    if (each.kind === 'constant' || each.kind === 'parameter') return each
    if (!isAskingWindow(each)) return add(each)
    if (each.kind !== 'in-query') return undefined
    const args = each.arguments.map((one) => mapExpression(one, replace))
    return { ...each, arguments: args, query: mapQuery(each.query, replaceInside) }
  }
  // A sub-query has windows of its own, and may ask for what the rows here have.
  const replaceInside = (each: Expression) =>
    'relation' in each && each.kind !== 'condition' && own.has(each.relation)
      ? add(each)
      : undefined
  const outer = {
    columns: query.columns.map((column) => ({
      ...column,
      expression: mapExpression(column.expression, replace),
    })),
    orderBy: query.distinct ? query.orderBy : mapOrder(query.orderBy, replace),
  }
  const { id, from, where, records } = query
  const inner = { ...makeSelect({ columns, from, id }), where, records }
  return {
    ...query,
    ...outer,
    records: records.map(() => id),
    from: [{ kind: 'query', id, query: inner }],
    where: undefined,
  }
}

/** Returns true if a window stands in a function that is printed as a sub-query. */
function isAskingWindow(expression: Expression): boolean {
  const parts = listParts(expression)
  return parts.some(isAskingWindow) || (isSubQuery(expression) && parts.some(hasWindow))
}
