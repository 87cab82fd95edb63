import type { A_Expr, A_Indirection, Node, SubLink, TypeCast } from 'libpg-query'
import { assert, requirePresent } from '../../base/assert.ts'
import { describeConstruct } from '../../query/sql/describe-construct.ts'
import { expandInterval } from '../../query/sql/expand-interval.ts'
import { expandSets } from '../../query/sql/expand-sets.ts'
import { similarEscape, splitEscape, writeEscapes } from '../../query/sql/read-pattern.ts'
import { writeSimilar } from '../../query/sql/similar-to.ts'
import { listItems, listTexts } from '../../query/sql/sql-reader.ts'
import { functionOperators } from '../../query/tree/functions/all-functions.ts'
import {
  readCount,
  readName,
  readPath,
  type TranslationContext,
  toNumberJson,
} from './translation-context.ts'
import type { Json } from './view-definition.ts'
import { infixes } from './view-operators.ts'
import { toCallJson } from './window-to-json.ts'

/** Returns the JSON of an expression that has been checked. */
export function toExpressionJson(node: Node, given: TranslationContext): Json {
  const inner = (each: Node | undefined) =>
    toExpressionJson(requirePresent(each, 'an operand'), given)
  const all = (nodes: readonly Node[] | undefined) => (nodes ?? []).map(inner)
  if ('ColumnRef' in node)
    return readPath(given, listTexts(node.ColumnRef.fields), node.ColumnRef.location)
  if ('A_Const' in node) {
    const { isnull, boolval, sval, ival, fval } = node.A_Const
    if (isnull) return null
    if (boolval !== undefined) return boolval.boolval ?? false
    if (sval !== undefined) return { $literal: sval.sval ?? '' }
    return toNumberJson(fval?.fval ?? String(ival?.ival ?? 0))
  }
  if ('TypeCast' in node) return jsonOfCast(node.TypeCast, given)
  if ('FuncCall' in node) return toCallJson(node.FuncCall, given)
  if ('A_Expr' in node) return jsonOfOperator(node.A_Expr, given)
  if ('BoolExpr' in node) {
    const { boolop, args } = node.BoolExpr
    if (boolop === 'NOT_EXPR') return { $not: inner(args?.[0]) }
    return { [boolop === 'AND_EXPR' ? '$and' : '$or']: all(args) }
  }
  if ('NullTest' in node) {
    const test = { $is_null: inner(node.NullTest.arg) }
    return node.NullTest.nulltesttype === 'IS_NULL' ? test : { $not: test }
  }
  if ('BooleanTest' in node) {
    const { arg, booltesttype = '' } = node.BooleanTest
    const test = { [`$is_${booltesttype.replace(/^IS_(NOT_)?/, '').toLowerCase()}`]: inner(arg) }
    return booltesttype.startsWith('IS_NOT_') ? { $not: test } : test
  }
  if ('CaseExpr' in node) {
    const { arg, args = [], defresult } = node.CaseExpr
    const branches = args.map((each): Json => {
      assert('CaseWhen' in each, 'CASE has branches')
      const { expr, result } = each.CaseWhen
      const when = arg === undefined ? inner(expr) : { $eq: [inner(arg), inner(expr)] }
      return { when, value: inner(result) }
    })
    return { $case: branches, ...(defresult === undefined ? {} : { else: inner(defresult) }) }
  }
  if ('CoalesceExpr' in node) return called('$coalesce', all(node.CoalesceExpr.args))
  if ('MinMaxExpr' in node) {
    const { op, args } = node.MinMaxExpr
    return called(op === 'IS_LEAST' ? '$least' : '$greatest', all(args))
  }
  if ('SubLink' in node) return jsonOfSubLink(node.SubLink, given)
  if ('GroupingFunc' in node) return called('$grouping', all(node.GroupingFunc.args))
  if ('A_ArrayExpr' in node) return { $array: all(node.A_ArrayExpr.elements) }
  if ('A_Indirection' in node) return jsonOfElement(node.A_Indirection, given)
  // The one collation that is possible is that of all texts.
  if ('CollateClause' in node) return inner(node.CollateClause.arg)
  throw given.refuse(undefined, `${describeConstruct(node)}, which is not possible in a view`)
}

