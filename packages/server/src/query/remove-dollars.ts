import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { extendPointer } from './field-path.ts'

const operators: ReadonlyMap<string, string> = new Map([
  ['$eq', 'is'],
  ['$ne', 'isNot'],
  ['$gt', 'greaterThan'],
  ['$gte', 'greaterThanOrEqual'],
  ['$lt', 'lessThan'],
  ['$lte', 'lessThanOrEqual'],
  ['$in', 'in'],
  ['$nin', 'notIn'],
  ['$exists', 'exists'],
  ['$regex', 'regExpMatches'],
])
const logicals: ReadonlyMap<string, string> = new Map([
  ['$and', 'and'],
  ['$or', 'or'],
  ['$not', 'not'],
  ['$nor', 'not'],
])

/**
 * Returns the find that one with Mongo's operator names (`$gt`, `$in`, `$or` ...) stands for. Stored base queries
 * of views and predefined queries may use them; in a request such a name counts as a typing error.
 */
export function removeDollars(find: unknown, pointer = '/find', depth = 0): unknown {
  if (depth > limits.jsonDepthMax)
    throw makeInvalidFault(pointer, `is nested deeper than ${limits.jsonDepthMax} levels`)
  if (Array.isArray(find))
    return find.map((item, at) => removeDollars(item, extendPointer(pointer, at), depth + 1))
  if (!isRecord(find)) return find
  const plain: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(find)) {
    const place = extendPointer(pointer, key)
    const operator = operators.get(key)
    const name = operator ?? logicals.get(key) ?? key
    if (name.startsWith('$')) throw makeInvalidFault(place, 'is not an operator')
    if (Object.hasOwn(plain, name)) throw makeInvalidFault(place, `says ${name} a second time`)
    const inner = operator === undefined ? removeDollars(item, place, depth + 1) : item
    const value = key === '$nor' ? [{ or: inner }] : inner
    // An assignment would take a field called __proto__ for the prototype.
    Object.defineProperty(plain, name, { value, enumerable: true })
  }
  return plain
}
