import { limits } from '@tollbase/contract/limits'
import type { Node, SelectStmt } from 'libpg-query'
import { findCommonType, isNullConstant, makeConstant } from '../tree/make-expression.ts'
import {
  type Column,
  type CommonTable,
  type Expression,
  getOutput,
  listRelations,
  type Order,
  type OutputColumn,
  type Query,
  type SelectQuery,
} from '../tree/query.ts'
import { getColumnName } from './column-name.ts'
import { findUngroupedPart, hasAggregate, isOuterOnly } from './grouping.ts'
import { makeOrder } from './read-call.ts'
import { findLocation, readExpression, toCondition } from './read-expression.ts'
import { readFrom } from './read-from.ts'
import { type CommonTableName, makeColumn, resolveStar } from './scope.ts'
import {
  enterChain,
  enterLevel,
  findFirstLocation,
  listTexts,
  readWholeNumber,
  refuse,
  runAt,
  type SqlPlace,
} from './sql-reader.ts'

/** Reads a SELECT, or several joined by set operations, as a query. */
export function readSelect(
  select: SelectStmt,
  outer: Pick<SqlPlace, 'reader' | 'scope' | 'depth' | 'links'>,
): Query {
  const { reader, scope, depth, links } = outer
  const inner = { reader, scope, depth, without: {}, ...(links !== undefined && { links }) }
  const location = findFirstLocation(select)
  // The left side of a set operation is on the level of the whole.
  const place = links === undefined ? enterLevel(inner, location) : { ...inner, location }
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
  if (select.valuesLists !== undefined) throw refuse(place, undefined, 'VALUES as a table')
  if (select.limitOption === 'LIMIT_OPTION_WITH_TIES')
    throw refuse(place, undefined, 'FETCH … WITH TIES')
  if (select.groupDistinct) throw refuse(place, undefined, 'GROUP BY DISTINCT')
}

function readCommonTables(select: SelectStmt, place: SqlPlace) {
  const tables = new Map(place.scope.tables)
  const list: CommonTable[] = []
  if (select.withClause?.recursive)
    throw refuse(place, select.withClause.location, 'WITH RECURSIVE')
  for (const node of select.withClause?.ctes ?? []) {
    if (!('CommonTableExpr' in node)) continue
    const { ctename = '', ctequery, aliascolnames, location } = node.CommonTableExpr
    if (aliascolnames !== undefined) throw refuse(place, location, 'names of columns after WITH')
    if (ctequery === undefined || !('SelectStmt' in ctequery))
      throw refuse(place, location, 'a WITH that is no SELECT')
    const query = readSelect(ctequery.SelectStmt, { ...place, scope: { ...place.scope, tables } })
    const { columns, records } = getOutput(query)
    if (records.length > 1)
      throw refuse(place, location, 'a WITH that gives records of several collections whole (*)')
    const id = place.reader.nextId()
    list.push(Object.freeze({ id, query }))
    const named: CommonTableName = { id, columns, hasRecord: records.length > 0 }
    tables.set(ctename, named)
  }
  return { with: Object.freeze(list), tables }
}

function readSet(select: SelectStmt, place: SqlPlace): Query {
  const isChain = select.larg?.op !== undefined && select.larg.op !== 'SETOP_NONE'
  const { links: _, ...own } = place
  const left = readSelect(select.larg ?? {}, isChain ? enterChain(place) : own)
  const right = readSelect(select.rarg ?? {}, own)
  const operator = { SETOP_UNION: 'UNION', SETOP_INTERSECT: 'INTERSECT', SETOP_EXCEPT: 'EXCEPT' }
  const word = operator[select.op as keyof typeof operator]
  const [a, b] = [getOutput(left), getOutput(right)]
  if (a.records.length > 0 || b.records.length > 0)
    throw refuse(place, undefined, `${word} of whole records (*); name the columns`)
  if (a.columns.length !== b.columns.length)
    throw refuse(
      place,
      undefined,
      `${word} of ${a.columns.length} with ${b.columns.length} columns`,
    )
  const columns = a.columns.map((column, index): OutputColumn => {
    const types = [column.type, b.columns[index]?.type ?? 'null']
    const type = runAt(place, undefined, () => findCommonType(types))
    if (type === 'interval' && types.some((each) => each !== type && each !== 'null'))
      throw refuse(place, undefined, `${word} of intervals with other values`)
    const isWhole = column.isWhole === true && b.columns[index]?.isWhole === true
    return { ...column, type, isWhole }
  })
  const id = place.reader.nextId()
  const orderBy = outputOrder(select, columns, { id, place })
  return {
    kind: 'set',
    with: [],
    operator: word === 'UNION' || word === 'INTERSECT' ? word : 'EXCEPT',
    all: select.all ?? false,
    left,
    right,
    columns,
    id,
    orderBy,
    ...readPage(select, place),
  }
}

