import { limits } from '@tollbase/contract/limits'
import type { QueryParameter } from '@tollbase/contract/query-definition'
import { makeInvalidFault } from '../../base/fault.ts'
import type { ParameterRef, Scalar } from '../condition.ts'
import { extendPointer } from '../field-path.ts'
import { keyCharsMax } from '../index-key.ts'
import type { ParameterValue } from '../parameter.ts'
import { compilePattern } from '../pattern.ts'
import type { MatchBudget } from '../pattern-matcher.ts'
import type { DeclaredParameter, ItemType } from './declared-parameter.ts'
import { type ParameterUse, readParameterUse } from './parameter-use.ts'
import { makeMatchBudget, readText, type TextPlace } from './read-argument-text.ts'

export type DeclarationOptions = {
  /** `sql`: they stand in the text; `base`: each has a field_path; `request`: they stand in an HTTP request. */
  readonly form: 'sql' | 'base' | 'request'
  /** The type that the collection declares of a field. */
  readonly typeOf: (field: string) => ItemType | undefined
  /** Names that the endpoint takes for itself; those of predefined queries when not given. */
  readonly taken?: ReadonlySet<string>
  /** True if they were taken in once, so that nothing of them is refused for the work that it takes. */
  readonly isStored?: boolean | undefined
  /** True if even those may take no more work than new ones: somebody else took them in. */
  readonly isBounded?: boolean | undefined
}

/** Names that the endpoint of queries takes for itself; only a parameter of the page may have them. */
const takenByQueries: ReadonlySet<string> = new Set([
  'limit',
  'offset',
  'version',
  'format',
  'max_kb',
  'api_key',
])
const typesOfBounds: ReadonlySet<string> = new Set(['number', 'integer', 'date'])

/** Reads the parameters of a definition, or throws a 400 that names the place. */
export function readDeclarations(
  sent: readonly QueryParameter[],
  options: DeclarationOptions,
): readonly DeclaredParameter[] {
  const { isStored = false, isBounded = !isStored } = options
  const work = isBounded ? makeMatchBudget() : { steps: Number.POSITIVE_INFINITY }
  const declared = sent.map((each, at) =>
    readDeclaration(each, { ...options, work }, `/parameters/${at}`),
  )
  const names = new Set<string>()
  const { taken = takenByQueries } = options
  for (const [at, { name, use }] of declared.entries()) {
    const pointer = `/parameters/${at}`
    if (names.has(name)) throw makeInvalidFault(pointer, `is called ${name} as another one is`)
    if (taken.has(name) && use.kind !== name)
      throw makeInvalidFault(`${pointer}/name`, `is what every query takes: ${name}`)
    names.add(name)
  }
  for (const kind of ['limit', 'offset', 'sort'])
    if (declared.filter(({ use }) => use.kind === kind).length > 1)
      throw makeInvalidFault('/parameters', `has two parameters for ${kind}`)
  return declared
}

/**
 * Makes the reference that stands for the parameter in the statement. A text that is long enough for its key to be
 * cut is compared twice.
 */
export function makeParameterRef({
  name,
  type,
  isList,
  values,
  maxLength,
}: DeclaredParameter): ParameterRef {
  const isNumber = type === 'number' || type === 'integer' || isNumeric(values)
  return {
    name,
    type: type === 'boolean' ? 'boolean' : isNumber ? 'number' : 'text',
    charsMax: type === 'date' ? 40 : maxLength,
    list: isList,
  }
}

/** Makes a valid value to plan a statement with. Its pattern does not matter to a plan. */
export function makeSample(declared: DeclaredParameter): ParameterValue {
  if (declared.default !== undefined) return declared.default
  const one = sampleItem(declared)
  return declared.isList ? [one] : one
}

