import { type FieldColumns, findFieldColumn } from '../field-column.ts'
import { makeExactKey } from '../tree/expression-key.ts'
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
 * and sort them on disk. A field with a column of its own is grouped by that column (see splitGroup).
 */
export function readFieldsOnce(
  query: SelectQuery,
  fieldColumns: ReadonlyMap<number, FieldColumns>,
): SelectQuery {
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
    const key = makeExactKey(field)
    const place = places.get(key) ?? columns.push({ name: key, expression: field }) - 1
    places.set(key, place)
    const { type, isWhole, zone } = field
    return { kind: 'column', type, isWhole, zone, relation: query.id, column: place }
  }
  const isField = (each: Expression) =>
    (each.kind === 'field' || each.kind === 'column') && own.has(each.relation)
  const split = new Map(
    query.groupBy.flatMap((each) => {
      const parts = splitGroup(each, fieldColumns)
      return parts === undefined ? [] : [[makeExactKey(each), parts.map(read)] as const]
    }),
  )
  const findSplit = (each: Expression) => split.get(makeExactKey(each))
  // A group is of the field itself; inside an aggregate its value of the declared type is all that counts.
  const replaceInside = (each: Expression) =>
    isField(each) || (each.kind === 'convert' && isField(each.argument)) ? read(each) : undefined
  const replace = (each: Expression): Expression | undefined => {
    if (isField(each)) {
      const parts = findSplit(each)
      return parts === undefined ? read(each) : joinGroup(parts)
    }
    if (each.kind === 'grouping') {
      const parts = each.arguments.map((one) => findSplit(one)?.[0] ?? map(one))
      return { ...each, arguments: parts }
    }
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
    ...mapGroups(query, (each) => findSplit(each) ?? [map(each)]),
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

/** Replaces each thing that is grouped by with one or several. */
function mapGroups(
  { groupBy, groupingSets }: SelectQuery,
  replace: (each: Expression) => readonly Expression[],
): Pick<SelectQuery, 'groupBy' | 'groupingSets'> {
  const parts: Expression[] = []
  const places = groupBy.map((each) => replace(each).map((part) => parts.push(part) - 1))
  const sets = groupingSets?.map((set) => set.flatMap((at) => places[at] ?? []))
  return { groupBy: parts, ...(sets && { groupingSets: sets }) }
}

/**
 * Splits a field that has a column into two things to group by, which have the same groups: its value of the column's
 * type, and its value where that is of another one, which no other row need look up in its record.
 */
function splitGroup(
  group: Expression,
  fieldColumns: ReadonlyMap<number, FieldColumns>,
): readonly [Expression, Expression] | undefined {
  if (group.kind !== 'field') return undefined
  const column = findFieldColumn(fieldColumns.get(group.relation), group.path)
  if (column === undefined) return undefined
  const typed: Expression = { kind: 'convert', type: column.type, argument: group }
  const isOther: Expression = { kind: 'is-null', type: 'boolean', argument: typed }
  const branches = [{ when: isOther, value: group }]
  return [typed, { kind: 'case', type: group.type, branches, otherwise: undefined }]
}

/** Makes the field of the two parts of its group. */
function joinGroup([typed, other]: readonly Expression[]): Expression | undefined {
  if (typed === undefined || other === undefined) return undefined
  const isOther: Expression = { kind: 'is-null', type: 'boolean', argument: typed }
  const value: Expression = { kind: 'cast', type: other.type, argument: typed }
  const branches = [{ when: isOther, value: other }]
  return { kind: 'case', type: other.type, branches, otherwise: value }
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