/** An element of an array, which counts from 1. */
function jsonOfElement({ arg, indirection = [] }: A_Indirection, given: TranslationContext): Json {
  const [index] = indirection
  assert(index !== undefined && 'A_Indices' in index, 'an element has a number')
  const array = toExpressionJson(requirePresent(arg, 'an array'), given)
  return { $element: [array, readCount(given, index.A_Indices.uidx) ?? 1] }
}

function called(name: string, args: readonly Json[]): Json {
  const [only] = args
  return { [name]: only !== undefined && args.length === 1 ? only : args }
}

function jsonOfCast(cast: TypeCast, given: TranslationContext): Json {
  const { arg, typeName, location } = expandInterval(cast) ?? cast
  if (typeName?.arrayBounds !== undefined) return jsonOfArrayCast(cast, given)
  const names = listTexts(typeName?.names)
  const isField = names[0] !== 'pg_catalog' && names.length > 1
  // `app::collection.field` reads like a cast.
  if (isField) {
    assert(arg !== undefined && 'ColumnRef' in arg, 'a type has one name')
    const app = listTexts(arg.ColumnRef.fields).join('.')
    const field = names.map((name) => readName(given, name, location)).join('.')
    return `${app}::${field}`
  }
  const sizes = (typeName?.typmods ?? []).map((size) => readCount(given, size, location) ?? 0)
  const name = (names.at(-1) ?? '').toLowerCase()
  const to = sized.has(name) && sizes.length > 0 ? `${name}(${sizes.join(', ')})` : name
  return { $cast: toExpressionJson(requirePresent(arg, 'what is cast'), given), to }
}

/** An array is cast element by element; one without elements would have no type in JSON. */
function jsonOfArrayCast({ arg, typeName, ...cast }: TypeCast, given: TranslationContext): Json {
  const elements = arg !== undefined && 'A_ArrayExpr' in arg ? arg.A_ArrayExpr.elements : undefined
  const { arrayBounds: _, ...own } = typeName ?? {}
  if (arg !== undefined && 'A_Const' in arg && arg.A_Const.isnull === true) return null
  if (elements === undefined || elements.length === 0)
    throw given.refuse(cast.location, 'ARRAY[] without elements, which is not possible in a view')
  return {
    $array: elements.map((each) => jsonOfCast({ ...cast, arg: each, typeName: own }, given)),
  }
}

/** Types whose sizes mean something. */
const sized: ReadonlySet<string> = new Set(['numeric', 'decimal', 'varchar', 'bpchar'])

const names: ReadonlyMap<string, string> = new Map([...infixes].map(([name, sign]) => [sign, name]))

function jsonOfOperator(node: A_Expr, given: TranslationContext): Json {
  const { lexpr, rexpr, kind } = node
  const sign = listTexts(node.name).join('.')
  const inner = (each: Node | undefined) =>
    toExpressionJson(requirePresent(each, 'an operand'), given)
  const unless = (isNot: boolean, test: Json): Json => (isNot ? { $not: test } : test)
  const expanded = expandSets(node)
  if (expanded !== undefined) return inner(expanded)
  switch (kind) {
    case 'AEXPR_DISTINCT':
    case 'AEXPR_NOT_DISTINCT': {
      const test = { $distinct_from: [inner(lexpr), inner(rexpr)] }
      return unless(kind === 'AEXPR_NOT_DISTINCT', test)
    }
    case 'AEXPR_NULLIF':
      return { $nullif: [inner(lexpr), inner(rexpr)] }
    case 'AEXPR_IN':
      return unless(sign === '<>', { $in: [inner(lexpr), toListJson(listItems(rexpr).map(inner))] })
    case 'AEXPR_LIKE':
    case 'AEXPR_ILIKE': {
      const { wanted, escapedBy } = splitEscape(node)
      const pattern = readText(inner(wanted))
      const written =
        escapedBy === undefined ? pattern : writeEscapes(pattern, readText(inner(escapedBy)))
      const test = {
        $like: inner(lexpr),
        pattern: written,
        ...(kind === 'AEXPR_ILIKE' ? { ignore_case: true } : {}),
      }
      return unless(sign.startsWith('!'), test)
    }
    case 'AEXPR_SIMILAR': {
      const { wanted, escapedBy } = splitEscape(node)
      const by = escapedBy === undefined ? '\\' : readText(inner(escapedBy))
      const pattern = writeSimilar(readText(inner(wanted)), by)
      if (pattern === undefined) throw given.refuse(node.location, similarEscape)
      return unless(sign.startsWith('!'), { $matches: inner(lexpr), pattern })
    }
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN': {
      const test = { $between: [inner(lexpr), ...listItems(rexpr).map(inner)] }
      return unless(kind === 'AEXPR_NOT_BETWEEN', test)
    }
    case 'AEXPR_BETWEEN_SYM':
    case 'AEXPR_NOT_BETWEEN_SYM': {
      const [from = null, to = null] = listItems(rexpr).map(inner)
      const value = inner(lexpr)
      const test = { $or: [{ $between: [value, from, to] }, { $between: [value, to, from] }] }
      return unless(kind === 'AEXPR_NOT_BETWEEN_SYM', test)
    }
    default:
      return jsonOfSign(sign, node, given)
  }
}

