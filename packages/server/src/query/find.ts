import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { findSuggestion, formatSuggestion } from '../base/known-members.ts'
import {
  always,
  type Condition,
  combineAll,
  combineAny,
  type FieldPath,
  negate,
} from './condition.ts'
import { extendPath, extendPointer } from './field-path.ts'
import { operators, parseIs } from './find-operators.ts'
import type { Join } from './join.ts'
import { checkText, isScalar } from './operand.ts'
import { parseReference } from './reference.ts'
import { parseSelect } from './select.ts'

/** The place in the request, and the budget that is left. */
type Context = {
  readonly path: FieldPath | readonly []
  readonly pointer: string
  readonly depth: number
  readonly budget: Budget
  /** The number of joins around this one. */
  readonly joinDepth: number
  /**
   * Collects the joins of this record. `elsewhere`: joins are allowed, but not here; undefined: they are not
   * allowed at all.
   */
  readonly joins: Join[] | 'elsewhere' | undefined
}

type Budget = {
  conditions: number
  joins: number
  objects: number
  patterns: number
  values: number
}

/** A find with the joins that stand in it. */
export type JoinedFind = { readonly where: Condition; readonly joins: readonly Join[] }

/**
 * Parses the condition that a request's `find` states; null, [] and {} let everything through. Keys of one object
 * are joined by AND. `and`, `or`, `not` may stand wherever fields or operators do.
 */
export function parseFind(find: unknown, pointer = '/find'): Condition {
  if (isEmpty(find)) return always
  return parseObject(find, rootContext(pointer, undefined))
}

/** Parses a find that may join records of other collections: `{alias: {resolve: {find, select}, model, many}}`. */
export function parseJoinedFind(find: unknown, pointer = '/find'): JoinedFind {
  const joins: Join[] = []
  const where = isEmpty(find) ? always : parseObject(find, rootContext(pointer, joins))
  return { where, joins: Object.freeze(joins) }
}

/** Parses conditions on a record that is joined to another; `$data.<field>` is a field of the other record. */
export function parseResolve(find: unknown, pointer: string): Condition {
  return parseObject(find, { ...rootContext(pointer, undefined), joinDepth: 1 })
}

function rootContext(pointer: string, joins: Join[] | undefined): Context {
  const budget = {
    conditions: limits.conditionsMax,
    joins: limits.joinsMax,
    objects: limits.findObjectsMax,
    patterns: limits.patternsMax,
    values: limits.inValuesMax,
  }
  return { path: [], pointer, depth: 1, budget, joinDepth: 0, joins }
}

function isEmpty(find: unknown): boolean {
  return find === null || find === undefined || (Array.isArray(find) && find.length === 0)
}

function parseObject(value: unknown, context: Context): Condition {
  if (!isRecord(value)) throw makeInvalidFault(context.pointer, 'must be an object of conditions')
  if (context.depth > limits.jsonDepthMax) {
    throw makeInvalidFault(context.pointer, `is nested deeper than ${limits.jsonDepthMax} levels`)
  }
  context.budget.objects -= 1
  if (context.budget.objects < 0)
    throw makeInvalidFault(
      context.pointer,
      `is one object too many: there may be ${limits.findObjectsMax}`,
    )
  checkKeys(value, context)
  // Reads member by member: this is a part of every read, and spreading is slow.
  const { path, budget, joinDepth, joins } = context
  const depth = context.depth + 1
  return combineAll(
    Object.entries(value).map(([key, item]) => {
      const pointer = extendPointer(context.pointer, key)
      const inner: Context = { path, pointer, depth, budget, joinDepth, joins }
      const logical = logicals.get(key)
      if (logical !== undefined) {
        // A join is no condition, so it has no meaning inside `or` or `not`.
        const ofPart = joins === undefined || key === 'and' ? joins : 'elsewhere'
        return logical(parseList(item, { ...inner, joins: ofPart }))
      }
      const operator = findOperator(key, context)
      return operator === undefined ? parseField(key, item, inner) : operator(item, pointer)
    }),
  )
}

const logicals: ReadonlyMap<string, (conditions: readonly Condition[]) => Condition> = new Map([
  ['and', combineAll],
  ['or', combineAny],
  ['not', (conditions: readonly Condition[]) => negate(combineAll(conditions))],
])

function parseList(value: unknown, context: Context): readonly Condition[] {
  if (!Array.isArray(value)) return [parseObject(value, context)]
  return value.map((item, index) => {
    return parseObject(item, { ...context, pointer: extendPointer(context.pointer, index) })
  })
}

/** Finds an operator, which applies to a field: at the root every key but the logical ones is a field's name. */
function findOperator(key: string, context: Context) {
  const operator = operators.get(key)
  const { path } = context
  if (operator === undefined || !isField(path)) return undefined
  return (operand: unknown, pointer: string) => {
    spend(context)
    spendOperand(operand, { key, pointer, budget: context.budget })
    const reference =
      context.joinDepth === 0 ? undefined : parseReference(key, { path, operand, pointer })
    return reference ?? operator(path, operand, pointer)
  }
}

function isField(path: FieldPath | readonly []): path is FieldPath {
  return path.length > 0
}

