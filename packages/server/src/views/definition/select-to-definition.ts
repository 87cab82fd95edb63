import { limits } from '@tollbase/contract/limits'
import type { Alias, JoinExpr, Node, RangeFunction, RangeVar, SelectStmt } from 'libpg-query'
import { assert } from '../../base/assert.ts'
import { getColumnName, renameTwins } from '../../query/sql/column-name.ts'
import { expandValues } from '../../query/sql/expand-values.ts'
import { readWindows } from '../../query/sql/named-windows.ts'
import type { SourceText } from '../../query/sql/source-text.ts'
import { findFirstLocation, listTexts } from '../../query/sql/sql-reader.ts'
import { toExpressionJson } from './expression-to-json.ts'
import { readCount, readName, type TranslationContext } from './translation-context.ts'
import type { Json, ViewDefinition } from './view-definition.ts'
import { toOrderJson } from './window-to-json.ts'

/** Returns the definition that a checked statement states. */
export function toDefinition({ select, refuse }: SourceText): ViewDefinition {
  return toSelectJson(select, {
    refuse,
    windows: new Map(),
    expression: toExpressionJson,
    query: toSelectJson,
  })
}

function toSelectJson(given: SelectStmt, outer: TranslationContext): ViewDefinition {
  const select = expandValues(given) ?? given
  if (select.withClause?.recursive)
    throw outer.refuse(
      select.withClause.location,
      'WITH RECURSIVE in a view, which keeps its rows by what they are made of; ask it in SQL, or as a predefined query',
    )
  const tables = (select.withClause?.ctes ?? []).map((node): Json => {
    assert('CommonTableExpr' in node, 'WITH has common tables')
    const { ctename = '', ctequery, location, aliascolnames } = node.CommonTableExpr
    assert(ctequery !== undefined && 'SelectStmt' in ctequery, 'a common table is a SELECT')
    return {
      [readName(outer, ctename, location)]: toSelectJson(
        renameTwins(ctequery.SelectStmt, aliascolnames?.length ?? 0),
        outer,
      ),
      ...toColumnsJson(aliascolnames, outer),
    }
  })
  const isSet = select.op !== undefined && select.op !== 'SETOP_NONE'
  const windows = readWindows(select.windowClause, outer.refuse)
  const inside: TranslationContext = { ...outer, windows }
  const order = (select.sortClause ?? []).map((node) => toOrderJson(node, inside))
  const [limit, offset] = [
    readCount(inside, select.limitCount),
    readCount(inside, select.limitOffset),
  ]
  return {
    ...(tables.length === 0 ? {} : { with: tables }),
    ...(isSet ? jsonOfSet(select, inside) : jsonOfSimple(select, inside)),
    ...(order.length === 0 ? {} : { order_by: order }),
    ...(limit === null ? {} : { limit }),
    ...(offset === null || offset === 0 ? {} : { offset }),
  }
}

function jsonOfSet({ op, all, larg, rarg }: SelectStmt, given: TranslationContext): ViewDefinition {
  assert(larg !== undefined && rarg !== undefined, 'a set operation has two sides')
  const word = op?.replace('SETOP_', '').toLowerCase()
  const name = all ? `${word}_all` : `${word}`
  const left = toSelectJson(larg, given)
  const right = toSelectJson(renameTwins(rarg, limits.sqlColumnsMax), given)
  const chain = left[name]
  const isChain = Array.isArray(chain) && Object.keys(left).length === 1
  return { [name]: isChain ? [...chain, right] : [left, right] }
}

function jsonOfSimple(select: SelectStmt, given: TranslationContext): ViewDefinition {
  const from = (select.fromClause ?? []).map((node) => jsonOfRelation(node, given))
  const [first, second] = from
  const isJoined = first !== undefined && second === undefined && isJoin(first)
  const groups = (select.groupClause ?? []).flatMap((node) => toGroupsJson(node, given))
  const on = (select.distinctClause ?? []).filter((node) => Object.keys(node).length > 0)
  const { whereClause: where, havingClause: having } = select
  const sources = isJoined
    ? first
    : first === undefined
      ? {}
      : { from: second === undefined ? first : from }
  return {
    select: jsonOfColumns(select.targetList ?? [], given),
    ...(select.distinctClause !== undefined && on.length === 0 ? { distinct: true } : {}),
    ...(on.length === 0 ? {} : { distinct_on: on.map((node) => toExpressionJson(node, given)) }),
    ...sources,
    ...(where === undefined ? {} : { where: toExpressionJson(where, given) }),
    ...(groups.length === 0 ? {} : { group_by: groups }),
    ...(having === undefined ? {} : { having: toExpressionJson(having, given) }),
  }
}

/** Returns the parts of GROUP BY that a node stands for. */
function toGroupsJson(node: Node, given: TranslationContext): readonly Json[] {
  if ('RowExpr' in node)
    return (node.RowExpr.args ?? []).flatMap((each) => toGroupsJson(each, given))
  if (!('GroupingSet' in node)) return [toExpressionJson(node, given)]
  const { kind = '', content = [] } = node.GroupingSet
  const parts = content.map((each): Json => {
    if ('RowExpr' in each) return toGroupsJson(each, given)
    const isEmpty = 'GroupingSet' in each && each.GroupingSet.kind === 'GROUPING_SET_EMPTY'
    return isEmpty ? [] : (toGroupsJson(each, given)[0] ?? [])
  })
  const name = kind === 'GROUPING_SET_ROLLUP' ? '$rollup' : '$cube'
  const isSets = kind === 'GROUPING_SET_SETS' || kind === 'GROUPING_SET_EMPTY'
  return isSets
    ? [{ $grouping_sets: kind === 'GROUPING_SET_EMPTY' ? [[]] : parts }]
    : [{ [name]: parts }]
}

