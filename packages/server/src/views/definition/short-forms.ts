import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { SentValue } from './clauses.ts'
import { type DefinitionPlace, enterMember } from './definition-place.ts'

/**
 * The owner of a bare path where a short form joins records: the root's record, or behind the alias of a join the
 * joined record. Undefined: paths are as in SQL.
 */
export type PathOwner = {
  readonly root: string
  /** The names of joined relations, by the dotted aliases that lead to them. */
  readonly aliases: ReadonlyMap<string, string>
}

/** Puts the relation's name before the path. */
export function qualifyPath(
  path: string,
  owner: PathOwner | undefined,
  { pointer }: DefinitionPlace,
): string {
  if (owner === undefined) return path
  const found = joinedPath(path, owner)
  if (found === undefined) return path.startsWith(`${owner.root}.`) ? path : `${owner.root}.${path}`
  if (found.rest === '')
    throw makeInvalidFault(
      pointer,
      `is a joined record whole; name one of its fields, such as ${path}.id`,
    )
  return `${found.alias}.${found.rest}`
}

/**
 * Expands the argument of `$count`: a field, all rows (`*`, or the name of the source), or records of a join
 * (`alias.*`).
 */
export function expandCounted(
  path: string,
  { owner, root }: { readonly owner: PathOwner | undefined; readonly root: string | undefined },
  place: DefinitionPlace,
): string {
  if (path === root) return '*'
  if (path === '*' || path.endsWith('.*')) return path
  const found = owner === undefined ? undefined : joinedPath(path, owner)
  return found?.rest === '' ? `${found.alias}.*` : qualifyPath(path, owner, place)
}

function joinedPath(path: string, { aliases }: PathOwner) {
  const names = path.split('.')
  for (let length = names.length; length > 0; length -= 1) {
    const alias = aliases.get(names.slice(0, length).join('.'))
    if (alias !== undefined) return { alias, rest: names.slice(length).join('.') }
  }
  return undefined
}

/** Returns true if a condition is an expression; else it is a find, whose keys are fields. */
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

/** Returns true if a find lets every record through. */
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

/** Expands an order to a list: one path, {path: direction} and lists of these are short forms of it. */
export function expandOrder(
  { value, place }: SentValue,
  options: { readonly owner: PathOwner | undefined; readonly names: ReadonlySet<string> },
): SentValue {
  const { owner, names } = options
  const path = (name: string, at: DefinitionPlace) =>
    names.has(name) ? name : qualifyPath(name, owner, at)
  const items = (item: unknown, at: DefinitionPlace): readonly unknown[] => {
    if (typeof item === 'string') return [path(item, at)]
    const isMap =
      isRecord(item) && !('by' in item) && !Object.keys(item).some((key) => key.startsWith('$'))
    if (isMap)
      return Object.entries(item).map(([name, word]) => {
        const direction = directions.get(String(word).toLowerCase())
        if (direction === undefined)
          throw makeInvalidFault(enterMember(at, name).pointer, 'must be asc or desc')
        return { by: path(name, at), direction }
      })
    const isOfField = isRecord(item) && typeof item.by === 'string'
    return [isOfField ? { ...item, by: path(String(item.by), at) } : item]
  }
  if (!Array.isArray(value))
    return { value: items(value, place), place: { ...place, isMade: true } }
  const lists = value.map((item: unknown, index) => items(item, enterMember(place, index)))
  const isLonger = lists.some((each) => each.length !== 1)
  return { value: lists.flat(), place: isLonger ? { ...place, isMade: true } : place }
}
