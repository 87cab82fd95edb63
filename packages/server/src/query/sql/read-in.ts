import { limits } from '@tollbase/contract/limits'
import type { A_Expr, Node } from 'libpg-query'
import type { ParameterRef } from '../condition.ts'
import { makeComparison, makeConstant, makeParameter, negate } from '../tree/make-expression.ts'
import type { Expression, TypedConstant } from '../tree/query.ts'
import { readCast } from './read-cast.ts'
import type { ReadExpression } from './sql-reader.ts'
import { listTexts, refuse, runAt, type SqlPlace, type ValueList } from './sql-reader.ts'

/** Reads `a IN (…)` and `a NOT IN (…)`, also of the values of a parameter. */
export function readIn(node: A_Expr, place: SqlPlace, readExpression: ReadExpression): Expression {
  const sign = listTexts(node.name).join('.')
  const items =
    node.rexpr !== undefined && 'List' in node.rexpr ? (node.rexpr.List.items ?? []) : []
  if (items.length > limits.inListMax)
    throw refuse(place, node.location, `an IN list of more than ${limits.inListMax} values`)
  const left = readExpression(node.lexpr, place)
  const [only] = items
  const list = items.length === 1 ? findList(only, place) : undefined
  if (list !== undefined && 'values' in list) {
    const found = compareWithList(left, { values: list.values, node: only }, place)
    return sign === '<>' ? negate(found) : found
  }
  if (list !== undefined) {
    const found = inList(left, list, { place, location: node.location })
    return sign === '<>' ? negate(found) : found
  }
  const parts = items.map((item) => {
    const right = readExpression(item, place)
    return runAt(place, node.location, () => makeComparison('=', { left, right }))
  })
  const is = gathered(parts)
  return sign === '<>' ? negate(is) : is
}

/** Converts the sides as with one value of the list; the list's values keep their declared type. */
function inList(
  left: Expression,
  list: ParameterRef,
  { place, location }: { readonly place: SqlPlace; readonly location: number | undefined },
): Expression {
  const one = runAt(place, location, () =>
    makeComparison('=', { left, right: makeParameter(list) }),
  )
  if (one.kind !== 'compare' || one.right.type !== list.type)
    throw refuse(place, location, 'a list of another type than what it is compared with')
  return Object.freeze({ kind: 'in-list', type: 'boolean', argument: one.left, parameter: list })
}

/** Turns comparisons of one expression with constants into one test against a list. */
function gathered(parts: readonly Expression[]): Expression {
  const [first] = parts
  const constants = parts.flatMap((part) =>
    part.kind === 'compare' && part.right.kind === 'constant' ? [part.right] : [],
  )
  const isList = constants.length === parts.length && constants.length > 1
  const sameType = new Set(constants.map((each) => each.type)).size === 1
  if (isList && first?.kind === 'compare' && (sameType || first.left.type === 'json')) {
    return Object.freeze({
      kind: 'one-of',
      type: 'boolean',
      argument: first.left,
      values: Object.freeze(constants),
    })
  }
  if (first !== undefined && parts.length === 1) return first
  return Object.freeze({ kind: 'or', type: 'boolean', arguments: Object.freeze([...parts]) })
}

/** Finds the list of values that a node stands for, if it is a parameter of several values, with or without a cast. */
export function findList(
  node: Node | undefined,
  place: SqlPlace,
): ParameterRef | ValueList | undefined {
  if (node === undefined) return undefined
  if ('TypeCast' in node) {
    const list = findList(node.TypeCast.arg, place)
    return list !== undefined && 'values' in list ? list : undefined
  }
  if (!('ParamRef' in node)) return undefined
  const given = place.reader.parameters[(node.ParamRef.number ?? 0) - 1]
  if (given === undefined || 'kind' in given) return undefined
  return 'values' in given || given.list ? given : undefined
}

/** Compares with each value of a list, cast as the parameter is; no list has a value that an empty one has. */
function compareWithList(
  left: Expression,
  { values, node }: ValueList & { readonly node: Node | undefined },
  place: SqlPlace,
): Expression {
  if (values.length === 0) return makeConstant('boolean', false)
  const isCast = node !== undefined && 'TypeCast' in node
  const parts = values.map((value: TypedConstant) => {
    const right = isCast ? readCast(node.TypeCast, place, () => value) : value
    return runAt(place, undefined, () => makeComparison('=', { left, right }))
  })
  return gathered(parts)
}
