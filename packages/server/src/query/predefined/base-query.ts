import { invalid } from '../../base/fault.ts'
import { isRecord, ownValue } from '../../base/is-record.ts'
import { member } from '../field-path.ts'
import { isScalar } from '../operand.ts'
import { withoutDollars } from '../remove-dollars.ts'
import { operatorName } from './parameter-use.ts'

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

/** The find of a base query, in the names of POST /list. */
export function findOfBase(base: SentBase): unknown {
  return withoutDollars(base.find, '/base_query/find')
}

/** A find without the value that a parameter takes the place of, and that value: it is the parameter's default. */
export function takenFrom(
  find: unknown,
  fieldPath: string | undefined,
): { readonly find: unknown; readonly value: unknown } {
  const [, name = fieldPath ?? '', written = 'is'] =
    /^(.+)\.\$([A-Za-z]+)$/.exec(fieldPath ?? '') ?? []
  const operator = operatorName(written)
  const nothing = { find, value: undefined }
  if (!isRecord(find) || !Object.hasOwn(find, name)) return nothing
  const there = ownValue(find, name)
  const without = Object.entries(find).filter(([key]) => key !== name)
  if (isScalar(there))
    return operator === 'is' ? { find: Object.fromEntries(without), value: there } : nothing
  const key = isRecord(there)
    ? Object.keys(there).find((each) => operatorName(each) === operator)
    : undefined
  if (!isRecord(there) || key === undefined) return nothing
  const others = Object.entries(there).filter(([each]) => each !== key)
  const kept = others.length === 0 ? [] : [[name, Object.fromEntries(others)] as const]
  return { find: Object.fromEntries([...without, ...kept]), value: there[key] }
}

/** `-rating` in the words of a request: `sortBy`, `sortDirection`. */
export function sortOfBase(sort: unknown, pointer = '/base_query/sort') {
  const list: readonly unknown[] = Array.isArray(sort) ? sort : [sort]
  const [first, second] = list
  if (sort === undefined || sort === null || first === undefined) return {}
  if (second !== undefined)
    throw invalid(
      pointer,
      'has more than one field; rows of equal values come in the order of storing',
    )
  if (typeof first !== 'string') throw invalid(pointer, 'must be a field, such as "-rating"')
  const descending = first.startsWith('-')
  return {
    sortBy: descending ? first.slice(1) : first,
    sortDirection: descending ? 'descending' : 'ascending',
  }
}

/** A list of fields means what an object of them does. */
export function selectOfBase(select: unknown): unknown {
  if (!Array.isArray(select)) return select
  const names: readonly unknown[] = select
  const entries = names.map((name, at): [string, true] => {
    if (typeof name !== 'string')
      throw invalid(member('/base_query/select', at), 'must be the name of a field')
    return [name, true]
  })
  return Object.fromEntries(entries)
}
