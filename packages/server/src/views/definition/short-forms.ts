import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Sent } from './clauses.ts'
import { inside, type Place } from './definition-place.ts'

/**
 * Whose a bare path is where records are joined by a short form: of the root's record, or behind the alias of a join
 * of the joined one. Undefined: paths are as in SQL.
 */
export type Owner = {
  readonly root: string
  /** Names of joined relations by the dotted aliases that lead to them. */
  readonly aliases: ReadonlyMap<string, string>
}

/** The path with its relation's name before it. */
export function owned(path: string, owner: Owner | undefined, { pointer }: Place): string {
  if (owner === undefined) return path
  const found = joinedPath(path, owner)
  if (found === undefined) return path.startsWith(`${owner.root}.`) ? path : `${owner.root}.${path}`
  if (found.rest === '')
    throw invalid(pointer, `is a joined record whole; name one of its fields, such as ${path}.id`)
  return `${found.alias}.${found.rest}`
}

/** What `$count` counts: a field, all rows (`*`, or the name of the source), or records of a join (`alias.*`). */
export function counted(
  path: string,
  { owner, root }: { readonly owner: Owner | undefined; readonly root: string | undefined },
  place: Place,
): string {
  if (path === root) return '*'
  if (path === '*' || path.endsWith('.*')) return path
  const found = owner === undefined ? undefined : joinedPath(path, owner)
  return found?.rest === '' ? `${found.alias}.*` : owned(path, owner, place)
}

function joinedPath(path: string, { aliases }: Owner) {
  const names = path.split('.')
  for (let length = names.length; length > 0; length -= 1) {
    const alias = aliases.get(names.slice(0, length).join('.'))
    if (alias !== undefined) return { alias, rest: names.slice(length).join('.') }
  }
  return undefined
}

/** Whether a condition is an expression; else it is one of find, whose keys are fields. */
export function isExpression(value: unknown): boolean {
  if (typeof value === 'string' || typeof value === 'boolean') return true
  if (!isRecord(value)) return false
  const [name, second] = Object.keys(value).filter((key) => key.startsWith('$'))
  if (name === undefined || second !== undefined || name === '$nor') return false
  if (name !== '$and' && name !== '$or' && name !== '$not') return true
  const inner = value[name]
  const items: readonly unknown[] = Array.isArray(inner) ? inner : [inner]
  return items.some(isExpression)
}

/** Whether a find lets every record through. */
export function isEmptyFind(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === null || (isRecord(value) && Object.keys(value).length === 0)
}

const directions = new Map([
  ['asc', 'asc'],
  ['ascending', 'asc'],
  ['desc', 'desc'],
  ['descending', 'desc'],
])

/** An order as a list: one path, {path: direction} and lists of these are short for it. */
export function orderList(
  { value, place }: Sent,
  options: { readonly owner: Owner | undefined; readonly names: ReadonlySet<string> },
): Sent {
  const { owner, names } = options
  const path = (name: string, at: Place) => (names.has(name) ? name : owned(name, owner, at))
  const items = (item: unknown, at: Place): readonly unknown[] => {
    if (typeof item === 'string') return [path(item, at)]
    const isMap =
      isRecord(item) && !('by' in item) && !Object.keys(item).some((key) => key.startsWith('$'))
    if (isMap)
      return Object.entries(item).map(([name, word]) => {
        const direction = directions.get(String(word).toLowerCase())
        if (direction === undefined) throw invalid(inside(at, name).pointer, 'must be asc or desc')
        return { by: path(name, at), direction }
      })
    const isOfField = isRecord(item) && typeof item.by === 'string'
    return [isOfField ? { ...item, by: path(String(item.by), at) } : item]
  }
  if (!Array.isArray(value))
    return { value: items(value, place), place: { ...place, isMade: true } }
  const lists = value.map((item: unknown, index) => items(item, inside(place, index)))
  const isLonger = lists.some((each) => each.length !== 1)
  return { value: lists.flat(), place: isLonger ? { ...place, isMade: true } : place }
}