function sampleItem({ type, values, min, max, minLength }: DeclaredParameter): Scalar {
  switch (type) {
    case 'boolean':
      return true
    case 'number':
    case 'integer':
      return min ?? Math.min(max ?? 1, 1)
    case 'date':
      return new Date(min ?? max ?? 0).toISOString()
    case 'enum':
      return values[0] ?? ''
    default:
      return 'x'.repeat(Math.max(1, minLength))
  }
}

function isNumeric(values: readonly (string | number)[]): boolean {
  return typeof values[0] === 'number'
}

function readDeclaration(
  sent: QueryParameter,
  { form, typeOf, work }: DeclarationOptions & { readonly work: MatchBudget },
  pointer: string,
): DeclaredParameter {
  const named = readParameterUse(sent.field_path, form, `${pointer}/field_path`)
  const inferred = typeFor(sent, named, typeOf)
  const isList = sent.type === 'list' || (sent.type === undefined && Array.isArray(sent.default))
  const use = isList ? toListUse(named) : named
  const type = isList ? (sent.items ?? findItemType(sent.default)) : inferred
  if (sent.items !== undefined && !isList)
    throw makeInvalidFault(`${pointer}/items`, 'is of a list')
  const text = { minLength: sent.minLength ?? 1, maxLength: sent.maxLength ?? keyCharsMax - 1 }
  if (text.minLength > text.maxLength)
    throw makeInvalidFault(`${pointer}/minLength`, 'is more than maxLength')
  const declared: DeclaredParameter = {
    ...text,
    name: sent.name,
    type,
    isList,
    use,
    values: readValues(sent, type, pointer),
    min: readBound(sent.min, type, `${pointer}/min`),
    max: readBound(sent.max, type, `${pointer}/max`),
    matches: compileMatcher(sent, type, `${pointer}/pattern`),
    maxItems: sent.maxItems ?? 100,
    default: undefined,
    required: sent.required ?? sent.default === undefined,
  }
  if (
    (declared.min ?? 0) > (declared.max ?? Number.POSITIVE_INFINITY) &&
    declared.min !== undefined
  )
    throw makeInvalidFault(`${pointer}/min`, 'is more than max')
  checkUse(declared, pointer)
  const bounded = addPageBounds(declared)
  const given =
    sent.default === undefined ? undefined : readDefault(bounded, sent.default, { pointer, work })
  if (form === 'sql' && !declared.required && given === undefined && use.kind === 'text')
    throw makeInvalidFault(`${pointer}/default`, 'is needed: in SQL nothing can be left out')
  return given === undefined ? bounded : { ...bounded, default: given }
}

/** Adds the bounds of pages: none begins before the first row, or is larger than an answer can be. */
function addPageBounds(declared: DeclaredParameter): DeclaredParameter {
  const { kind } = declared.use
  if (kind !== 'limit' && kind !== 'offset') return declared
  const most = kind === 'limit' ? limits.rowsMax : limits.offsetMax
  return {
    ...declared,
    min: Math.max(declared.min ?? 0, 0),
    max: Math.min(declared.max ?? most, most),
  }
}

/** Turns equality with a list into membership. */
function toListUse(use: ParameterUse): ParameterUse {
  return use.kind === 'condition' && use.test === '=' ? { ...use, test: 'in' } : use
}

function typeFor(
  { type, values, default: given }: QueryParameter,
  use: ParameterUse,
  typeOf: DeclarationOptions['typeOf'],
): ItemType {
  if (type !== undefined && type !== 'list') return type
  if (values !== undefined) return 'enum'
  if (use.kind === 'limit' || use.kind === 'offset') return 'integer'
  if (given !== undefined && !Array.isArray(given)) return findItemType(given)
  return (use.kind === 'condition' ? typeOf(use.path.join('.')) : undefined) ?? 'string'
}

function findItemType(value: unknown): ItemType {
  const [item]: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (typeof item === 'number') return 'number'
  return typeof item === 'boolean' ? 'boolean' : 'string'
}