/** Puts literals into one list, without a `$literal` for each. */
function toListJson(items: readonly Json[]): Json {
  const literals = items.map(literalIn)
  const isPlain = literals.every((each) => each !== undefined)
  const hasText = literals.some((each) => typeof each === 'string')
  return isPlain && hasText ? { $literal: literals.map((each) => each ?? null) } : items
}

/** Returns the value of a literal; undefined for anything else. */
function literalIn(json: Json): string | number | boolean | null | undefined {
  if (json === null || typeof json === 'number' || typeof json === 'boolean') return json
  if (typeof json !== 'object' || !('$literal' in json)) return undefined
  return typeof json.$literal === 'string' ? json.$literal : undefined
}

function readText(json: Json): string {
  const text = literalIn(json)
  assert(typeof text === 'string', 'a pattern is a literal')
  return text
}

function jsonOfSign(
  sign: string,
  { lexpr, rexpr, location }: A_Expr,
  given: TranslationContext,
): Json {
  const right = toExpressionJson(requirePresent(rexpr, 'an operand'), given)
  if (lexpr === undefined) {
    if (sign === '-') return typeof right === 'number' ? -right : { $negate: right }
    return typeof right === 'number' ? right : { $add: [0, right] }
  }
  const left = toExpressionJson(lexpr, given)
  if (sign.includes('~')) {
    const ignore = sign.endsWith('*') ? { ignore_case: true } : {}
    const test = { $matches: left, pattern: readText(right), ...ignore }
    return sign.startsWith('!') ? { $not: test } : test
  }
  const distance = functionOperators.get(sign)
  if (distance !== undefined) return { [`$${distance}`]: [left, right] }
  const name = sign === '%' ? '$mod' : names.get(sign)
  if (name === undefined) throw given.refuse(location, `the operator ${sign}`)
  return { [name]: [left, right] }
}

function jsonOfSubLink(
  { subLinkType, subselect, testexpr, operName, location }: SubLink,
  given: TranslationContext,
): Json {
  assert(subselect !== undefined && 'SelectStmt' in subselect, 'a sub-query is a SELECT')
  const query = given.query(subselect.SelectStmt, given)
  if (subLinkType === 'EXISTS_SUBLINK') return { $exists: query }
  if (subLinkType === 'EXPR_SUBLINK') return { $query: query }
  if (subLinkType === 'ARRAY_SUBLINK') return { $array: query }
  const sign = listTexts(operName).join('.')
  const isAny = subLinkType === 'ANY_SUBLINK'
  if (sign !== '' && sign !== (isAny ? '=' : '<>'))
    throw given.refuse(
      location,
      `${sign} ${isAny ? 'ANY' : 'ALL'} of a sub-query, which is not possible in a view; compare with its min or max`,
    )
  const left = requirePresent(testexpr, 'an operand')
  const value =
    'RowExpr' in left
      ? { $row: (left.RowExpr.args ?? []).map((each) => toExpressionJson(each, given)) }
      : toExpressionJson(left, given)
  const found = { $in: [value, query] }
  return subLinkType === 'ALL_SUBLINK' ? { $not: found } : found
}
