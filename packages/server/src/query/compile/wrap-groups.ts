import { makeExactKey, makeExpressionKey } from '../tree/expression-key.ts'
import { mapExpression, mapOrder, mapQuery } from '../tree/map-expression.ts'
import {
  type Expression,
  findSubQuery,
  listParts,
  makeSelect,
  type Query,
  type SelectQuery,
} from '../tree/query.ts'
import { isSubQuery, makeColumnList } from './sub-query-parts.ts'

type Grouping = Extract<Expression, { kind: 'grouping' }>

/**
 * Moves the groups of a query into a sub-query, where a sub-query in an expression uses what is grouped by. PostgreSQL
 * takes an expression in it for one of the groups only where that is a plain column, as it then is; and an aggregate of
 * no field in it for one over its own rows.
 */
export function wrapGroups(query: SelectQuery): SelectQuery {
  const outside = [
    ...query.columns.map(({ expression }) => expression),
    ...query.orderBy.map(({ expression }) => expression),
    ...(query.having === undefined ? [] : [query.having]),
  ]
  const groups = new Map(query.groupBy.map((each) => [makeExpressionKey(each), each]))
  if (!query.grouped || !outside.some((each) => isAsking(each, groups))) return query
  const { columns, add } = makeColumnList(query.id)
  for (const group of query.groupBy) add(group)
  const findGroup = (each: Expression) =>
    groups.has(makeExpressionKey(each)) ? add(each) : undefined
  // A sub-query that is grouped by and written once more is another one to PostgreSQL's GROUPING too.
  const addGrouping = (each: Grouping) =>
    add({
      ...each,
      arguments: each.arguments.map((one) => groups.get(makeExpressionKey(one)) ?? one),
    })
  const replace = (each: Expression): Expression | undefined => {
    const found = findGroup(each)
    if (found !== undefined) return found
    if (each.kind === 'aggregate') return add(each)
    if (each.kind === 'grouping') return addGrouping(each)
    return findSubQuery(each) === undefined ? undefined : mapAsking(each)
  }
  // A sub-query has aggregates of its own, and may ask what this query has grouped by.
  const isOurs = (each: Grouping) =>
    each.arguments.every((one) => groups.has(makeExpressionKey(one)))
  const findInside = (each: Expression) =>
    each.kind === 'grouping' && isOurs(each) ? addGrouping(each) : findGroup(each)
  const inside = (inner: Query) => mapQuery(inner, findInside)
  const mapAsking = (each: Expression): Expression | undefined => {
    if (each.kind === 'in-query') {
      const args = each.arguments.map((one) => mapExpression(one, replace))
      return { ...each, arguments: args, query: inside(each.query) }
    }
    return each.kind === 'exists' || each.kind === 'scalar'
      ? { ...each, query: inside(each.query) }
      : undefined
  }
  const outer = {
    columns: query.columns.map((column) => ({
      ...column,
      expression: mapExpression(column.expression, replace),
    })),
    where: query.having && mapExpression(query.having, replace),
    orderBy: query.distinct ? query.orderBy : mapOrder(query.orderBy, replace),
  }
  const { groupBy, from, where } = query
  // Without an aggregate in a column, and with HAVING outside, nothing else says that all rows are one group.
  const groupingSets = query.groupingSets ?? (groupBy.length === 0 ? [[]] : undefined)
  const inner = {
    ...makeSelect({ columns, from, id: query.id }),
    where,
    grouped: true,
    groupBy,
    ...(groupingSets && { groupingSets }),
  }
  const { groupingSets: _, ...rest } = query
  return {
    ...rest,
    ...outer,
    from: [{ kind: 'query', id: query.id, query: inner }],
    grouped: false,
    groupBy: [],
    having: undefined,
  }
}

/**
 * Returns true if a sub-query stands in the expression where rows are gathered already. PostgreSQL takes one that is
 * grouped by, and was written a second time, for another.
 */
function isAsking(expression: Expression, groups: ReadonlyMap<string, Expression>): boolean {
  if (expression.kind === 'aggregate') return false
  const group = groups.get(makeExpressionKey(expression))
  if (group !== undefined) return makeExactKey(group) !== makeExactKey(expression)
  const isQuery = findSubQuery(expression) !== undefined || isSubQuery(expression)
  return isQuery || listParts(expression).some((part) => isAsking(part, groups))
}
