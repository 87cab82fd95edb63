import { limits } from '@tollbase/contract/limits'
import { invalid } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { member } from './field-path.ts'

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
 * The find that one with Mongo's names of operators (`$gt`, `$in`, `$or` ...) means. Stored base queries of views and
 * predefined queries may be written so; in a request such a name is taken for a typing error.
 */
export function withoutDollars(find: unknown, pointer = '/find', depth = 0): unknown {
  if (depth > limits.jsonDepthMax)
    throw invalid(pointer, `is nested deeper than ${limits.jsonDepthMax} levels`)
  if (Array.isArray(find))
    return find.map((item, at) => withoutDollars(item, member(pointer, at), depth + 1))
  if (!isRecord(find)) return find
  const plain: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(find)) {
    const place = member(pointer, key)
    const operator = operators.get(key)
    const name = operator ?? logicals.get(key) ?? key
    if (name.startsWith('$')) throw invalid(place, 'is not an operator')
    if (Object.hasOwn(plain, name)) throw invalid(place, `says ${name} a second time`)
    const inner = operator === undefined ? withoutDollars(item, place, depth + 1) : item
    const value = key === '$nor' ? [{ or: inner }] : inner
    // A field may be called __proto__, which an assignment would take for the prototype.
    Object.defineProperty(plain, name, { value, enumerable: true })
  }
  return plain
}
