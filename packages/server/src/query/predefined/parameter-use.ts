import { makeInvalidFault } from '../../base/fault.ts'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import {
  type Condition,
  type FieldPath,
  negate,
  type ParameterRef,
  type ParameterTest,
  testField,
} from '../condition.ts'
import { parseFieldPath } from '../field-path.ts'

/**
 * The purpose of a parameter: it stands in the text, puts a condition on a field, or says which part of the rows is
 * given.
 */
export type ParameterUse =
  | { readonly kind: 'text' | 'limit' | 'offset' | 'sort' }
  | ({ readonly kind: 'condition'; readonly path: FieldPath } & Test)

type Test = {
  readonly test: ParameterTest
  readonly negated: boolean
  readonly ignoreCase: boolean
}

const plain = (test: ParameterTest): Test => ({ test, negated: false, ignoreCase: false })

/**
 * Operators that compare a value, by their names in a find. Operators that would let a caller write a pattern are
 * left out.
 */
export const parameterOperators: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['is', plain('=')],
  ['isNot', { ...plain('='), negated: true }],
  ['in', plain('in')],
  ['notIn', { ...plain('in'), negated: true }],
  ['greaterThan', plain('>')],
  ['greaterThanOrEqual', plain('>=')],
  ['lessThan', plain('<')],
  ['lessThanOrEqual', plain('<=')],
  ['startsWith', plain('starts')],
  ['startsWithCaseInsensitive', { ...plain('starts'), ignoreCase: true }],
  ['endsWith', plain('ends')],
  ['endsWithCaseInsensitive', { ...plain('ends'), ignoreCase: true }],
  ['includes', plain('includes')],
  ['includesCaseInsensitive', { ...plain('includes'), ignoreCase: true }],
])

/** Other names of the same operators. */
const synonyms: ReadonlyMap<string, string> = new Map([
  ['eq', 'is'],
  ['ne', 'isNot'],
  ['nin', 'notIn'],
  ['gt', 'greaterThan'],
  ['gte', 'greaterThanOrEqual'],
  ['lt', 'lessThan'],
  ['lte', 'lessThanOrEqual'],
  ['contains', 'includes'],
])

/** Returns the canonical name of an operator. */
export function getOperatorName(name: string): string {
  return synonyms.get(name) ?? name
}

/** Reads a `field_path`: `country`, `price.$gte`, `limit`. */
export function readParameterUse(
  path: string | undefined,
  form: 'sql' | 'base' | 'request',
  pointer: string,
): ParameterUse {
  if (form === 'sql') {
    if (path !== undefined)
      throw makeInvalidFault(pointer, 'is for a base_query; in SQL a parameter stands as :name')
    return { kind: 'text' }
  }
  if (form === 'request') return { kind: 'text' }
  if (path === undefined) throw makeInvalidFault(pointer, 'is needed: the field that it is about')
  if (path === 'limit' || path === 'offset' || path === 'sort') return { kind: path }
  const [, fieldName = path, operator] = /^(.+)\.\$([A-Za-z]+)$/.exec(path) ?? []
  if (
    fieldName.includes('$') &&
    operator === undefined &&
    fieldName.split('.').at(-1)?.startsWith('$')
  )
    throw makeInvalidFault(pointer, 'names an operator but no field')
  const test = parameterOperators.get(getOperatorName(operator ?? 'is'))
  if (test === undefined) {
    const hint = formatSuggestion(findSuggestion(operator ?? '', [...parameterOperators.keys()]))
    throw makeInvalidFault(pointer, `names $${operator}, which takes no parameter${hint}`)
  }
  return { kind: 'condition', path: parseFieldPath(fieldName, pointer), ...test }
}

/** Builds the condition that a parameter puts on its field. */
export function buildCondition(
  { path, test, negated, ignoreCase }: ParameterUse & { readonly kind: 'condition' },
  parameter: ParameterRef,
): Condition {
  const condition = testField(path, { kind: 'parameter', test, ignoreCase, parameter })
  return negated ? negate(condition) : condition
}
