import { invalid } from '../../base/fault.ts'
import { nearest } from '../../base/find-nearest.ts'
import {
  type Condition,
  type FieldPath,
  field,
  not,
  type ParameterRef,
  type ParameterTest,
} from '../condition.ts'
import { parseFieldPath } from '../field-path.ts'

/** What a parameter does: it stands in the text, puts a condition on a field, or says which part of the rows is given. */
export type Use =
  | { readonly kind: 'text' | 'limit' | 'offset' | 'sort' }
  | ({ readonly kind: 'condition'; readonly path: FieldPath } & Test)

type Test = {
  readonly test: ParameterTest
  readonly negated: boolean
  readonly ignoreCase: boolean
}

const plain = (test: ParameterTest): Test => ({ test, negated: false, ignoreCase: false })

/** Operators by which a value is compared, by their names in a find. What would let a caller write a pattern is none. */
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

/** Other names of the same. */
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

/** The one name of an operator, however it was written. */
export function operatorName(name: string): string {
  return synonyms.get(name) ?? name
}

/** What a `field_path` says: `country`, `price.$gte`, `limit`. */
export function readUse(path: string | undefined, form: 'sql' | 'base', pointer: string): Use {
  if (form === 'sql') {
    if (path !== undefined)
      throw invalid(pointer, 'is for a base_query; in SQL a parameter stands as :name')
    return { kind: 'text' }
  }
  if (path === undefined) throw invalid(pointer, 'is needed: the field that it is about')
  if (path === 'limit' || path === 'offset' || path === 'sort') return { kind: path }
  const [, fieldName = path, operator] = /^(.+)\.\$([A-Za-z]+)$/.exec(path) ?? []
  if (
    fieldName.includes('$') &&
    operator === undefined &&
    fieldName.split('.').at(-1)?.startsWith('$')
  )
    throw invalid(pointer, 'names an operator but no field')
  const test = parameterOperators.get(operatorName(operator ?? 'is'))
  if (test === undefined) {
    const { word } = nearest(operator ?? '', parameterOperators.keys())
    throw invalid(pointer, `names $${operator}, which takes no parameter; did you mean $${word}?`)
  }
  return { kind: 'condition', path: parseFieldPath(fieldName, pointer), ...test }
}

/** The condition that a parameter puts on its field. */
export function conditionOf(
  { path, test, negated, ignoreCase }: Use & { readonly kind: 'condition' },
  parameter: ParameterRef,
): Condition {
  const condition = field(path, { kind: 'parameter', test, ignoreCase, parameter })
  return negated ? not(condition) : condition
}