function readValues({ values = [] }: QueryParameter, type: ItemType, pointer: string) {
  if (type !== 'enum') {
    if (values.length > 0) throw makeInvalidFault(`${pointer}/values`, 'is of an enum')
    return values
  }
  if (values.length === 0)
    throw makeInvalidFault(`${pointer}/values`, 'is needed: what is possible')
  if (new Set(values.map((value) => typeof value)).size > 1)
    throw makeInvalidFault(`${pointer}/values`, 'must be all strings or all numbers')
  return values
}

function readBound(
  bound: number | string | undefined,
  type: ItemType,
  pointer: string,
): number | undefined {
  if (bound === undefined) return undefined
  if (!typesOfBounds.has(type)) throw makeInvalidFault(pointer, 'is of numbers and dates')
  const value = type === 'date' ? Date.parse(String(bound)) : bound
  if (typeof value !== 'number' || Number.isNaN(value))
    throw makeInvalidFault(pointer, `must be a ${type === 'date' ? 'date or a time' : 'number'}`)
  return value
}

function compileMatcher({ pattern }: QueryParameter, type: ItemType, pointer: string) {
  if (pattern === undefined) return undefined
  if (type !== 'string') throw makeInvalidFault(pointer, 'is of strings')
  compilePattern(pattern, pointer)
  const isFolded = pattern.startsWith('(?i)')
  const inner = isFolded ? pattern.slice('(?i)'.length) : pattern
  return compilePattern(`${isFolded ? '(?i)' : ''}^(?:${inner})$`, pointer).matches
}

function checkUse(
  { type, isList, use, maxLength, values, name }: DeclaredParameter,
  pointer: string,
): void {
  const place = `${pointer}/field_path`
  const isText = type === 'string' || type === 'date' || (type === 'enum' && !isNumeric(values))
  switch (use.kind) {
    case 'limit':
    case 'offset':
      if (type !== 'integer' || isList)
        throw makeInvalidFault(`${pointer}/type`, 'must be integer here')
      return
    case 'sort':
      if (type !== 'enum' || isList || !isText)
        throw makeInvalidFault(
          `${pointer}/type`,
          'must be an enum of fields: the owner says what sorts',
        )
      return
    case 'text':
      return
    default:
      if (use.test === 'in' && !isList)
        throw makeInvalidFault(`${pointer}/type`, `must be list for ${name}`)
      if (isList && use.test !== 'in')
        throw makeInvalidFault(place, 'takes one value; a list goes with $in and $nin')
      if ((use.test === 'starts' || use.test === 'ends' || use.ignoreCase) && !isText)
        throw makeInvalidFault(`${pointer}/type`, 'must be string for this operator')
      if (use.test === 'starts' && !use.ignoreCase && maxLength >= keyCharsMax)
        throw makeInvalidFault(`${pointer}/maxLength`, `must be below ${keyCharsMax} for a prefix`)
  }
}

/** Reads a default like a caller's value, so it has the same bounds. */
function readDefault(
  declared: DeclaredParameter,
  sent: unknown,
  { pointer, work }: TextPlace,
): ParameterValue {
  const place = `${pointer}/default`
  const items: readonly unknown[] = Array.isArray(sent) ? sent : [sent]
  if (Array.isArray(sent) !== declared.isList)
    throw makeInvalidFault(place, declared.isList ? 'must be a list' : 'must be one value')
  if (items.length === 0 || items.length > declared.maxItems)
    throw makeInvalidFault(place, `must have 1 to ${declared.maxItems} values`)
  const read = items.map((item, at) => {
    const isScalar = ['string', 'number', 'boolean'].includes(typeof item)
    const pointerOf = declared.isList ? extendPointer(place, at) : place
    if (!isScalar) throw makeInvalidFault(pointerOf, `must be ${declared.type}`)
    return readText(String(item), declared, { pointer: pointerOf, work })
  })
  const [first] = read
  if (declared.isList) return read
  if (first === undefined) throw makeInvalidFault(place, 'is needed')
  return first
}
