import { limits } from '@tollbase/contract/limits'
import type {
  A_ArrayExpr,
  A_Const,
  A_Expr,
  A_Indirection,
  CaseExpr,
  CollateClause,
  GroupingFunc,
  Node,
} from 'libpg-query'
import { countSteps } from '../steps.ts'
import { functionOperators } from '../tree/functions/all-functions.ts'
import {
  areWhole,
  coerceTo,
  findCommonHeld,
  findItems,
  makeComparison,
  makeConstant,
  makeDigits,
  makeParameter,
  markHeld,
  markWhole,
  markZone,
  negate,
  readNumberText,
  unifyTypes,
} from '../tree/make-expression.ts'
import { type Expression, nothing, type TypedConstant } from '../tree/query.ts'
import { describeImpossible } from './describe-construct.ts'
import { expandSets } from './expand-sets.ts'
import { makeArray, makeCall, makeTime, readCall } from './read-call.ts'
import { readCast } from './read-cast.ts'
import { readIn } from './read-in.ts'
import { noteComparison, readName } from './read-name.ts'
import { readLike, readMatch, readSimilar } from './read-pattern.ts'
import { readSubLink } from './read-sub-link.ts'
import {
  enterChain,
  enterLevel,
  findFirstLocation,
  findNode,
  isComparison,
  listItems,
  listTexts,
  readWholeNumber,
  refuse,
  runAt,
  type SqlPlace,
} from './sql-reader.ts'

/** Reads the checked expression of a node of the parser's tree, or throws a 400 that names what is not possible. */
export function readExpression(node: Node | undefined, outer: SqlPlace): Expression {
  if (node === undefined) return nothing
  const expression = readNode(node, outer)
  const location = findLocation(node) ?? -1
  if (location >= 0) outer.reader.noteLocation(expression, location)
  return expression
}

function readNode(node: Node, outer: SqlPlace): Expression {
  countSteps('A_Const' in node ? 2 : 16)
  const place = outer.links === undefined ? enterLevel(outer, findLocation(node)) : outer
  const inner = (each: Node | undefined) => readExpression(each, place)
  if ('ColumnRef' in node) {
    const { fields, location } = node.ColumnRef
    if (fields?.some((field) => 'A_Star' in field))
      throw refuse(place, location, 'a * that is no column')
    return readName(listTexts(fields), place, location)
  }
  if ('A_Const' in node) return readConstant(node.A_Const, place)
  if ('ParamRef' in node)
    return readParameter(node.ParamRef.number ?? 0, place, node.ParamRef.location)
  if ('TypeCast' in node) return readCast(node.TypeCast, place, readExpression)
  if ('FuncCall' in node) return readCall(node.FuncCall, place, readExpression)
  if ('A_Expr' in node) return readOperator(node.A_Expr, place)
  if ('BoolExpr' in node) {
    const { boolop, args = [], location } = node.BoolExpr
    const parts = args.map((each) => toCondition(inner(each), place, location))
    const [first = nothing] = parts
    if (boolop === 'NOT_EXPR')
      return Object.freeze({ kind: 'not', type: 'boolean', argument: first })
    const kind = boolop === 'AND_EXPR' ? 'and' : 'or'
    return Object.freeze({ kind, type: 'boolean', arguments: Object.freeze(parts) })
  }
  if ('NullTest' in node) {
    const isNull: Expression = Object.freeze({
      kind: 'is-null',
      type: 'boolean',
      argument: inner(node.NullTest.arg),
    })
    return node.NullTest.nulltesttype === 'IS_NULL' ? isNull : negate(isNull)
  }
  if ('BooleanTest' in node) return readTruthTest(node.BooleanTest, place)
  if ('CaseExpr' in node) return readCase(node.CaseExpr, place)
  if ('CoalesceExpr' in node)
    return makeCall('coalesce', (node.CoalesceExpr.args ?? []).map(inner), { place })
  if ('MinMaxExpr' in node) {
    const name = node.MinMaxExpr.op === 'IS_LEAST' ? 'least' : 'greatest'
    return makeCall(name, (node.MinMaxExpr.args ?? []).map(inner), { place })
  }
  if ('SubLink' in node) return readSubLink(node.SubLink, place, readExpression)
  if ('SQLValueFunction' in node)
    return makeTime(node.SQLValueFunction.op ?? '', place, findLocation(node))
  if ('GroupingFunc' in node) return readGrouping(node.GroupingFunc, place)
  if ('CollateClause' in node) return readCollation(node.CollateClause, place)
  if ('A_ArrayExpr' in node) return readArray(node.A_ArrayExpr, place)
  if ('A_Indirection' in node) return readElement(node.A_Indirection, place)
  throw refuse(place, findLocation(node), describeImpossible(node))
}

