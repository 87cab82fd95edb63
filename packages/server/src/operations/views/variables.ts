import { invalid } from '../../base/fault.ts'
import { unknownMember } from '../../base/known-members.ts'
import { parseFind } from '../../query/find.ts'
import { withoutDollars } from '../../query/remove-dollars.ts'
import type { OutputColumn } from '../../query/tree/query.ts'

/** Parameters of every view. */
export const reservedParameters: ReadonlySet<string> = new Set([
  'limit',
  'offset',
  'sortBy',
  'sortDirection',
  'max_kb',
  'api_key',
])

type Sent = {
  readonly text: string
  /** Names the parameter in refusals. */
  readonly pointer: string
  /** Of the view, as far as its definition says their types. */
  readonly columns?: readonly OutputColumn[]
}

/**
 * The condition of a `find` that a parameter states: its path is a field of the view, or a field and an operator
 * (`price.$gte`); its text is a value and nothing else.
 */
export function readVariable(path: string, sent: Sent): Readonly<Record<string, unknown>> {
  const { field, operator } = partsOf(path)
  if (field === '') throw invalid(sent.pointer, 'must begin with the name of a field')
  const tested = testOf(field, operator, sent)
  const condition = { [field]: { [tested.operator]: tested.value } }
  parseFind(withoutDollars(condition, sent.pointer), sent.pointer)
  return condition
}

/** The field that a variable's path is of, without the operator. */
export function fieldOfVariable(path: string): string {
  return partsOf(path).field
}

/** The find of all parameters that were sent; a 400 names one that the view does not have, or that came twice. */
export function findOfParameters(
  query: Readonly<Record<string, string | readonly string[]>>,
  {
    variables,
    columns,
  }: {
    variables: Readonly<Record<string, string>> | null
    columns: readonly OutputColumn[]
  },
): unknown {
  const known = variables ?? {}
  const conditions: Readonly<Record<string, unknown>>[] = []
  for (const [name, text] of Object.entries(query)) {
    if (reservedParameters.has(name)) continue
    const pointer = `/query/${name}`
    const path = Object.hasOwn(known, name) ? known[name] : undefined
    if (path === undefined)
      throw unknownMember('/query', name, [...Object.keys(known), ...reservedParameters])
    if (typeof text !== 'string') throw invalid(pointer, 'is given more than once')
    if (text.includes('\0')) throw invalid(pointer, 'must not contain the character U+0000')
    conditions.push(readVariable(path, { text, pointer, columns }))
  }
  return withoutDollars({ $and: conditions })
}

function partsOf(path: string): { field: string; operator: string } {
  const at = path.lastIndexOf('.$')
  if (at < 0) return { field: path, operator: '$eq' }
  return { field: path.slice(0, at), operator: path.slice(at + 1) }
}

type Tested = { readonly operator: string; readonly value: unknown }

/** Where the type of a field is not known, equality holds for each value that the text may mean. */
function testOf(field: string, operator: string, { text, columns = [], pointer }: Sent): Tested {
  const type = columns.find(({ path }) => path.join('.') === field)?.type ?? 'json'
  if (operator === '$exists') return { operator, value: oneOfTwo(text, pointer) }
  if (operator === '$regex') return { operator, value: text }
  const lists: Readonly<Record<string, string>> = { $eq: '$in', $ne: '$nin' }
  const list = lists[operator] ?? operator
  if (list === '$in' || list === '$nin') {
    const parts = list === operator ? text.split(',') : [text]
    return { operator: list, value: parts.flatMap((part) => meanings(part, type, pointer)) }
  }
  const [value] = meanings(text, type, pointer).toReversed()
  return { operator, value }
}

/** The text, then what else it may be. */
function meanings(text: string, type: OutputColumn['type'], pointer: string): unknown[] {
  const number = numberOf(text)
  if (type === 'number') {
    if (number === undefined) throw invalid(pointer, 'must be a number')
    return [number]
  }
  if (type === 'boolean') return [oneOfTwo(text, pointer)]
  if (type !== 'json') return [text]
  const isBoolean = text === 'true' || text === 'false'
  return [text, ...(isBoolean ? [text === 'true'] : []), ...(number === undefined ? [] : [number])]
}

function oneOfTwo(text: string, pointer: string): boolean {
  if (text !== 'true' && text !== 'false') throw invalid(pointer, 'must be true or false')
  return text === 'true'
}

/** A text that is one spelling of a JSON number. */
function numberOf(text: string): number | undefined {
  if (!/^-?(0|[1-9]\d{0,15})(\.\d{1,16})?$/.test(text)) return undefined
  return Number(text)
}
