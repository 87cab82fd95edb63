import { makeInvalidFault } from '../../base/fault.ts'
import { checkText } from '../../query/operand.ts'
import { quoteText } from '../../query/sql-text.ts'
import { quoteAnyName } from './marked-sql.ts'

/** The form of `app::collection`, with the rest of a path behind it. */
const qualifiedForm = /^([a-z][a-z0-9_-]{2,62})::([A-Za-z0-9_-]{1,63})(?:\.(.+))?$/s

const modelForm = /^(?:([a-z][a-z0-9_-]{2,62})::)?([A-Za-z0-9_-]{1,63})$/

/** Returns `app::collection` for a name with or without the application. */
export function toModel(name: string, app: string, pointer: string): string {
  const [, owner = app, collection] = modelForm.exec(name) ?? []
  if (collection === undefined)
    throw makeInvalidFault(pointer, 'must be a collection or app::collection')
  return `${owner}::${collection}`
}

/** Prints a number as a literal; a negative one in brackets, so that no sign before it starts a comment. */
export function printNumber(value: number, pointer: string): string {
  if (!Number.isFinite(value))
    throw makeInvalidFault(pointer, 'must be a number of double precision')
  return value < 0 ? `(${value})` : String(value)
}

export function printText(value: string, pointer: string): string {
  return quoteText(checkText(value, pointer))
}

/** Returns true if a path begins with `app::collection`. */
export function isQualified(path: string): boolean {
  return qualifiedForm.test(path)
}

/** Prints a field's path, `t.volume` or `app::collection.volume`. */
export function printPath(path: string, pointer: string): string {
  const [, app, collection, field] = qualifiedForm.exec(path) ?? []
  const isOfModel = app !== undefined && collection !== undefined && field !== undefined
  return printNames(isOfModel ? [app, collection, ...field.split('.')] : path.split('.'), pointer)
}

/** Prints the name of a relation, `t` or `app::collection`. */
export function printRelation(name: unknown, pointer: string): string {
  if (typeof name !== 'string') throw makeInvalidFault(pointer, 'must be the name of a source')
  const [, app, collection, field] = qualifiedForm.exec(name) ?? []
  const isModel = app !== undefined && collection !== undefined && field === undefined
  return printNames(isModel ? [app, collection] : [name], pointer)
}

function printNames(names: readonly string[], pointer: string): string {
  if (names[0]?.startsWith('$'))
    throw makeInvalidFault(
      pointer,
      'begins with $; a field is written without it, and a text as {"$literal": "…"}',
    )
  return names.map((name) => printName(name, pointer)).join('.')
}

/** Prints one name of a field, a relation or a column. */
export function printName(name: string, pointer: string): string {
  checkText(name, pointer)
  if (name === '') throw makeInvalidFault(pointer, 'has an empty name')
  if (name === '*') throw makeInvalidFault(pointer, 'has *, which is no value')
  return quoteAnyName(name, pointer)
}

/** Prints the name given to a column, a source or a sub-query. */
export function printGivenName(name: string, pointer: string): string {
  if (name.startsWith('$'))
    throw makeInvalidFault(pointer, 'is an operator where a name is given: {"name": expression}')
  if (name.includes('.'))
    throw makeInvalidFault(pointer, 'is a name with a dot, which no path could reach')
  return printName(name, pointer)
}
