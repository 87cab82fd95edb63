import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { all, always, any, type Condition, type FieldPath, not } from './condition.ts'
import { extendPath, member } from './field-path.ts'
import { nearest } from './nearest.ts'
import { isScalar } from './operand.ts'
import { is, operators } from './operators.ts'

/** Where in the request we are, and what it may still cost. */
type Context = {
  readonly path: FieldPath | readonly []
  readonly pointer: string
  readonly depth: number
  readonly budget: { conditions: number }
}

/**
 * The condition that a request's `find` states; null, [] and {} let everything through.
 * Keys of one object are joined by AND. `and`, `or`, `not` may stand wherever fields or operators do.
 */
export function parseFind(find: unknown, pointer = '/find'): Condition {
  if (find === null || find === undefined || (Array.isArray(find) && find.length === 0))
    return always
  const budget = { conditions: limits.conditionsMax }
  return parseObject(find, { path: [], pointer, depth: 1, budget })
}

function parseObject(value: unknown, context: Context): Condition {
  if (!isRecord(value)) throw invalid(context.pointer, 'must be an object of conditions')
  if (context.depth > limits.jsonDepthMax) {
    throw invalid(context.pointer, `is nested deeper than ${limits.jsonDepthMax} levels`)
  }
  checkKeys(value, context)
  return all(
    Object.entries(value).map(([key, item]) => {
      const inner: Context = {
        ...context,
        pointer: member(context.pointer, key),
        depth: context.depth + 1,
      }
      const logical = logicals.get(key)
      if (logical !== undefined) return logical(parseList(item, inner))
      const operator = operatorOf(key, context)
      return operator === undefined ? parseField(key, item, inner) : operator(item, inner.pointer)
    }),
  )
}

const logicals: ReadonlyMap<string, (conditions: readonly Condition[]) => Condition> = new Map([
  ['and', all],
  ['or', any],
  ['not', (conditions: readonly Condition[]) => not(all(conditions))],
])

function parseList(value: unknown, context: Context): readonly Condition[] {
  if (!Array.isArray(value)) return [parseObject(value, context)]
  return value.map((item, index) => {
    return parseObject(item, { ...context, pointer: member(context.pointer, index) })
  })
}

/** An operator applies to a field, so at the root every key but the logical ones is a field's name. */
function operatorOf(key: string, context: Context) {
  const operator = operators.get(key)
  const { path } = context
  if (operator === undefined || !isField(path)) return undefined
  return (operand: unknown, pointer: string) => {
    spend(context)
    return operator(path, operand, pointer)
  }
}

function isField(path: FieldPath | readonly []): path is FieldPath {
  return path.length > 0
}

function parseField(key: string, item: unknown, context: Context): Condition {
  const path = extendPath(context.path, key, context.pointer)
  if (item === null || isScalar(item)) {
    spend(context)
    return is(path, item, context.pointer)
  }
  if (!isRecord(item)) throw invalid(context.pointer, 'needs an operator such as {"in": […]}')
  if (isJoin(item)) {
    throw new Fault('NOT_IMPLEMENTED', {
      message: `${context.pointer}: joins are not built yet.`,
      details: { feature: 'joins', field: context.pointer },
    })
  }
  if (Object.keys(item).length === 0)
    throw invalid(context.pointer, 'is empty; it needs an operator such as {"is": …}')
  return parseObject(item, { ...context, path })
}

function isJoin(item: Readonly<Record<string, unknown>>): boolean {
  return typeof item.model === 'string' && isRecord(item.resolve)
}

/** Refuses an object that is neither operators nor nested fields, and names of operators that there are not. */
function checkKeys(value: Readonly<Record<string, unknown>>, context: Context): void {
  if (context.path.length === 0) return
  const keys = Object.keys(value).filter((key) => !logicals.has(key))
  if (keys.length > limits.conditionsMax)
    throw invalid(context.pointer, `has more than ${limits.conditionsMax} keys`)
  const hasOperators = keys.some((key) => operators.has(key))
  for (const key of keys) {
    if (operators.has(key)) continue
    const isForeign = hasOperators || key.startsWith('$')
    if (!isForeign && isRecord(value[key])) continue
    // A typing error must not become a nested field that no record has, and an empty answer that costs money.
    const { word } = nearest(key, operators.keys())
    const hint = `did you mean ${word}? A nested field of this name is written with a dot, as one key`
    throw invalid(member(context.pointer, key), `is not an operator; ${hint}`)
  }
}

function spend(context: Context): void {
  context.budget.conditions -= 1
  if (context.budget.conditions < 0) {
    throw invalid(
      context.pointer,
      `is one condition too many: a find has at most ${limits.conditionsMax}`,
    )
  }
}