function parseField(key: string, item: unknown, context: Context): Condition {
  const path = extendPath(context.path, key, context.pointer)
  if (item === null || isScalar(item)) {
    spend(context)
    const reference =
      context.joinDepth === 0
        ? undefined
        : parseReference('is', { path, operand: item, pointer: context.pointer })
    return reference ?? parseIs(path, item, context.pointer)
  }
  if (!isRecord(item))
    throw makeInvalidFault(context.pointer, 'needs an operator such as {"in": […]}')
  if (isJoin(item)) {
    addJoin(key, item, context)
    return always
  }
  if (Object.keys(item).length === 0)
    throw makeInvalidFault(context.pointer, 'is empty; it needs an operator such as {"is": …}')
  return parseObject(item, { ...context, path })
}

function isJoin(item: Readonly<Record<string, unknown>>): boolean {
  return typeof item.model === 'string' && isRecord(item.resolve)
}

/** Adds the join to those of its record; it filters no record out. */
function addJoin(alias: string, item: Readonly<Record<string, unknown>>, context: Context): void {
  const { pointer, joins } = context
  if (joins === undefined)
    throw makeInvalidFault(pointer, 'is a join, which only the find of POST /list takes')
  if (joins === 'elsewhere' || context.path.length > 0)
    throw makeInvalidFault(
      pointer,
      'is a join, which stands beside the conditions of a record, not inside',
    )
  context.budget.joins -= 1
  if (context.budget.joins < 0)
    throw makeInvalidFault(pointer, `is one join too many: there may be ${limits.joinsMax}`)
  if (context.joinDepth >= limits.joinDepthMax)
    throw makeInvalidFault(pointer, `is a join nested deeper than ${limits.joinDepthMax} levels`)
  if (joins.some((join) => join.alias === alias)) throw makeInvalidFault(pointer, 'is joined twice')
  joins.push(parseJoin(alias, item, context))
}

function parseJoin(alias: string, item: Readonly<Record<string, unknown>>, context: Context): Join {
  const { pointer } = context
  checkText(alias, pointer)
  const foreign = Object.keys(item).find((key) => !['resolve', 'model', 'many'].includes(key))
  if (foreign !== undefined)
    throw makeInvalidFault(
      extendPointer(pointer, foreign),
      'is not a part of a join: resolve, model, many',
    )
  if (typeof item.model !== 'string' || !modelForm.test(item.model))
    throw makeInvalidFault(
      extendPointer(pointer, 'model'),
      'must be a collection or app::collection',
    )
  const many = item.many ?? true
  if (typeof many !== 'boolean')
    throw makeInvalidFault(extendPointer(pointer, 'many'), 'must be true or false')
  const resolve = isRecord(item.resolve) ? item.resolve : {}
  const at = extendPointer(pointer, 'resolve')
  const isBare = Object.keys(resolve).length > 0 && Object.values(resolve).every(isScalar)
  const unknown = Object.keys(resolve).find((key) => key !== 'find' && key !== 'select')
  if (!isBare && unknown !== undefined)
    throw makeInvalidFault(extendPointer(at, unknown), 'is not a part of resolve: find, select')
  const joins: Join[] = []
  const find = isBare ? resolve : resolve.find
  const inner: Context = {
    ...context,
    path: [],
    pointer: isBare ? at : extendPointer(at, 'find'),
    depth: context.depth + 2,
    joinDepth: context.joinDepth + 1,
    joins,
  }
  const where = isEmpty(find) ? always : parseObject(find, inner)
  const select = isBare ? undefined : parseSelect(resolve.select, extendPointer(at, 'select'))
  return Object.freeze({
    alias,
    model: item.model,
    many,
    where,
    select,
    joins: Object.freeze(joins),
  })
}

const modelForm = /^([a-z][a-z0-9_-]{2,62}::)?[A-Za-z0-9_-]{1,63}$/

/** Refuses an object that mixes operators with nested fields, and unknown operators. */
function checkKeys(value: Readonly<Record<string, unknown>>, context: Context): void {
  if (context.path.length === 0) return
  const keys = Object.keys(value).filter((key) => !logicals.has(key))
  if (keys.length > limits.conditionsMax)
    throw makeInvalidFault(context.pointer, `has more than ${limits.conditionsMax} keys`)
  const hasOperators = keys.some((key) => operators.has(key))
  for (const key of keys) {
    if (operators.has(key)) continue
    const isForeign = hasOperators || key.startsWith('$')
    if (!isForeign && isRecord(value[key])) continue
    // A typing error must not become a nested field that no record has, and an empty answer that costs money.
    const hint = formatSuggestion(findSuggestion(key, [...operators.keys()]))
    throw makeInvalidFault(
      extendPointer(context.pointer, key),
      `is not an operator${hint === '' ? '.' : hint} A nested field of this name is written with a dot, as one key`,
    )
  }
}

function spend(context: Context): void {
  context.budget.conditions -= 1
  if (context.budget.conditions < 0) {
    throw makeInvalidFault(
      context.pointer,
      `is one condition too many: a find has at most ${limits.conditionsMax}`,
    )
  }
}

/** Counts values of lists and patterns, which cost more than other conditions. */
function spendOperand(
  operand: unknown,
  { key, pointer, budget }: { key: string; pointer: string; budget: Budget },
): void {
  if (Array.isArray(operand)) budget.values -= operand.length
  // A list that is too long by itself is reported where it is read.
  if (budget.values < 0 && Array.isArray(operand) && operand.length <= limits.inListMax)
    throw makeInvalidFault(
      pointer,
      `has too many values: all lists together may have ${limits.inValuesMax}`,
    )
  if (key === 'regExpMatches') budget.patterns -= 1
  if (budget.patterns < 0)
    throw makeInvalidFault(pointer, `is one pattern too many: there may be ${limits.patternsMax}`)
}
