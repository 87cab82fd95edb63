import { makeInvalidFault } from '../../base/fault.ts'
import { getOwnValue, isRecord } from '../../base/is-record.ts'
import { extendPointer } from '../field-path.ts'
import { isScalar } from '../operand.ts'
import { removeDollars } from '../remove-dollars.ts'
import { getOperatorName } from './parameter-use.ts'

/** A base query as it was sent; nothing of it is trusted. */
export type SentBase = {
  readonly find?: unknown
  readonly select?: unknown
  readonly sort?: unknown
  readonly limit?: number | null
  readonly offset?: number | null
  readonly group_by?: unknown
  readonly aggregate?: unknown
  readonly distinct?: unknown
}

/** Reads the find of a base query, with the operator names of POST /list. */
export function readBaseFind(base: SentBase): unknown {
  return removeDollars(base.find, '/base_query/find')
}

/**
 * Removes from a find the value that a parameter replaces, and returns both: the value is the parameter's default.
 */
export function takeDefault(
  find: unknown,
  fieldPath: string | undefined,
): { readonly find: unknown; readonly value: unknown } {
  const [, name = fieldPath ?? '', written = 'is'] =
    /^(.+)\.\$([A-Za-z]+)$/.exec(fieldPath ?? '') ?? []
  const operator = getOperatorName(written)
  const nothing = { find, value: undefined }
  if (!isRecord(find) || !Object.hasOwn(find, name)) return nothing
  const there = getOwnValue(find, name)
  const without = Object.entries(find).filter(([key]) => key !== name)
  if (isScalar(there))
    return operator === 'is' ? { find: Object.fromEntries(without), value: there } : nothing
  const key = isRecord(there)
    ? Object.keys(there).find((each) => getOperatorName(each) === operator)
    : undefined
  if (!isRecord(there) || key === undefined) return nothing
  const others = Object.entries(there).filter(([each]) => each !== key)
  const kept = others.length === 0 ? [] : [[name, Object.fromEntries(others)] as const]
  return { find: Object.fromEntries([...without, ...kept]), value: there[key] }
}

/** Reads `-rating` as a request's `sortBy` and `sortDirection`. */
export function readBaseSort(sort: unknown, pointer = '/base_query/sort') {
  const list: readonly unknown[] = Array.isArray(sort) ? sort : [sort]
  const [first, second] = list
  if (sort === undefined || sort === null || first === undefined) return {}
  if (second !== undefined)
    throw makeInvalidFault(
      pointer,
      'has more than one field; rows of equal values come in the order of storing',
    )
  if (typeof first !== 'string')
    throw makeInvalidFault(pointer, 'must be a field, such as "-rating"')
  const descending = first.startsWith('-')
  return {
    sortBy: descending ? first.slice(1) : first,
    sortDirection: descending ? 'descending' : 'ascending',
  }
}

/** Reads a list of fields as the object that means the same. */
export function readBaseSelect(select: unknown): unknown {
  if (!Array.isArray(select)) return select
  const names: readonly unknown[] = select
  const entries = names.map((name, at): [string, true] => {
    if (typeof name !== 'string')
      throw makeInvalidFault(extendPointer('/base_query/select', at), 'must be the name of a field')
    return [name, true]
  })
  return Object.fromEntries(entries)
}