/** Reads GROUPING, whose arguments are parts of GROUP BY; the query checks that once it has been read. */
function readGrouping({ args = [], location }: GroupingFunc, place: SqlPlace): Expression {
  const { aggregates: reason } = place.without
  if (reason !== undefined) throw refuse(place, location, `GROUPING in ${reason}`)
  if (args.length > groupingArgumentsMax)
    throw refuse(place, location, `GROUPING of more than ${groupingArgumentsMax} arguments`)
  const parts = Object.freeze(args.map((each) => toStored(readExpression(each, place))))
  return Object.freeze({ kind: 'grouping', type: 'number', isWhole: true, arguments: parts })
}

/** The bits of PostgreSQL's integer. */
const groupingArgumentsMax = 31

/** Returns a field of a declared type as it is stored, as it is grouped by: so it can be compared by its key too. */
export function toStored(expression: Expression): Expression {
  const isField = expression.kind === 'convert' && expression.argument.kind === 'field'
  return isField ? expression.argument : expression
}

/** Texts are ordered by their code points here, which is what COLLATE "C" asks for. */
function readCollation({ arg, collname }: CollateClause, place: SqlPlace): Expression {
  const name = listTexts(collname).at(-1) ?? ''
  if (name !== 'C')
    throw refuse(place, place.location, `COLLATE "${name}"; texts have the order "C"`)
  const argument = readExpression(arg, place)
  if (argument.type === 'json' || argument.type === 'text') return argument
  throw refuse(place, place.location, 'COLLATE of something that is no text')
}

/** Reads `ARRAY[a, b]`, which is a list here. Elements that are lists themselves would be dimensions in PostgreSQL. */
function readArray({ elements = [], location }: A_ArrayExpr, place: SqlPlace): Expression {
  if (elements.length === 0)
    throw refuse(place, location, 'ARRAY[] without a type; write ARRAY[]::int[]')
  return makeArray(
    elements.map((each) => readExpression(each, place)),
    { place, location },
  )
}

/** Reads `(array)[1]`, an element of an array, which counts from 1; or `json['name']`, a member. */
function readElement(node: A_Indirection, place: SqlPlace): Expression {
  const array = readExpression(node.arg, place)
  const [index, ...others] = node.indirection ?? []
  const names = (node.indirection ?? []).flatMap((each) => findMemberName(each) ?? [])
  if (names.length === node.indirection?.length && findItems(array) === undefined)
    return names.reduce(
      (json, name) => makeCall('->', [json, readExpression(name, place)], { place }),
      array,
    )
  const items = findItems(array)
  const item = index !== undefined && 'A_Indices' in index ? index.A_Indices : undefined
  const number =
    item === undefined || item.is_slice
      ? undefined
      : readWholeNumber(readExpression(item.uidx, place), limits.offsetMax)
  if (items === undefined || others.length > 0 || number === undefined || number < 1)
    throw refuse(place, findFirstLocation(node), describeImpossible({ A_Indirection: node }))
  const sign = items.type === 'text' ? '->>' : '->'
  const element = makeCall(sign, [array, makeDigits(String(number - 1))], { place })
  const typed = coerceTo(element, items.type)
  return markZone(markWhole(typed, items.isWhole === true), items.zone)
}

/** Returns the text of `['name']`; a number could count from 0, as of JSON, or from 1, as of arrays. */
function findMemberName(node: Node): Node | undefined {
  const index =
    'A_Indices' in node && node.A_Indices.is_slice !== true ? node.A_Indices.uidx : undefined
  const isText = index !== undefined && 'A_Const' in index && index.A_Const.sval !== undefined
  return isText ? index : undefined
}

