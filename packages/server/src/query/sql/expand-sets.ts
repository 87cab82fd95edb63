import type { A_Expr, Node } from 'libpg-query'
import { countSteps } from '../steps.ts'
import { TypeProblem } from '../tree/make-expression.ts'
import { listItems, listTexts } from './sql-reader.ts'

/**
 * Writes a comparison with ANY or ALL of a list, or of rows, as comparisons of single values and IN, which mean the
 * same; undefined for any other. The reader and the JSON of views both go by it.
 */
export function expandSets(node: A_Expr): Node | undefined {
  const { kind, lexpr, rexpr } = node
  if (kind === 'AEXPR_OP_ANY' || kind === 'AEXPR_OP_ALL') return expandList(node, kind)
  const left = listRow(lexpr)
  if (left === undefined) {
    const others = [rexpr, ...listItems(rexpr)]
    if (others.some((each) => listRow(each) !== undefined))
      throw new TypeProblem('a comparison of a row with a single value')
    return undefined
  }
  const compare = (right: Node | undefined, sign: string, as: A_Expr['kind'] = 'AEXPR_OP') =>
    compareRows({ left, right: requireRow(right, left.length) }, { ...node, kind: as, sign })
  const sign = listTexts(node.name).join('.')
  switch (kind) {
    case 'AEXPR_OP':
      return compare(rexpr, sign)
    case 'AEXPR_DISTINCT':
      return compare(rexpr, '<>', kind)
    case 'AEXPR_NOT_DISTINCT':
      return negate(compare(rexpr, '<>', 'AEXPR_DISTINCT'), node)
    case 'AEXPR_IN': {
      const parts = listItems(rexpr).map((each) => compare(each, '='))
      const found = join('OR_EXPR', parts, node)
      return sign === '<>' ? negate(found, node) : found
    }
    default:
      throw new TypeProblem('a row of values (a, b) beside this operator')
  }
}

function expandList(node: A_Expr, kind: 'AEXPR_OP_ANY' | 'AEXPR_OP_ALL'): Node {
  const sign = listTexts(node.name).join('.')
  const isAny = kind === 'AEXPR_OP_ANY'
  const items = listElements(node.rexpr)
  if (items === undefined)
    throw new TypeProblem(
      `${isAny ? 'ANY' : 'ALL'} of an array that is no ARRAY[…] and no parameter; for a field that holds a list write includes(tags, value)`,
    )
  if (items.length === 0) return { A_Const: { boolval: { boolval: !isAny } } }
  if (sign === (isAny ? '=' : '<>'))
    return { A_Expr: { ...node, kind: 'AEXPR_IN', rexpr: { List: { items: [...items] } } } }
  if (items.some(isParameter))
    throw new TypeProblem(`${sign} ${isAny ? 'ANY' : 'ALL'} of a parameter; write = ANY or <> ALL`)
  const single = likes.get(sign) ?? 'AEXPR_OP'
  if (!comparisons.has(sign) && !likes.has(sign))
    throw new TypeProblem(`${sign} ${isAny ? 'ANY' : 'ALL'} of an array`)
  const parts = items.map((rexpr): Node => ({ A_Expr: { ...node, kind: single, rexpr } }))
  return join(isAny ? 'OR_EXPR' : 'AND_EXPR', parts, node)
}

/** LIKE and ILIKE by the operators that stand for them, with their negations. */
const likes: ReadonlyMap<string, 'AEXPR_LIKE' | 'AEXPR_ILIKE'> = new Map([
  ['~~', 'AEXPR_LIKE'],
  ['!~~', 'AEXPR_LIKE'],
  ['~~*', 'AEXPR_ILIKE'],
  ['!~~*', 'AEXPR_ILIKE'],
])

const comparisons: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>='])

/** Lists the elements of `ARRAY[…]`, or the one parameter that has them; each cast as the whole is. */
function listElements(node: Node | undefined): readonly Node[] | undefined {
  if (node === undefined) return undefined
  if ('A_ArrayExpr' in node) return node.A_ArrayExpr.elements ?? []
  if ('ParamRef' in node) return [node]
  if (!('TypeCast' in node) || node.TypeCast.typeName?.arrayBounds?.length !== 1) return undefined
  const { arrayBounds: _, ...typeName } = node.TypeCast.typeName
  const { arg: array } = node.TypeCast
  return listElements(array)?.map((arg) => ({ TypeCast: { ...node.TypeCast, arg, typeName } }))
}

/** Returns true of a parameter, with or without a cast, which may stand for several values. */
function isParameter(node: Node): boolean {
  if ('TypeCast' in node) return node.TypeCast.arg !== undefined && isParameter(node.TypeCast.arg)
  return 'ParamRef' in node
}

type Rows = { readonly left: readonly Node[]; readonly right: readonly Node[] }

/** The first pair that differs decides, as with words in a dictionary. */
function compareRows({ left, right }: Rows, as: A_Expr & { readonly sign: string }): Node {
  const { sign, kind, location } = as
  const pair = (at: number, pairSign: string): Node => {
    countSteps(16)
    return {
      A_Expr: {
        ...(kind !== undefined && { kind }),
        name: [{ String: { sval: pairSign } }],
        ...(left[at] !== undefined && { lexpr: left[at] }),
        ...(right[at] !== undefined && { rexpr: right[at] }),
        ...(location !== undefined && { location }),
      },
    }
  }
  const places = [...left.keys()]
  if (kind === 'AEXPR_DISTINCT' || sign === '<>')
    return join(
      'OR_EXPR',
      places.map((at) => pair(at, kind === 'AEXPR_DISTINCT' ? '=' : sign)),
      as,
    )
  if (sign === '=')
    return join(
      'AND_EXPR',
      places.map((at) => pair(at, sign)),
      as,
    )
  if (!comparisons.has(sign)) throw new TypeProblem(`a row of values (a, b) beside ${sign}`)
  const strict = sign.slice(0, 1)
  return places
    .slice(0, -1)
    .reduceRight<Node>(
      (rest, at) =>
        join('OR_EXPR', [pair(at, strict), join('AND_EXPR', [pair(at, '='), rest], as)], as),
      pair(places.length - 1, sign),
    )
}

function join(boolop: 'AND_EXPR' | 'OR_EXPR', args: readonly Node[], { location }: A_Expr): Node {
  const [only] = args
  if (only !== undefined && args.length === 1) return only
  return { BoolExpr: { boolop, args: [...args], ...(location !== undefined && { location }) } }
}

function negate(node: Node, { location }: A_Expr): Node {
  return {
    BoolExpr: { boolop: 'NOT_EXPR', args: [node], ...(location !== undefined && { location }) },
  }
}

function listRow(node: Node | undefined): readonly Node[] | undefined {
  return node !== undefined && 'RowExpr' in node ? (node.RowExpr.args ?? []) : undefined
}

function requireRow(node: Node | undefined, length: number): readonly Node[] {
  const row = listRow(node)
  if (row === undefined) throw new TypeProblem('a comparison of a row with a single value')
  if (row.length !== length || length === 0)
    throw new TypeProblem(`a comparison of rows of ${length} and ${row.length} values`)
  return row
}
