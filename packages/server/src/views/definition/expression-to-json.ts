import type { A_Expr, Node, SubLink, TypeCast } from 'libpg-query'
import { assert, present } from '../../base/assert.ts'
import { constructOf } from '../../query/sql/source-text.ts'
import { textsOf } from '../../query/sql/sql-reader.ts'
import { infixes } from './operators.ts'
import { countIn, type Given, jsonOfNumber, nameIn, pathIn } from './translation-context.ts'
import type { Json } from './view-definition.ts'
import { jsonOfCall } from './window-to-json.ts'

/** The JSON of an expression whose meaning has been checked. */
export function jsonOfExpression(node: Node, given: Given): Json {
  const inner = (each: Node | undefined) => jsonOfExpression(present(each, 'an operand'), given)
  const all = (nodes: readonly Node[] | undefined) => (nodes ?? []).map(inner)
  if ('ColumnRef' in node)
    return pathIn(given, textsOf(node.ColumnRef.fields), node.ColumnRef.location)
  if ('A_Const' in node) {
    const { isnull, boolval, sval, ival, fval } = node.A_Const
    if (isnull) return null
    if (boolval !== undefined) return boolval.boolval ?? false
    if (sval !== undefined) return { $literal: sval.sval ?? '' }
    return jsonOfNumber(fval?.fval ?? String(ival?.ival ?? 0))
  }
  if ('TypeCast' in node) return jsonOfCast(node.TypeCast, given)
  if ('FuncCall' in node) return jsonOfCall(node.FuncCall, given)
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
  throw given.refuse(undefined, `${constructOf(node)}, which is not possible in a view`)
}

function called(name: string, args: readonly Json[]): Json {
  const [only] = args
  return { [name]: only !== undefined && args.length === 1 ? only : args }
}

function jsonOfCast({ arg, typeName, location }: TypeCast, given: Given): Json {
  const names = textsOf(typeName?.names)
  const isField = names[0] !== 'pg_catalog' && names.length > 1
  // `app::collection.field` reads like a cast.
  if (isField) {
    assert(arg !== undefined && 'ColumnRef' in arg, 'a type has one name')
    const app = textsOf(arg.ColumnRef.fields).join('.')
    const field = names.map((name) => nameIn(given, name, location)).join('.')
    return `${app}::${field}`
  }
  const sizes = (typeName?.typmods ?? []).map((size) => countIn(given, size, location) ?? 0)
  const name = (names.at(-1) ?? '').toLowerCase()
  const to = sized.has(name) && sizes.length > 0 ? `${name}(${sizes.join(', ')})` : name
  return { $cast: jsonOfExpression(present(arg, 'what is cast'), given), to }
}

/** Types of which the sizes mean something. */
const sized: ReadonlySet<string> = new Set(['numeric', 'decimal'])

const names: ReadonlyMap<string, string> = new Map([...infixes].map(([name, sign]) => [sign, name]))

function jsonOfOperator(node: A_Expr, given: Given): Json {
  const { lexpr, rexpr, kind } = node
  const sign = textsOf(node.name).join('.')
  const inner = (each: Node | undefined) => jsonOfExpression(present(each, 'an operand'), given)
  const unless = (isNot: boolean, test: Json): Json => (isNot ? { $not: test } : test)
  switch (kind) {
    case 'AEXPR_DISTINCT':
    case 'AEXPR_NOT_DISTINCT': {
      const test = { $distinct_from: [inner(lexpr), inner(rexpr)] }
      return unless(kind === 'AEXPR_NOT_DISTINCT', test)
    }
    case 'AEXPR_NULLIF':
      return { $nullif: [inner(lexpr), inner(rexpr)] }
    case 'AEXPR_IN':
      return unless(sign === '<>', { $in: [inner(lexpr), listOf(itemsOf(rexpr).map(inner))] })
    case 'AEXPR_LIKE':
    case 'AEXPR_ILIKE': {
      const ignore = kind === 'AEXPR_ILIKE'
      return unless(sign.startsWith('!'), matchOf('$like', [inner(lexpr), inner(rexpr)], ignore))
    }
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN': {
      const test = { $between: [inner(lexpr), ...itemsOf(rexpr).map(inner)] }
      return unless(kind === 'AEXPR_NOT_BETWEEN', test)
    }
    default:
      return jsonOfSign(sign, node, given)
  }
}

function itemsOf(node: Node | undefined): readonly Node[] {
  return node !== undefined && 'List' in node ? (node.List.items ?? []) : []
}

/** Literals stand in one list, without a `$literal` for each. */
function listOf(items: readonly Json[]): Json {
  const literals = items.map(literalIn)
  const isPlain = literals.every((each) => each !== undefined)
  const hasText = literals.some((each) => typeof each === 'string')
  return isPlain && hasText ? { $literal: literals.map((each) => each ?? null) } : items
}

/** The value of a literal; undefined for anything else. */
function literalIn(json: Json): string | number | boolean | null | undefined {
  if (json === null || typeof json === 'number' || typeof json === 'boolean') return json
  if (typeof json !== 'object' || !('$literal' in json)) return undefined
  return typeof json.$literal === 'string' ? json.$literal : undefined
}

function matchOf(name: string, [value = null, pattern = null]: readonly Json[], ignore: boolean) {
  const text = literalIn(pattern)
  assert(typeof text === 'string', 'a pattern is a literal')
  return { [name]: value, pattern: text, ...(ignore ? { ignore_case: true } : {}) }
}

function jsonOfSign(sign: string, { lexpr, rexpr, location }: A_Expr, given: Given): Json {
  const right = jsonOfExpression(present(rexpr, 'an operand'), given)
  if (lexpr === undefined) {
    if (sign === '-') return typeof right === 'number' ? -right : { $negate: right }
    return typeof right === 'number' ? right : { $add: [0, right] }
  }
  const left = jsonOfExpression(lexpr, given)
  if (sign.includes('~')) {
    const test = matchOf('$matches', [left, right], sign.endsWith('*'))
    return sign.startsWith('!') ? { $not: test } : test
  }
  const name = sign === '%' ? '$mod' : names.get(sign)
  if (name === undefined) throw given.refuse(location, `the operator ${sign}`)
  return { [name]: [left, right] }
}

function jsonOfSubLink({ subLinkType, subselect, testexpr }: SubLink, given: Given): Json {
  assert(subselect !== undefined && 'SelectStmt' in subselect, 'a sub-query is a SELECT')
  const query = given.query(subselect.SelectStmt, given)
  if (subLinkType === 'EXISTS_SUBLINK') return { $exists: query }
  if (subLinkType === 'EXPR_SUBLINK') return { $query: query }
  return { $in: [jsonOfExpression(present(testexpr, 'an operand'), given), query] }
}