/** Converts the expression to a condition. */
export function toCondition(
  expression: Expression,
  place: SqlPlace,
  location?: number,
): Expression {
  return runAt(place, location, () => coerceTo(expression, 'boolean'))
}

/** Returns the place of a node, as far as the parser gives it. */
export function findLocation(node: Node): number | undefined {
  const [inside] = Object.values(node)
  if (typeof inside !== 'object' || inside === null || !('location' in inside)) return undefined
  return typeof inside.location === 'number' ? inside.location : undefined
}

function readConstant(node: A_Const, place: SqlPlace): TypedConstant {
  if (node.isnull) return nothing
  if (node.boolval !== undefined) return makeConstant('boolean', node.boolval.boolval ?? false)
  if (node.sval !== undefined) return makeConstant('text', node.sval.sval ?? '')
  if (node.ival !== undefined) return makeDigits(String(node.ival.ival ?? 0))
  const number = node.fval === undefined ? undefined : readNumberText(node.fval.fval ?? '')
  if (number === undefined)
    throw refuse(place, node.location, 'a number of this form, which is not possible')
  return makeDigits(number)
}

function readParameter(number: number, place: SqlPlace, location: number | undefined): Expression {
  const given = place.reader.parameters[number - 1]
  const name = place.reader.source.parameterNames[number - 1] ?? `$${number}`
  if (given === undefined)
    throw refuse(place, location, `the parameter ${name}, which has no value`)
  if ('kind' in given) return given
  if ('values' in given || given.list)
    throw refuse(place, location, `the list ${name} outside of IN (…) and = ANY (…)`)
  return makeParameter(given)
}

function readCase(node: CaseExpr, place: SqlPlace): Expression {
  const inner = (each: Node | undefined) => readExpression(each, place)
  const subject = node.arg === undefined ? undefined : inner(node.arg)
  const whens = (node.args ?? []).flatMap((each) => ('CaseWhen' in each ? [each.CaseWhen] : []))
  const otherwise = node.defresult === undefined ? undefined : inner(node.defresult)
  const results = runAt(place, node.location, () =>
    // PostgreSQL looks at ELSE first.
    unifyTypes([otherwise ?? nothing, ...whens.map((when) => inner(when.result))]),
  )
  const branches = whens.map((when, index) => {
    const test = inner(when.expr)
    const is = runAt(place, when.location, () =>
      subject === undefined
        ? coerceTo(test, 'boolean')
        : makeComparison('=', { left: subject, right: test }),
    )
    return Object.freeze({ when: is, value: results[index + 1] ?? nothing })
  })
  const made: Expression = Object.freeze({
    kind: 'case',
    type: results[0]?.type ?? 'null',
    branches: Object.freeze(branches),
    otherwise: otherwise === undefined ? undefined : results[0],
  })
  return markHeld(markWhole(made, areWhole(results)), findCommonHeld(results))
}

function readTruthTest(node: { booltesttype?: string; arg?: Node }, place: SqlPlace): Expression {
  const argument = toCondition(readExpression(node.arg, place), place)
  const test = (kind: 'is-true' | 'is-false' | 'is-null'): Expression =>
    Object.freeze({ kind, type: 'boolean', argument })
  switch (node.booltesttype) {
    case 'IS_TRUE':
      return test('is-true')
    case 'IS_NOT_TRUE':
      return negate(test('is-true'))
    case 'IS_FALSE':
      return test('is-false')
    case 'IS_NOT_FALSE':
      return negate(test('is-false'))
    case 'IS_UNKNOWN':
      return test('is-null')
    default:
      return negate(test('is-null'))
  }
}

