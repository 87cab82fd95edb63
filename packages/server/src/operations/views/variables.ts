import { makeInvalidFault } from '../../base/fault.ts'
import { makeUnknownMemberFault } from '../../base/known-members.ts'
import { parseFind } from '../../query/find.ts'
import { removeDollars } from '../../query/remove-dollars.ts'
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

type VariableText = {
  readonly text: string
  /** Names the parameter in refusals. */
  readonly pointer: string
  /** The view's columns, as far as its definition tells their types. */
  readonly columns?: readonly OutputColumn[]
}

/**
 * Parses a parameter to a condition of a `find`: its path is a field of the view, or a field and an operator
 * (`price.$gte`); its text is a value and nothing else.
 */
export function parseVariable(path: string, sent: VariableText): Readonly<Record<string, unknown>> {
  const { field, operator } = splitPath(path)
  if (field === '') throw makeInvalidFault(sent.pointer, 'must begin with the name of a field')
  const tested = parseTest(field, operator, sent)
  const condition = { [field]: { [tested.operator]: tested.value } }
  parseFind(removeDollars(condition, sent.pointer), sent.pointer)
  return condition
}

/** Returns the field of a variable's path, without the operator. */
export function getVariableField(path: string): string {
  return splitPath(path).field
}

/** The find of all parameters that were sent; a 400 names one that the view does not have, or that came twice. */
export function buildFind(
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
      throw makeUnknownMemberFault('/query', name, [...Object.keys(known), ...reservedParameters])
    if (typeof text !== 'string') throw makeInvalidFault(pointer, 'is given more than once')
    if (text.includes('\0'))
      throw makeInvalidFault(pointer, 'must not contain the character U+0000')
    conditions.push(parseVariable(path, { text, pointer, columns }))
  }
  return removeDollars({ $and: conditions })
}

function splitPath(path: string): { field: string; operator: string } {
  const at = path.lastIndexOf('.$')
  if (at < 0) return { field: path, operator: '$eq' }
  return { field: path.slice(0, at), operator: path.slice(at + 1) }
}

type VariableTest = { readonly operator: string; readonly value: unknown }

/** Where the type of a field is not known, equality holds for each value that the text may mean. */
function parseTest(
  field: string,
  operator: string,
  { text, columns = [], pointer }: VariableText,
): VariableTest {
  const type = columns.find(({ path }) => path.join('.') === field)?.type ?? 'json'
  if (operator === '$exists') return { operator, value: parseBoolean(text, pointer) }
  if (operator === '$regex') return { operator, value: text }
  const lists: Readonly<Record<string, string>> = { $eq: '$in', $ne: '$nin' }
  const list = lists[operator] ?? operator
  if (list === '$in' || list === '$nin') {
    const parts = list === operator ? text.split(',') : [text]
    return { operator: list, value: parts.flatMap((part) => listMeanings(part, type, pointer)) }
  }
  const [value] = listMeanings(text, type, pointer).toReversed()
  return { operator, value }
}

/** Lists the values that the text may mean, the text itself first. */
function listMeanings(text: string, type: OutputColumn['type'], pointer: string): unknown[] {
  const number = parseNumber(text)
  if (type === 'number') {
    if (number === undefined) throw makeInvalidFault(pointer, 'must be a number')
    return [number]
  }
  if (type === 'boolean') return [parseBoolean(text, pointer)]
  if (type !== 'json') return [text]
  const isBoolean = text === 'true' || text === 'false'
  return [text, ...(isBoolean ? [text === 'true'] : []), ...(number === undefined ? [] : [number])]
}

function parseBoolean(text: string, pointer: string): boolean {
  if (text !== 'true' && text !== 'false') throw makeInvalidFault(pointer, 'must be true or false')
  return text === 'true'
}

/** Parses a text that is one spelling of a JSON number; undefined for any other. */
function parseNumber(text: string): number | undefined {
  if (!/^-?(0|[1-9]\d{0,15})(\.\d{1,16})?$/.test(text)) return undefined
  return Number(text)
}
