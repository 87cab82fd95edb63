import type { Node, SubLink } from 'libpg-query'
import {
  coerceTo,
  makeComparison,
  makeConstant,
  markHeld,
  markWhole,
  negate,
} from '../tree/make-expression.ts'
import {
  type Comparison,
  type Expression,
  listParts,
  makeSelect,
  nothing,
  type Query,
} from '../tree/query.ts'
import { makeCall } from './read-call.ts'
import { readInQuery, requireOneColumn } from './read-in-query.ts'
import { enterSubQuery, refuseUnclearNames } from './read-name.ts'
import {
  isComparison,
  listTexts,
  type ReadExpression,
  refuse,
  runAt,
  type SqlPlace,
} from './sql-reader.ts'

/** Reads a sub-query that is a value or a test. */
export function readSubLink(node: SubLink, place: SqlPlace, read: ReadExpression): Expression {
  const { subselect, location } = node
  if (subselect === undefined || !('SelectStmt' in subselect))
    throw refuse(place, location, 'a sub-query that is no SELECT')
  const scope = enterSubQuery(place.scope)
  const query = place.reader.readSelect(subselect.SelectStmt, { ...place, scope })
  refuseUnclearNames(scope.subQuery, place)
  switch (node.subLinkType) {
    case 'EXISTS_SUBLINK':
      return Object.freeze({ kind: 'exists', type: 'boolean', query })
    case 'EXPR_SUBLINK':
      return readValue(query, place, location)
    case 'ARRAY_SUBLINK':
      return readArrayOfRows(query, place, location)
    case 'ALL_SUBLINK':
    case 'ANY_SUBLINK':
      return readQuantified(node, query, {
        place,
        left: listRow(node.testexpr).map((each) => read(each, place)),
      })
    default:
      throw refuse(place, location, `${linksRefused[node.subLinkType ?? ''] ?? 'a sub-query'} here`)
  }
}

/** Takes the first row of a query: PostgreSQL would fail at the second, naming nothing. */
function readValue(query: Query, place: SqlPlace, location: number | undefined): Expression {
  const { type, isWhole = false, held } = requireOneColumn(query, place, location)
  const first = Object.freeze({ ...query, limit: Math.min(query.limit ?? 1, 1) })
  const value: Expression = Object.freeze({ kind: 'scalar', type, query: first })
  return markHeld(markWhole(value, isWhole), held)
}

/** Gathers the rows of a query in its order, as ARRAY(SELECT …) does; of none an empty array. */
function readArrayOfRows(query: Query, place: SqlPlace, location: number | undefined): Expression {
  const { type, isWhole, zone, held } = requireOneColumn(query, place, location)
  if (typeof held === 'object')
    throw refuse(place, location, 'an array of arrays; write (SELECT jsonb_agg(…) …)')
  const id = place.reader.nextId()
  const item: Expression = { kind: 'column', type, isWhole, zone, held, relation: id, column: 0 }
  const gathered: Expression = {
    kind: 'aggregate',
    type: 'json',
    name: 'array_agg',
    arguments: [coerceTo(item, 'json')],
    distinct: false,
    orderBy: [],
    filter: undefined,
  }
  const none = makeConstant('json', '[]')
  const expression = makeCall('coalesce', [gathered, none], { place, location })
  const rows = makeSelect({
    columns: [{ name: 'list', expression }],
    from: [{ kind: 'query', id, query }],
    id: place.reader.nextId(),
  })
  const one = Object.freeze({ ...rows, grouped: true })
  const array: Expression = Object.freeze({ kind: 'scalar', type: 'json', query: one })
  return markHeld(array, { items: { type, isWhole, zone } })
}

/** Reads `a > ALL (SELECT …)`; `a IN (SELECT …)` has no sign. */
function readQuantified(
  node: SubLink,
  query: Query,
  { place, left }: { readonly place: SqlPlace; readonly left: readonly Expression[] },
): Expression {
  const { location } = node
  const isAny = node.subLinkType === 'ANY_SUBLINK'
  const sign = listTexts(node.operName).join('.')
  const isIn = isAny ? sign === '' || sign === '=' : sign === '<>'
  if (isIn) {
    const found = readInQuery({ left, query, location }, place)
    return isAny ? found : negate(found)
  }
  const word = `${sign} ${isAny ? 'ANY' : 'ALL'} of a sub-query`
  const [only = nothing] = left
  if (!isComparison(sign)) throw refuse(place, location, `${word}, which is not possible`)
  if (left.length !== 1) throw refuse(place, location, `${word} with a row of values`)
  if (hasGroupedPart(only))
    throw refuse(place, location, `an aggregate beside ${word}; write min or max of the sub-query`)
  return compareWithAll({ left: only, sign, query, isAny, location }, place)
}

/** PostgreSQL would take an aggregate that stands inside a sub-query for one of that sub-query's rows. */
function hasGroupedPart(expression: Expression): boolean {
  const { kind } = expression
  if (kind === 'aggregate' || kind === 'window' || kind === 'grouping') return true
  return listParts(expression).some(hasGroupedPart)
}

type Quantified = {
  readonly left: Expression
  readonly sign: Comparison
  readonly query: Query
  readonly isAny: boolean
  readonly location: number | undefined
}

/**
 * Makes a sub-query of one row. One comparison that is true (of ANY) or false (of ALL) decides; without one the
 * result is NULL if a comparison is, and what no rows give otherwise.
 */
function compareWithAll(
  { left, sign, query, isAny, location }: Quantified,
  place: SqlPlace,
): Expression {
  const { type, isWhole, zone, held } = requireOneColumn(query, place, location)
  const id = place.reader.nextId()
  const right: Expression = { kind: 'column', type, isWhole, zone, held, relation: id, column: 0 }
  const test = runAt(place, location, () =>
    coerceTo(makeComparison(sign, { left, right }), 'boolean'),
  )
  const gather = (name: string, each: Expression): Expression => ({
    kind: 'aggregate',
    type: 'boolean',
    name,
    arguments: [each],
    distinct: false,
    orderBy: [],
    filter: undefined,
  })
  const isUnknown: Expression = { kind: 'is-null', type: 'boolean', argument: test }
  const decided = gather(isAny ? 'bool_or' : 'bool_and', test)
  const branches = [
    { when: isAny ? decided : negate(decided), value: makeConstant('boolean', isAny) },
    { when: gather('bool_or', isUnknown), value: makeConstant('boolean', null) },
  ]
  const otherwise = makeConstant('boolean', !isAny)
  const expression: Expression = { kind: 'case', type: 'boolean', branches, otherwise }
  const rows = makeSelect({
    columns: [{ name: 'is', expression }],
    from: [{ kind: 'query', id, query }],
    id: place.reader.nextId(),
  })
  const one = Object.freeze({ ...rows, grouped: true })
  return Object.freeze({ kind: 'scalar', type: 'boolean', query: one })
}

/** Lists the parts of a row, `(a, b)`, or the one value. */
function listRow(node: Node | undefined): readonly (Node | undefined)[] {
  return node !== undefined && 'RowExpr' in node ? (node.RowExpr.args ?? []) : [node]
}

const linksRefused: Readonly<Record<string, string>> = {
  ROWCOMPARE_SUBLINK: 'a comparison of rows',
}
