import { invalid } from '../../base/fault.ts'
import { checkText } from '../../query/operand.ts'
import { quoteText } from '../../query/sql-text.ts'
import { quotedName } from './marked-sql.ts'

/** `app::collection`, and what a path has behind it. */
const qualifiedForm = /^([a-z][a-z0-9_-]{2,62})::([A-Za-z0-9_-]{1,63})(?:\.(.+))?$/s

const modelForm = /^(?:([a-z][a-z0-9_-]{2,62})::)?([A-Za-z0-9_-]{1,63})$/

/** `app::collection` of a name with or without the application. */
export function modelOf(name: string, app: string, pointer: string): string {
  const [, owner = app, collection] = modelForm.exec(name) ?? []
  if (collection === undefined) throw invalid(pointer, 'must be a collection or app::collection')
  return `${owner}::${collection}`
}

/** A number as a literal; a negative one in brackets, so that no sign before it makes a comment. */
export function numberSql(value: number, pointer: string): string {
  if (!Number.isFinite(value)) throw invalid(pointer, 'must be a number of double precision')
  return value < 0 ? `(${value})` : String(value)
}

export function textSql(value: string, pointer: string): string {
  return quoteText(checkText(value, pointer))
}

/** Whether a path begins with `app::collection`. */
export function isQualified(path: string): boolean {
  return qualifiedForm.test(path)
}

/** The SQL of a field's path, `t.volume` or `app::collection.volume`. */
export function pathSql(path: string, pointer: string): string {
  const [, app, collection, field] = qualifiedForm.exec(path) ?? []
  const isOfModel = app !== undefined && collection !== undefined && field !== undefined
  return namesSql(isOfModel ? [app, collection, ...field.split('.')] : path.split('.'), pointer)
}

/** The SQL of the name of a relation, `t` or `app::collection`. */
export function relationSql(name: unknown, pointer: string): string {
  if (typeof name !== 'string') throw invalid(pointer, 'must be the name of a source')
  const [, app, collection, field] = qualifiedForm.exec(name) ?? []
  const isModel = app !== undefined && collection !== undefined && field === undefined
  return namesSql(isModel ? [app, collection] : [name], pointer)
}

function namesSql(names: readonly string[], pointer: string): string {
  if (names[0]?.startsWith('$'))
    throw invalid(
      pointer,
      'begins with $; a field is written without it, and a text as {"$literal": "…"}',
    )
  return names.map((name) => nameSql(name, pointer)).join('.')
}

/** One name of a field, a relation or a column. */
export function nameSql(name: string, pointer: string): string {
  checkText(name, pointer)
  if (name === '') throw invalid(pointer, 'has an empty name')
  if (name === '*') throw invalid(pointer, 'has *, which is no value')
  return quotedName(name, pointer)
}

/** The name that is given to a column, a source or a sub-query. */
export function givenName(name: string, pointer: string): string {
  if (name.startsWith('$'))
    throw invalid(pointer, 'is an operator where a name is given: {"name": expression}')
  if (name.includes('.')) throw invalid(pointer, 'is a name with a dot, which no path could reach')
  return nameSql(name, pointer)
}
