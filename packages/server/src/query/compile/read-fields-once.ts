import { mapExpression, mapOrder } from '../tree/map-expression.ts'
import {
  type Column,
  type Expression,
  findSubQuery,
  listParts,
  listRelations,
  makeSelect,
  type SelectQuery,
} from '../tree/query.ts'

/**
 * Moves the reading of fields out of a query that gathers rows, into a sub-query that reads each field of a row
 * once. PostgreSQL computes an expression as often as it is written, and a field of a record is dear: it is found
 * in the JSON, its type is tested, and it is made into a number or a text. The sub-query's columns also hide from the
 * planner that they are made of the record, which is another in each row: it would expect as many groups as rows,
 * and sort them on disk.
 */
export function readFieldsOnce(query: SelectQuery): SelectQuery {
  if (!query.grouped) return query
  const own = new Set(listRelations(query.from).map(({ id }) => id))
  const used = [
    ...query.columns.map(({ expression }) => expression),
    ...query.orderBy.map(({ expression }) => expression),
    ...query.groupBy,
    ...(query.having === undefined ? [] : [query.having]),
  ]
  if (used.some((each) => !isMadeOfFields(each, own))) return query
  const columns: Column[] = []
  const places = new Map<string, number>()
  const read = (field: Expression): Expression => {
    const key = JSON.stringify(field)
    const place = places.get(key) ?? columns.push({ name: key, expression: field }) - 1
    places.set(key, place)
    const { type, isWhole, zone } = field
    return { kind: 'column', type, isWhole, zone, relation: query.id, column: place }
  }
  const isField = (each: Expression) =>
    (each.kind === 'field' || each.kind === 'column') && own.has(each.relation)
  // A group is of the field itself; inside an aggregate its value of the declared type is all that counts.
  const replaceInside = (each: Expression) =>
    isField(each) || (each.kind === 'convert' && isField(each.argument)) ? read(each) : undefined
  const replace = (each: Expression): Expression | undefined => {
    if (isField(each)) return read(each)
    if (each.kind !== 'aggregate') return undefined
    const { filter } = each
    return {
      ...each,
      arguments: each.arguments.map((one) => mapExpression(one, replaceInside)),
      orderBy: mapOrder(each.orderBy, replaceInside),
      filter: filter && mapExpression(filter, replaceInside),
    }
  }
  const map = (each: Expression) => mapExpression(each, replace)
  const outer = {
    columns: query.columns.map((column) => ({ ...column, expression: map(column.expression) })),
    groupBy: query.groupBy.map(map),
    having: query.having && map(query.having),
    orderBy: mapOrder(query.orderBy, replace),
  }
  if (columns.length === 0) return query
  const rows = {
    ...makeSelect({ columns, from: query.from, id: query.id }),
    where: query.where,
  }
  const from = [{ kind: 'query', id: query.id, query: rows, isFence: true } as const]
  return { ...query, ...outer, from, where: undefined }
}

/** Returns true if the expression uses rows of the relations by their fields and columns alone. */
function isMadeOfFields(expression: Expression, own: ReadonlySet<number>): boolean {
  if (findSubQuery(expression) !== undefined) return false
  const { kind } = expression
  if (
    (kind === 'record' || kind === 'leaf' || kind === 'condition') &&
    own.has(expression.relation)
  )
    return false
  return listParts(expression).every((each) => isMadeOfFields(each, own))
}