function isJoin(relation: Json): relation is ViewDefinition {
  if (typeof relation !== 'object' || relation === null) return false
  return 'from' in relation && 'joins' in relation && !('select' in relation)
}

function jsonOfColumns(targets: readonly Node[], given: TranslationContext): readonly Json[] {
  let expressions = 0
  return targets.map((node) => {
    assert('ResTarget' in node, 'columns are targets')
    const { val, name, location } = node.ResTarget
    assert(val !== undefined, 'a column has a value')
    if ('ColumnRef' in val && val.ColumnRef.fields?.some((field) => 'A_Star' in field)) {
      const names = listTexts(val.ColumnRef.fields)
      return names.length === 0 ? '*' : `${names.join('::')}.*`
    }
    const called = name ?? getColumnName(val, expressions)
    expressions += 1
    const value = toExpressionJson(val, given)
    const isPlain = typeof value === 'string' && value.split('.').at(-1) === called
    return isPlain ? value : { [readName(given, called, location)]: value }
  })
}

function jsonOfRelation(node: Node, given: TranslationContext): Json {
  if ('RangeVar' in node) return jsonOfTable(node.RangeVar, given)
  if ('JoinExpr' in node) return toJoinJson(node.JoinExpr, given)
  if ('RangeFunction' in node)
    return toNamedJson(toRowsJson(node.RangeFunction, given), node.RangeFunction.alias, given)
  assert('RangeSubselect' in node, 'a relation is a table, a join or a sub-query')
  const { subquery, alias, lateral } = node.RangeSubselect
  assert(subquery !== undefined && 'SelectStmt' in subquery, 'a sub-query is a SELECT')
  const count = alias?.colnames?.length ?? 0
  const query = toSelectJson(renameTwins(subquery.SelectStmt, count), given)
  if (lateral && alias === undefined)
    throw given.refuse(
      findFirstLocation(subquery),
      'LATERAL without a name; write LATERAL (…) AS t',
    )
  return toNamedJson(lateral ? { lateral: query } : query, alias, given)
}

/** Returns a function that gives rows, {"$unnest": …}. */
function toRowsJson({ functions, ordinality }: RangeFunction, given: TranslationContext): Json {
  const [list] = functions ?? []
  const call = list !== undefined && 'List' in list ? list.List.items?.[0] : undefined
  assert(call !== undefined && 'FuncCall' in call, 'a function in FROM is a call')
  const { funcname, args = [] } = call.FuncCall
  const [first] = args
  const isArray = first !== undefined && 'A_ArrayExpr' in first
  const items = isArray ? (first.A_ArrayExpr.elements ?? []) : args
  const parts = items.map((each) => toExpressionJson(each, given))
  const [only = null] = parts
  return {
    [`$${(listTexts(funcname).at(-1) ?? '').toLowerCase()}`]:
      parts.length === 1 && !isArray ? only : parts,
    ...(ordinality ? { ordinality } : {}),
  }
}

function toNamedJson(query: Json, alias: Alias | undefined, given: TranslationContext): Json {
  return alias?.aliasname === undefined
    ? query
    : { [readName(given, alias.aliasname)]: query, ...toColumnsJson(alias.colnames, given) }
}

/** Returns the names of columns behind an alias, `t (a, b)`, as the member beside it. */
function toColumnsJson(colnames: readonly Node[] | undefined, given: TranslationContext) {
  const names = listTexts(colnames).map((name) => readName(given, name))
  return names.length === 0 ? {} : { columns: names }
}

function jsonOfTable(
  { schemaname, relname = '', alias, location }: RangeVar,
  given: TranslationContext,
): Json {
  const name =
    schemaname === undefined ? readName(given, relname, location) : `${schemaname}::${relname}`
  return alias?.aliasname === undefined
    ? name
    : {
        [readName(given, alias.aliasname, location)]: name,
        ...toColumnsJson(alias.colnames, given),
      }
}

const joinTypes = new Map([
  ['JOIN_INNER', 'inner'],
  ['JOIN_LEFT', 'left'],
  ['JOIN_RIGHT', 'right'],
  ['JOIN_FULL', 'full'],
])

/** Returns a join as JSON, in one list with the joins of its left side. */
function toJoinJson(
  { larg, rarg, jointype, quals, isNatural, usingClause }: JoinExpr,
  given: TranslationContext,
): ViewDefinition {
  assert(larg !== undefined && rarg !== undefined, 'a join has two sides')
  if (isNatural) throw given.refuse(undefined, 'NATURAL JOIN in a view; write USING (…)')
  const left = jsonOfRelation(larg, given)
  const join = jsonOfRelation(rarg, given)
  const type = joinTypes.get(jointype ?? '') ?? ''
  const using = listTexts(usingClause)
  const own: Json =
    using.length > 0
      ? { join, type, using: using.map((name) => readName(given, name)) }
      : quals === undefined
        ? { join, type: 'cross' }
        : { join, type, on: toExpressionJson(quals, given) }
  const before = isJoin(left) && Array.isArray(left.joins) ? left.joins : []
  return { from: isJoin(left) ? (left.from ?? null) : left, joins: [...before, own] }
}