function readPage(select: SelectStmt, place: SqlPlace) {
  const count = (node: Node | undefined, clause: string, most: number) => {
    if (node === undefined) return undefined
    const expression = readExpression(node, place)
    if (isNullConstant(expression)) return undefined
    if (expression.kind === 'parameter' && expression.type === 'number') return expression.parameter
    const number = readWholeNumber(expression, most)
    if (number === undefined)
      throw refuse(place, findLocation(node), `${clause} that is no whole number up to ${most}`)
    return number
  }
  const limit = count(select.limitCount, 'a LIMIT', limits.rowsMax)
  const offset = count(select.limitOffset, 'an OFFSET', limits.offsetMax)
  return {
    ...(typeof limit === 'object' ? { limit: undefined, limitBy: limit } : { limit }),
    ...(typeof offset === 'object' ? { offset: 0, offsetBy: offset } : { offset: offset ?? 0 }),
  }
}

/** Reads the ORDER BY of a DISTINCT or a set operation: only output columns, by name or place. */
function outputOrder(
  select: SelectStmt,
  columns: readonly (OutputColumn & { readonly expression?: Expression })[],
  { id, place, read }: { id: number; place: SqlPlace; read?: (node: Node) => Expression },
): readonly Order[] {
  const sorts = (select.sortClause ?? []).flatMap((node) => ('SortBy' in node ? [node.SortBy] : []))
  return Object.freeze(
    sorts.map((sort) => {
      const { node } = sort
      const named = node === undefined ? undefined : outputAt(node, columns, place)
      const wanted = node === undefined || named !== undefined ? undefined : read?.(node)
      const found =
        named ??
        columns.findIndex((column) => JSON.stringify(column.expression) === JSON.stringify(wanted))
      const column = columns[found]
      if (column === undefined || (named === undefined && wanted === undefined)) {
        throw refuse(
          place,
          node === undefined ? undefined : findLocation(node),
          'an ORDER BY of something that DISTINCT or the set operation does not give',
        )
      }
      return makeOrder(
        sort,
        { kind: 'column', type: column.type, relation: id, column: found },
        place,
      )
    }),
  )
}

/** Returns the place of the column that a node names: by its name, or by its number. */
function outputAt(
  node: Node,
  columns: readonly { readonly name: string }[],
  place: SqlPlace,
): number | undefined {
  if ('A_Const' in node && node.A_Const.ival !== undefined) {
    const number = node.A_Const.ival.ival ?? 0
    if (number >= 1 && number <= columns.length) return number - 1
    throw refuse(place, node.A_Const.location, `the column number ${number}, which there is not`)
  }
  if (!('ColumnRef' in node)) return undefined
  const names = listTexts(node.ColumnRef.fields)
  const found = columns.findIndex((column) => names.length === 1 && column.name === names[0])
  return found < 0 ? undefined : found
}

function readSimple(select: SelectStmt, outer: SqlPlace): SelectQuery {
  const { relations, scope } = readFrom(select.fromClause ?? [], outer)
  const windows = new Map(
    (select.windowClause ?? []).flatMap((node) =>
      'WindowDef' in node ? [[node.WindowDef.name ?? '', node] as const] : [],
    ),
  )
  const place: SqlPlace = { ...outer, scope, windows, without: {} }
  const only = (clause: string): SqlPlace => ({
    ...place,
    without: { aggregates: clause, windows: clause },
  })
  const where = condition(select.whereClause, only('WHERE'))
  const { columns, records } = readColumns(select.targetList ?? [], place)
  const expressions = columns.map((column) => ({ ...column, type: column.expression.type }))
  const groupBy = readGroups(select.groupClause ?? [], columns, only('GROUP BY'))
  const having = condition(select.havingClause, { ...place, without: { windows: 'HAVING' } })
  const distinct = isDistinct(select, place)
  const id = place.reader.nextId()
  const read = (node: Node) => typed(readExpression(node, place))
  const orderBy = distinct
    ? outputOrder(
        select,
        expressions.map((each) => ({ ...each, path: [each.name] })),
        { id, place, read },
      )
    : readOrderBy(select, columns, place)
  const used = [
    ...columns.map((column) => column.expression),
    ...orderBy.map((order) => order.expression),
    ...(having === undefined ? [] : [having]),
  ]
  const grouped = groupBy.length > 0 || having !== undefined || used.some(hasAggregate)
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
    groupBy,
    having,
    id,
    orderBy,
    ...readPage(select, place),
  }
  if (grouped) checkGrouping(query, used, place)
  return query
}

function condition(node: Node | undefined, place: SqlPlace): Expression | undefined {
  return node === undefined
    ? undefined
    : toCondition(readExpression(node, place), place, findLocation(node))
}

