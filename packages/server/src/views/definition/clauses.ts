import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import { type DefinitionPlace, enterMember } from './definition-place.ts'

/** A value as it was sent, with its place. */
export type SentValue = { readonly value: unknown; readonly place: DefinitionPlace }

/** A join of a short form: records of `model` under an alias, with the condition that joins them. */
export type NamedJoin = {
  readonly alias: string
  readonly model: SentValue
  readonly type: SentValue | undefined
  /** Equalities, or conditions of find, in which `$data.<field>` is a field of the other record. */
  readonly on: SentValue
  /** The dotted alias of the join that it belongs to; undefined: the query's source. */
  readonly parent: string | undefined
}

/** The clauses of a query by their canonical names; short forms still stand in the values. */
export type Clauses = {
  readonly find: (name: ClauseName) => SentValue | undefined
  readonly joins: readonly NamedJoin[]
}

/** Members of a query, each with its other spellings. */
const spellings = {
  with: [],
  select: [],
  distinct: [],
  distinct_on: ['distinctOn'],
  from: ['base'],
  joins: [],
  join: [],
  find: [],
  where: ['filter'],
  group_by: ['groupBy'],
  aggregate: [],
  having: [],
  order_by: ['orderBy', 'sort_by', 'sortBy'],
  limit: [],
  offset: [],
} as const satisfies Record<string, readonly string[]>
export type ClauseName = keyof typeof spellings

const names = new Map<string, ClauseName>(
  Object.entries(spellings).flatMap(([name, others]) =>
    [name, ...others].flatMap((each) => (isClause(name) ? [[each, name] as const] : [])),
  ),
)

function isClause(name: string): name is ClauseName {
  return Object.hasOwn(spellings, name)
}

/** Reads the clauses of one object's members or several objects'; a null one counts as missing. */
export function readClauses(objects: readonly SentValue[]): Clauses {
  const found = new Map<ClauseName, SentValue>()
  const joins: NamedJoin[] = []
  for (const { value, place } of objects) {
    if (!isRecord(value)) throw makeInvalidFault(place.pointer, 'must be an object')
    for (const [key, item] of Object.entries(value)) {
      const sent = { value: item, place: enterMember(place, key) }
      const name = names.get(key)
      if (name === undefined && isResolved(item)) joins.push(...resolvedJoins(key, sent, undefined))
      else if (name === undefined) throw notAClause(key, sent)
      else if (item === null || item === undefined) continue
      else if (found.has(name))
        throw makeInvalidFault(
          sent.place.pointer,
          `is another name of ${name}, which is there too; send one`,
        )
      else found.set(name, sent)
    }
  }
  const find = found.get('find')
  if (find !== undefined) {
    const parted = partedFind(find, undefined)
    found.set('find', parted.find)
    joins.push(...parted.joins)
  }
  joins.push(...mappedJoins(found.get('join')))
  return { find: (name) => found.get(name), joins }
}

function notAClause(key: string, { place }: SentValue): Error {
  const hint = formatSuggestion(findSuggestion(key, [...names.keys()]))
  return makeInvalidFault(place.pointer, `is not a member of a view's query${hint}`)
}

/** Returns true for a join as requests write it in find: {model, resolve, many}. */
function isResolved(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && typeof value.model === 'string' && isRecord(value.resolve)
}

function resolvedJoins(
  alias: string,
  { value, place }: SentValue,
  parent: string | undefined,
): readonly NamedJoin[] {
  if (!isRecord(value)) return []
  const foreign = Object.keys(value).find((key) => !['model', 'resolve', 'many'].includes(key))
  if (foreign !== undefined)
    throw makeInvalidFault(
      enterMember(place, foreign).pointer,
      'is not a part of a join: resolve, model, many',
    )
  const resolve = { value: value.resolve, place: enterMember(place, 'resolve') }
  const isWhole = isRecord(value.resolve) && ('find' in value.resolve || 'select' in value.resolve)
  const find =
    isWhole && isRecord(value.resolve)
      ? { value: value.resolve.find ?? {}, place: enterMember(resolve.place, 'find') }
      : resolve
  const name = parent === undefined ? alias : `${parent}.${alias}`
  const parted = partedFind(find, name)
  const model = { value: value.model, place: enterMember(place, 'model') }
  return [{ alias, model, type: undefined, on: parted.find, parent }, ...parted.joins]
}

/** Separates the joins of a find from its conditions. */
function partedFind(
  { value, place }: SentValue,
  parent: string | undefined,
): { readonly find: SentValue; readonly joins: readonly NamedJoin[] } {
  if (!isRecord(value)) return { find: { value, place }, joins: [] }
  const entries = Object.entries(value)
  const conditions = entries.filter(([, item]) => !isResolved(item))
  const joins = entries.flatMap(([alias, item]) =>
    isResolved(item)
      ? resolvedJoins(alias, { value: item, place: enterMember(place, alias) }, parent)
      : [],
  )
  return { find: { value: Object.fromEntries(conditions), place }, joins }
}

/**
 * Reads joins written as an object of {on, type, model} by alias, which is the collection's name if no model is
 * given.
 */
function mappedJoins(join: SentValue | undefined): readonly NamedJoin[] {
  if (join === undefined) return []
  if (!isRecord(join.value))
    throw makeInvalidFault(join.place.pointer, 'must be an object of joins by name')
  return Object.entries(join.value).flatMap(([alias, value]) => {
    const place = enterMember(join.place, alias)
    if (isResolved(value)) return resolvedJoins(alias, { value, place }, undefined)
    if (!isRecord(value)) throw makeInvalidFault(place.pointer, 'must be {on, type, model}')
    const foreign = Object.keys(value).find((key) => !['on', 'type', 'model', 'from'].includes(key))
    if (foreign !== undefined)
      throw makeInvalidFault(
        enterMember(place, foreign).pointer,
        'is not a part of a join: on, type, model',
      )
    const { model = value.from ?? alias, type = 'left' } = value
    return {
      alias,
      model: { value: model, place: enterMember(place, 'model') },
      type: { value: type, place: enterMember(place, 'type') },
      on: { value: value.on, place: enterMember(place, 'on') },
      parent: undefined,
    }
  })
}
