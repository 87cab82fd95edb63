import type { JoinExpr, Node, RangeVar, SelectStmt } from 'libpg-query'
import { assert } from '../../base/assert.ts'
import { nameOf } from '../../query/sql/column-name.ts'
import type { SourceText } from '../../query/sql/source-text.ts'
import { textsOf } from '../../query/sql/sql-reader.ts'
import { jsonOfExpression } from './expression-to-json.ts'
import { countIn, type Given, nameIn } from './translation-context.ts'
import type { Json, ViewDefinition } from './view-definition.ts'
import { jsonOfOrder } from './window-to-json.ts'

/** The definition that a statement states whose meaning has been checked. */
export function definitionOfSelect({ select, refuse }: SourceText): ViewDefinition {
  return jsonOfSelect(select, {
    refuse,
    windows: new Map(),
    expression: jsonOfExpression,
    query: jsonOfSelect,
  })
}

function jsonOfSelect(select: SelectStmt, outer: Given): ViewDefinition {
  const tables = (select.withClause?.ctes ?? []).map((node): Json => {
    assert('CommonTableExpr' in node, 'WITH has common tables')
    const { ctename = '', ctequery, location } = node.CommonTableExpr
    assert(ctequery !== undefined && 'SelectStmt' in ctequery, 'a common table is a SELECT')
    return { [nameIn(outer, ctename, location)]: jsonOfSelect(ctequery.SelectStmt, outer) }
  })
  const isSet = select.op !== undefined && select.op !== 'SETOP_NONE'
  const windows = new Map(
    (select.windowClause ?? []).flatMap((node) =>
      'WindowDef' in node ? [[node.WindowDef.name ?? '', node.WindowDef] as const] : [],
    ),
  )
  const given: Given = { ...outer, windows }
  const order = (select.sortClause ?? []).map((node) => jsonOfOrder(node, given))
  const [limit, offset] = [countIn(given, select.limitCount), countIn(given, select.limitOffset)]
  return {
    ...(tables.length === 0 ? {} : { with: tables }),
    ...(isSet ? jsonOfSet(select, given) : jsonOfSimple(select, given)),
    ...(order.length === 0 ? {} : { order_by: order }),
    ...(limit === null ? {} : { limit }),
    ...(offset === null || offset === 0 ? {} : { offset }),
  }
}

function jsonOfSet({ op, all, larg, rarg }: SelectStmt, given: Given): ViewDefinition {
  assert(larg !== undefined && rarg !== undefined, 'a set operation has two sides')
  const word = op?.replace('SETOP_', '').toLowerCase()
  const name = all ? `${word}_all` : `${word}`
  const [left, right] = [jsonOfSelect(larg, given), jsonOfSelect(rarg, given)]
  const chain = left[name]
  const isChain = Array.isArray(chain) && Object.keys(left).length === 1
  return { [name]: isChain ? [...chain, right] : [left, right] }
}

function jsonOfSimple(select: SelectStmt, given: Given): ViewDefinition {
  const from = (select.fromClause ?? []).map((node) => jsonOfRelation(node, given))
  const [first, second] = from
  const isJoined = first !== undefined && second === undefined && isJoin(first)
  const groups = (select.groupClause ?? []).map((node) => jsonOfExpression(node, given))
  const { whereClause: where, havingClause: having } = select
  const sources = isJoined
    ? first
    : first === undefined
      ? {}
      : { from: second === undefined ? first : from }
  return {
    select: jsonOfColumns(select.targetList ?? [], given),
    ...(select.distinctClause === undefined ? {} : { distinct: true }),
    ...sources,
    ...(where === undefined ? {} : { where: jsonOfExpression(where, given) }),
    ...(groups.length === 0 ? {} : { group_by: groups }),
    ...(having === undefined ? {} : { having: jsonOfExpression(having, given) }),
  }
}

function isJoin(relation: Json): relation is ViewDefinition {
  if (typeof relation !== 'object' || relation === null) return false
  return 'from' in relation && 'joins' in relation && !('select' in relation)
}

function jsonOfColumns(targets: readonly Node[], given: Given): readonly Json[] {
  let expressions = 0
  return targets.map((node) => {
    assert('ResTarget' in node, 'columns are targets')
    const { val, name, location } = node.ResTarget
    assert(val !== undefined, 'a column has a value')
    if ('ColumnRef' in val && val.ColumnRef.fields?.some((field) => 'A_Star' in field)) {
      const names = textsOf(val.ColumnRef.fields)
      return names.length === 0 ? '*' : `${names.join('::')}.*`
    }
    const called = name ?? nameOf(val, expressions)
    expressions += 1
    const value = jsonOfExpression(val, given)
    const isPlain = typeof value === 'string' && value.split('.').at(-1) === called
    return isPlain ? value : { [nameIn(given, called, location)]: value }
  })
}

function jsonOfRelation(node: Node, given: Given): Json {
  if ('RangeVar' in node) return jsonOfTable(node.RangeVar, given)
  if ('JoinExpr' in node) return jsonOfJoin(node.JoinExpr, given)
  assert('RangeSubselect' in node, 'a relation is a table, a join or a sub-query')
  const { subquery, alias } = node.RangeSubselect
  assert(subquery !== undefined && 'SelectStmt' in subquery, 'a sub-query is a SELECT')
  const query = jsonOfSelect(subquery.SelectStmt, given)
  return alias?.aliasname === undefined ? query : { [nameIn(given, alias.aliasname)]: query }
}

function jsonOfTable({ schemaname, relname = '', alias, location }: RangeVar, given: Given): Json {
  const name =
    schemaname === undefined ? nameIn(given, relname, location) : `${schemaname}::${relname}`
  return alias?.aliasname === undefined
    ? name
    : { [nameIn(given, alias.aliasname, location)]: name }
}

const joinTypes = new Map([
  ['JOIN_INNER', 'inner'],
  ['JOIN_LEFT', 'left'],
  ['JOIN_RIGHT', 'right'],
  ['JOIN_FULL', 'full'],
])

/** A join with those of its left side in one list. */
function jsonOfJoin({ larg, rarg, jointype, quals }: JoinExpr, given: Given): ViewDefinition {
  assert(larg !== undefined && rarg !== undefined, 'a join has two sides')
  const left = jsonOfRelation(larg, given)
  const join = jsonOfRelation(rarg, given)
  const type = joinTypes.get(jointype ?? '') ?? ''
  const own: Json =
    quals === undefined
      ? { join, type: 'cross' }
      : { join, type, on: jsonOfExpression(quals, given) }
  const before = isJoin(left) && Array.isArray(left.joins) ? left.joins : []
  return { from: isJoin(left) ? (left.from ?? null) : left, joins: [...before, own] }
}