function isDistinct(select: SelectStmt, place: SqlPlace): boolean {
  if (select.distinctClause === undefined) return false
  const isOn = select.distinctClause.some((node) => Object.keys(node).length > 0)
  if (isOn) throw refuse(place, undefined, 'DISTINCT ON; use GROUP BY or a window function')
  return true
}

/** Columns with their names, and the relations whose records are given whole. */
function readColumns(targets: readonly Node[], place: SqlPlace) {
  const columns: Column[] = []
  const records: number[] = []
  const names = new Set<string>()
  for (const node of targets) {
    if (!('ResTarget' in node)) continue
    const { val, name, location } = node.ResTarget
    if (val !== undefined && isStar(val)) {
      const parts = listTexts('ColumnRef' in val ? val.ColumnRef.fields : [])
      for (const relation of runAt(place, location, () => resolveStar(parts, place.scope))) {
        if (relation.hasRecord) records.push(relation.id)
        relation.columns.forEach((column, index) => {
          add({ name: column.name, expression: makeColumn(relation, index, column) }, location)
        })
      }
      continue
    }
    const expression = readExpression(val, place)
    add(
      { name: name ?? getColumnName(val, columns.length), expression: typed(expression) },
      location,
    )
  }
  if (columns.length === 0 && records.length === 0) throw refuse(place, undefined, 'no columns')
  return { columns: Object.freeze(columns), records: Object.freeze(records) }

  function add(column: Column, location: number | undefined): void {
    if (names.has(column.name))
      throw refuse(place, location, `two columns called ${column.name}; name one with AS`)
    if (names.size >= limits.sqlColumnsMax)
      throw refuse(place, location, `more than ${limits.sqlColumnsMax} columns`)
    names.add(column.name)
    columns.push(Object.freeze(column))
  }
}

/** Gives a NULL of no type the type text, as PostgreSQL does. */
function typed(expression: Expression): Expression {
  return expression.type === 'null' ? makeConstant('text', null) : expression
}

function isStar(node: Node): boolean {
  return 'ColumnRef' in node && (node.ColumnRef.fields ?? []).some((field) => 'A_Star' in field)
}

function readGroups(
  nodes: readonly Node[],
  columns: readonly Column[],
  place: SqlPlace,
): readonly Expression[] {
  return Object.freeze(
    nodes.map((node) => {
      if ('GroupingSet' in node)
        throw refuse(place, node.GroupingSet.location, 'GROUPING SETS, ROLLUP or CUBE')
      const column = columns[outputAt(node, columns, place) ?? -1]
      if (column !== undefined && hasAggregate(column.expression))
        throw refuse(place, findLocation(node), 'an aggregate in GROUP BY')
      return typed(ungoverned(column?.expression ?? readExpression(node, place)))
    }),
  )
}

/** Groups by a field of a declared type as it is stored, so that it can be compared by its key too. */
function ungoverned(expression: Expression): Expression {
  const isField = expression.kind === 'convert' && expression.argument.kind === 'field'
  return isField ? expression.argument : expression
}

function readOrderBy(select: SelectStmt, columns: readonly Column[], place: SqlPlace) {
  const sorts = (select.sortClause ?? []).flatMap((node) => ('SortBy' in node ? [node.SortBy] : []))
  return Object.freeze(
    sorts.map((sort) => {
      const column =
        sort.node === undefined ? undefined : columns[outputAt(sort.node, columns, place) ?? -1]
      return makeOrder(sort, column?.expression ?? typed(readExpression(sort.node, place)), place)
    }),
  )
}

function checkGrouping(query: SelectQuery, used: readonly Expression[], place: SqlPlace): void {
  const own = new Set(listRelations(query.from).map((relation) => relation.id))
  const groups = new Set(query.groupBy.map((each) => JSON.stringify(each)))
  for (const expression of used) {
    const part = findUngroupedPart(expression, own, groups)
    if (part !== undefined) {
      const name = part.kind === 'field' ? part.path.join('.') : 'a column'
      throw refuse(place, undefined, `${name}, which is neither in GROUP BY nor in an aggregate`)
    }
    for (const aggregate of aggregatesIn(expression)) {
      if (isOuterOnly(aggregate.arguments, own))
        throw refuse(place, undefined, `${aggregate.name} of nothing but an outer query's fields`)
    }
  }
}

function aggregatesIn(expression: Expression) {
  return collect(expression).flatMap((each) => (each.kind === 'aggregate' ? [each] : []))
}

function collect(expression: Expression): readonly Expression[] {
  return [expression, ...partsIn(expression).flatMap(collect)]
}

function partsIn(expression: Expression): readonly Expression[] {
  return expression.kind === 'case'
    ? expression.branches.flatMap((branch) => [branch.when, branch.value])
    : 'arguments' in expression
      ? expression.arguments
      : []
}
