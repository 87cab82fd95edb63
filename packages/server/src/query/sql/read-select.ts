import type { Node, SelectStmt } from 'libpg-query'
import { countSteps } from '../steps.ts'
import {
  type Column,
  type CommonTable,
  type Expression,
  getOutput,
  listRelations,
  type Query,
  type SelectQuery,
} from '../tree/query.ts'
import { renameTwins } from './column-name.ts'
import { keepFirst, readDistinctOn } from './distinct-on.ts'
import { expandValues } from './expand-values.ts'
import { hasAggregate, hasOwnGrouping } from './grouping.ts'
import { readWindows } from './named-windows.ts'
import { readColumns, toTyped } from './read-columns.ts'
import { findLocation, readExpression, toCondition } from './read-expression.ts'
import { readFrom, renameColumns } from './read-from.ts'
import { extendGroups, readGroups } from './read-groups.ts'
import { makeOrder } from './read-order.ts'
import { isRecursive, readRecursive } from './read-recursive.ts'
import { findOutput, readOutputOrder, readPage, readSet } from './read-set.ts'
import type { CommonTableName, ScopeRelation } from './scope.ts'
import { enterLevel, findFirstLocation, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Steps that the smallest SELECT takes. */
const stepsPerSelect = 100

/** Reads a SELECT, or several joined by set operations, as a query. */
export function readSelect(
  select: SelectStmt,
  outer: Pick<SqlPlace, 'reader' | 'scope' | 'depth' | 'links'>,
): Query {
  countSteps(stepsPerSelect)
  const { reader, scope, depth, links } = outer
  const inner = { reader, scope, depth, without: {}, ...(links !== undefined && { links }) }
  const location = findFirstLocation(select)
  // The left side of a set operation is on the level of the whole.
  const place = links === undefined ? enterLevel(inner, location) : { ...inner, location }
  const rows = runAt(place, undefined, () => expandValues(select))
  if (rows !== undefined) return readSelect(rows, { ...outer, depth: place.depth })
  refuseClauses(select, place)
  const common = readCommonTables(select, place)
  const inside = { ...place, scope: { ...place.scope, tables: common.tables } }
  const isSet = select.op !== undefined && select.op !== 'SETOP_NONE'
  const query = isSet ? readSet(select, inside) : readSimple(select, inside)
  return Object.freeze({ ...query, with: common.with })
}

/** The clauses that are read or refused below; a clause that only a newer parser knows is refused too. */
const clauses: ReadonlySet<string> = new Set(
  'distinctClause intoClause targetList fromClause whereClause groupClause groupDistinct havingClause windowClause valuesLists sortClause limitOffset limitCount limitOption lockingClause withClause op all larg rarg'.split(
    ' ',
  ),
)

function refuseClauses(select: SelectStmt, place: SqlPlace): void {
  const foreign = Object.keys(select).find((clause) => !clauses.has(clause))
  if (foreign !== undefined) throw refuse(place, undefined, `the clause ${foreign}`)
  const [lock] = select.lockingClause ?? []
  if (lock !== undefined) throw refuse(place, undefined, 'a locking clause (FOR UPDATE, FOR SHARE)')
  if (select.intoClause !== undefined)
    throw refuse(place, select.intoClause.rel?.location, 'INTO, which would write')
  if (select.limitOption === 'LIMIT_OPTION_WITH_TIES')
    throw refuse(
      place,
      undefined,
      'FETCH … WITH TIES; write rank() OVER (ORDER BY …) AS place in a sub-query, and place <= 3',
    )
  if (select.groupDistinct) throw refuse(place, undefined, 'GROUP BY DISTINCT')
}

function readCommonTables(select: SelectStmt, place: SqlPlace) {
  const tables = new Map(place.scope.tables)
  const list: CommonTable[] = []
  for (const node of select.withClause?.ctes ?? []) {
    if (!('CommonTableExpr' in node)) continue
    const inside = { ...place, scope: { ...place.scope, tables } }
    if (select.withClause?.recursive && isRecursive(node.CommonTableExpr)) {
      const { table, name } = readRecursive(node.CommonTableExpr, inside)
      list.push(table)
      tables.set(node.CommonTableExpr.ctename ?? '', name)
      continue
    }
    const { ctename = '', ctequery, aliascolnames, location } = node.CommonTableExpr
    if (ctequery === undefined || !('SelectStmt' in ctequery))
      throw refuse(place, location, 'a WITH that is no SELECT')
    const query = readSelect(renameTwins(ctequery.SelectStmt, aliascolnames?.length ?? 0), inside)
    const { columns, records } = getOutput(query)
    if (records.length > 1)
      throw refuse(place, location, 'a WITH that gives records of several collections whole (*)')
    const id = place.reader.nextId()
    list.push(Object.freeze({ id, query }))
    const named = { id, name: ctename, columns, hasRecord: records.length > 0, ...unnamed }
    const alias = aliascolnames === undefined ? undefined : { colnames: aliascolnames }
    tables.set(ctename, toTable(renameColumns(named, alias, { place, location })))
  }
  return { with: Object.freeze(list), tables }
}

const unnamed = { app: undefined, types: undefined } as const

function toTable({ id, columns, hasRecord }: ScopeRelation): CommonTableName {
  return { id, columns, hasRecord }
}

function readSimple(select: SelectStmt, outer: SqlPlace): SelectQuery {
  const { relations, scope } = readFrom(select.fromClause ?? [], outer)
  const windows = readWindows(select.windowClause, (at, construct) => refuse(outer, at, construct))
  let hasRead = false
  const noteAggregate = () => {
    hasRead = true
  }
  const place: SqlPlace = { ...outer, scope, windows, without: {}, noteAggregate }
  const only = (clause: string): SqlPlace => ({
    ...place,
    without: { aggregates: clause, windows: clause },
  })
  const where = condition(select.whereClause, only('WHERE'))
  const { columns, records } = readColumns(select.targetList ?? [], place)
  const named = readGroups(select.groupClause ?? [], columns, only('GROUP BY'))
  const having = condition(select.havingClause, { ...place, without: { windows: 'HAVING' } })
  const on = readDistinctOn(select, columns, place)
  const distinct = select.distinctClause !== undefined && on === undefined
  const id = place.reader.nextId()
  const orderBy = distinct
    ? readDistinctOrder(select, columns, { id, place })
    : readOrderBy(select, columns, place)
  const used = [
    ...columns.map((column) => column.expression),
    ...orderBy.map((order) => order.expression),
    ...(having === undefined ? [] : [having]),
    ...(on ?? []),
  ]
  const isGrouped = named.groupBy.length > 0 || named.groupingSets !== undefined
  const isSaid = isGrouped || having !== undefined || used.some(hasAggregate)
  const groups = !isSaid && hasRead ? { ...named, groupingSets: [[]] } : named
  const grouped = isSaid || hasRead
  const own = new Set(listRelations(relations).map((relation) => relation.id))
  if (!grouped && used.some((each) => hasOwnGrouping(each, own)))
    throw refuse(place, undefined, 'GROUPING without GROUP BY')
  if (records.length > 0 && (grouped || distinct))
    throw refuse(
      place,
      undefined,
      `whole records (*) in a ${grouped ? 'grouped' : 'DISTINCT'} query; name the columns`,
    )
  const query: SelectQuery = {
    kind: 'select',
    with: [],
    distinct,
    columns,
    records,
    from: relations,
    where,
    grouped,
    ...(grouped ? extendGroups(groups, { from: relations, used }, place) : groups),
    having,
    id,
    orderBy,
    ...readPage(select, place),
  }
  return on === undefined ? query : keepFirst(query, on, place)
}

function condition(node: Node | undefined, place: SqlPlace): Expression | undefined {
  return node === undefined
    ? undefined
    : toCondition(readExpression(node, place), place, findLocation(node))
}

function readDistinctOrder(
  select: SelectStmt,
  columns: readonly Column[],
  { id, place }: { readonly id: number; readonly place: SqlPlace },
) {
  const given = columns.map((column) => {
    const { type } = column.expression
    return { ...column, type, path: [column.name] }
  })
  const read = (node: Node) => toTyped(readExpression(node, place))
  return readOutputOrder(select, given, { id, place, read })
}

function readOrderBy(select: SelectStmt, columns: readonly Column[], place: SqlPlace) {
  const sorts = (select.sortClause ?? []).flatMap((node) => ('SortBy' in node ? [node.SortBy] : []))
  return Object.freeze(
    sorts.map((sort) => {
      const column =
        sort.node === undefined ? undefined : columns[findOutput(sort.node, columns, place) ?? -1]
      return makeOrder(sort, column?.expression ?? toTyped(readExpression(sort.node, place)), place)
    }),
  )
}
