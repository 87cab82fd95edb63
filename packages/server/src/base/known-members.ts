import { otherWords } from '@tollbase/contract/tolerated-members'
import { Fault, makeInvalidFault } from './fault.ts'
import { findNearest } from './find-nearest.ts'
import { isRecord } from './is-record.ts'

/** The members that an object may have, and the items of a list; undefined allows anything. */
export type KnownMembers = {
  readonly members?: ReadonlyMap<string, KnownMembers | undefined>
  /** The schema of members of any name. */
  readonly others?: KnownMembers
  readonly items?: KnownMembers
  /** The most items that a list may have: one of more is refused before any item is looked at. */
  readonly itemsMax?: number
}

/**
 * Returns the members that a JSON Schema knows. An object knows the members that it names, unless it says
 * `additionalProperties: true`, or has others by a schema or a pattern. Where several kinds of object may stand, all
 * their members count together.
 */
export function toKnownMembers(schema: unknown): KnownMembers | undefined {
  if (!isRecord(schema)) return undefined
  if (Array.isArray(schema.anyOf)) return mergeKnown(schema.anyOf)
  if (schema.type === 'array') {
    const items = toKnownMembers(schema.items)
    const itemsMax = typeof schema.maxItems === 'number' ? schema.maxItems : undefined
    if (items === undefined && itemsMax === undefined) return undefined
    return { ...(items && { items }), ...(itemsMax !== undefined && { itemsMax }) }
  }
  const { additionalProperties, patternProperties } = schema
  if (isRecord(patternProperties) || isRecord(additionalProperties)) {
    const [first = additionalProperties] = Object.values(patternProperties ?? {})
    const others = toKnownMembers(first)
    return others && { others }
  }
  if (schema.type !== 'object' || additionalProperties === true) return undefined
  const entries = Object.entries(isRecord(schema.properties) ? schema.properties : {}).map(
    ([name, one]) => [name, toKnownMembers(one)] as const,
  )
  return { members: new Map(entries) }
}

/** Throws 400 UNKNOWN_MEMBER that names the first member of a value that is not known. */
export function refuseUnknown(
  known: KnownMembers | undefined,
  value: unknown,
  pointer: string,
): void {
  if (known === undefined) return
  if (Array.isArray(value)) {
    const { items, itemsMax = Number.POSITIVE_INFINITY } = known
    if (value.length > itemsMax)
      throw makeInvalidFault(pointer, `must not have more than ${itemsMax} items`)
    if (items === undefined) return
    for (const [at, item] of value.entries()) refuseUnknown(items, item, `${pointer}/${at}`)
    return
  }
  const { members, others } = known
  if ((members === undefined && others === undefined) || !isRecord(value)) return
  for (const [name, item] of Object.entries(value)) {
    const inner = members === undefined ? others : members.get(name)
    if (inner === undefined && members?.has(name) === false)
      throw makeUnknownMemberFault(pointer, name, members.keys())
    refuseUnknown(inner, item, `${pointer}/${escapePointer(name)}`)
  }
}

/** Adds one more member, by its JSON pointer; anything may stand below it. */
export function addMember(
  known: KnownMembers | undefined,
  pointer: string,
): KnownMembers | undefined {
  if (known?.members === undefined) return known
  const [, first = '', ...rest] = pointer.split('/')
  const inner = known.members.get(first)
  const isNew = !known.members.has(first)
  const at =
    rest.length === 0
      ? undefined
      : addMember(isNew ? { members: new Map() } : inner, `/${rest.join('/')}`)
  return { ...known, members: new Map([...known.members, [first, at]]) }
}

/** Makes a 400 for an unknown member, with the name that was most likely meant. */
export function makeUnknownMemberFault(
  place: string,
  name: string,
  known: Iterable<string>,
): Fault {
  const names = [...known]
  const pointer = `${place}/${escapePointer(name.slice(0, 64))}`
  const meant = findSuggestion(name, names)
  return new Fault('UNKNOWN_MEMBER', {
    message: `${pointer} is not known here${formatSuggestion(meant) || formatKnown(names)}`,
    details: {
      field: pointer,
      problem: 'is not known here',
      ...(meant !== undefined && { did_you_mean: meant }),
      known: names.slice(0, namesMax),
    },
  })
}

function formatKnown(names: readonly string[]): string {
  return names.length === 0 ? '; nothing is' : `; known are ${names.slice(0, namesMax).join(', ')}`
}

/** Names that a refusal lists. */
const namesMax = 40

/** Formats the suggestion at the end of a refusal; empty where no word is near. */
export function formatSuggestion(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/** Finds the word that was most likely meant: one a letter or two away, or our word for that of another interface. */
export function findSuggestion(word: string, known: readonly string[]): string | undefined {
  const found = findNearest(word, known)
  if (found.distance <= computeDistanceMax(word)) return found.word
  const meanings = Object.hasOwn(otherWords, word) ? (otherWords[word] ?? []) : []
  return meanings.find((one) => known.includes(one))
}

/** The edit distance at which a word still counts as near: small for short words, or any other would be near. */
function computeDistanceMax(word: string): number {
  return Math.min(2, Math.floor(word.length / 3))
}

function mergeKnown(schemas: readonly unknown[]): KnownMembers | undefined {
  const kinds = schemas.filter((one) => isRecord(one) && mayHold(one))
  const all = kinds.map(toKnownMembers)
  const given = all.filter((one) => one !== undefined)
  if (given.length === 0 || given.length < all.length) return undefined
  const named = given.flatMap(({ members }) => [...(members ?? [])])
  const items = given.find((one) => one.items !== undefined)?.items
  // The first kind that has a member decides what may stand in it.
  const members = new Map(named.toReversed())
  return { ...(members.size > 0 && { members }), ...(items !== undefined && { items }) }
}

/** True where an object or a list may stand under this schema. */
function mayHold(schema: Readonly<Record<string, unknown>>): boolean {
  const scalars: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'null']
  return !('const' in schema) && !scalars.includes(schema.type)
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