function readOperator(node: A_Expr, place: SqlPlace): Expression {
  const inner = (each: Node | undefined) => readExpression(each, place)
  const sign = listTexts(node.name).join('.')
  const { location } = node
  const expanded = runAt(place, location, () => expandSets(node))
  if (expanded !== undefined) return readExpression(expanded, place)
  const foldsCase = node.kind === 'AEXPR_ILIKE' || sign === '~*' || sign === '!~*'
  if (foldsCase && findNode(node, 'CollateClause') !== undefined)
    throw refuse(place, location, 'COLLATE beside a pattern that ignores case')
  switch (node.kind) {
    case 'AEXPR_OP':
      return readBinary(node, sign, place)
    case 'AEXPR_DISTINCT':
    case 'AEXPR_NOT_DISTINCT': {
      const sides = { left: inner(node.lexpr), right: inner(node.rexpr) }
      const differs = runAt(place, location, () => makeComparison('is distinct from', sides))
      return node.kind === 'AEXPR_DISTINCT' ? differs : negate(differs)
    }
    case 'AEXPR_NULLIF':
      return makeCall('nullif', [inner(node.lexpr), inner(node.rexpr)], { place, location })
    case 'AEXPR_IN':
      return readIn(node, place, readExpression)
    case 'AEXPR_LIKE':
    case 'AEXPR_ILIKE':
      return readLike(node, place, readExpression)
    case 'AEXPR_SIMILAR':
      return readSimilar(node, place, readExpression)
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN':
    case 'AEXPR_BETWEEN_SYM':
    case 'AEXPR_NOT_BETWEEN_SYM':
      return readBetween(node, place)
    default:
      throw refuse(place, location, `${sign}, which is not possible`)
  }
}

/** Reads `a BETWEEN b AND c`; SYMMETRIC means between them in either order. */
function readBetween(node: A_Expr, place: SqlPlace): Expression {
  const { kind, location } = node
  const left = readExpression(node.lexpr, place)
  const [from = nothing, to = nothing] = listItems(node.rexpr).map((each) =>
    readExpression(each, place),
  )
  const within = (least: Expression, most: Expression) =>
    join('and', [
      makeComparison('>=', { left, right: least }),
      makeComparison('<=', { left, right: most }),
    ])
  const isIn = runAt(place, location, () =>
    kind === 'AEXPR_BETWEEN_SYM' || kind === 'AEXPR_NOT_BETWEEN_SYM'
      ? join('or', [within(from, to), within(to, from)])
      : within(from, to),
  )
  return kind === 'AEXPR_BETWEEN' || kind === 'AEXPR_BETWEEN_SYM' ? isIn : negate(isIn)
}

function join(kind: 'and' | 'or', args: readonly Expression[]): Expression {
  return Object.freeze({ kind, type: 'boolean', arguments: Object.freeze(args) })
}

function readBinary(node: A_Expr, sign: string, place: SqlPlace): Expression {
  const { location } = node
  const { links: _, ...own } = place
  const right = readExpression(node.rexpr, own)
  if (node.lexpr === undefined) {
    if (sign === '+') return runAt(place, location, () => coerceTo(right, 'number'))
    if (sign !== '-') throw refuse(place, location, `the operator ${sign}, which is not possible`)
    if (right.kind === 'constant' && right.type === 'number' && right.value !== null)
      return makeDigits(readNumberText(`-${right.value}`) ?? String(right.value).slice(1))
    if (right.type === 'interval')
      return makeCall('*', [right, makeDigits('-1')], { place, location })
    return makeCall('-', [makeDigits('0'), right], { place, location })
  }
  const isChain = 'A_Expr' in node.lexpr && node.lexpr.A_Expr.kind === 'AEXPR_OP'
  const left = readExpression(node.lexpr, isChain ? enterChain(place, location) : own)
  if (sign === '/' && areWhole([left]) && areWhole([right]))
    throw refuse(place, location, wholeDivision)
  if (isComparison(sign)) {
    noteComparison(place, [left, right])
    return runAt(place, location, () => makeComparison(sign, { left, right }))
  }
  if (sign === '~' || sign === '~*' || sign === '!~' || sign === '!~*')
    return readMatch({ sign, left, right }, place, location)
  return makeCall(functionOperators.get(sign) ?? sign, [left, right], { place, location })
}

/** PostgreSQL would cut the quotient, and where a field is divided nobody could tell by the statement. */
const wholeDivision =
  'a division of two whole numbers, which PostgreSQL would cut; write a / b::numeric for decimals, or div(a, b) for a whole number'
