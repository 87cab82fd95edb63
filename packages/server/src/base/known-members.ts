import { otherWords } from '@tollbase/contract/tolerated'
import { Fault, invalid } from './fault.ts'
import { nearest } from './find-nearest.ts'
import { isRecord } from './is-record.ts'

/** Which members an object may have, and the items of a list; where it is undefined anything may stand. */
export type Known = {
  readonly members?: ReadonlyMap<string, Known | undefined>
  /** Of members of any name. */
  readonly others?: Known
  readonly items?: Known
  /** How many items a list may have: one of more is refused before any of them is looked at. */
  readonly itemsMax?: number
}

/**
 * What a JSON Schema knows: of an object the members that it names, unless it says `additionalProperties: true` or
 * has names by a pattern. Of several kinds of object that may stand at a place, all their members together.
 */
export function knownBy(schema: unknown): Known | undefined {
  if (!isRecord(schema)) return undefined
  if (Array.isArray(schema.anyOf)) return together(schema.anyOf)
  if (schema.type === 'array') {
    const items = knownBy(schema.items)
    const itemsMax = typeof schema.maxItems === 'number' ? schema.maxItems : undefined
    if (items === undefined && itemsMax === undefined) return undefined
    return { ...(items && { items }), ...(itemsMax !== undefined && { itemsMax }) }
  }
  if (isRecord(schema.patternProperties)) {
    const others = Object.values(schema.patternProperties).map(knownBy)[0]
    return others && { others }
  }
  if (schema.type !== 'object' || schema.additionalProperties === true) return undefined
  const entries = Object.entries(isRecord(schema.properties) ? schema.properties : {}).map(
    ([name, one]) => [name, knownBy(one)] as const,
  )
  return { members: new Map(entries) }
}

/** Throws 400 UNKNOWN_MEMBER that names the first member of a value that is not known. */
export function refuseUnknown(known: Known | undefined, value: unknown, pointer: string): void {
  if (known === undefined) return
  if (Array.isArray(value)) {
    const { items, itemsMax = Number.POSITIVE_INFINITY } = known
    if (value.length > itemsMax) throw invalid(pointer, `must not have more than ${itemsMax} items`)
    if (items === undefined) return
    for (const [at, item] of value.entries()) refuseUnknown(items, item, `${pointer}/${at}`)
    return
  }
  const { members, others } = known
  if ((members === undefined && others === undefined) || !isRecord(value)) return
  for (const [name, item] of Object.entries(value)) {
    const inner = members === undefined ? others : members.get(name)
    if (inner === undefined && members?.has(name) === false)
      throw unknownMember(pointer, name, members.keys())
    refuseUnknown(inner, item, `${pointer}/${escaped(name)}`)
  }
}

/** The same with one more member, by its JSON pointer, below which anything may stand. */
export function withMember(known: Known | undefined, pointer: string): Known | undefined {
  if (known?.members === undefined) return known
  const [, first = '', ...rest] = pointer.split('/')
  const inner = known.members.get(first)
  const isNew = !known.members.has(first)
  const at =
    rest.length === 0
      ? undefined
      : withMember(isNew ? { members: new Map() } : inner, `/${rest.join('/')}`)
  return { ...known, members: new Map([...known.members, [first, at]]) }
}

/** A 400 for a member that is not known at a place, with the one that was most likely meant. */
export function unknownMember(place: string, name: string, known: Iterable<string>): Fault {
  const names = [...known]
  const pointer = `${place}/${escaped(name.slice(0, 64))}`
  const meant = meantBy(name, names)
  return new Fault('UNKNOWN_MEMBER', {
    message: `${pointer} is not known here${meantText(meant) || knownText(names)}`,
    details: {
      field: pointer,
      problem: 'is not known here',
      ...(meant !== undefined && { did_you_mean: meant }),
      known: names.slice(0, namesMax),
    },
  })
}

function knownText(names: readonly string[]): string {
  return names.length === 0 ? '; nothing is' : `; known are ${names.slice(0, namesMax).join(', ')}`
}

/** So many names a refusal tells at most. */
const namesMax = 40

/** The question behind a refusal; nothing where no word is near. */
export function meantText(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/** The word that was most likely meant: one a letter or two away, or another interface's word for it. */
export function meantBy(word: string, known: readonly string[]): string | undefined {
  const found = nearest(word, known)
  if (found.distance <= lettersOf(word)) return found.word
  const meanings = Object.hasOwn(otherWords, word) ? (otherWords[word] ?? []) : []
  return meanings.find((one) => known.includes(one))
}

/** How many letters may be wrong: of a short word few, or any other would be near. */
function lettersOf(word: string): number {
  return Math.min(2, Math.floor(word.length / 3))
}

function together(schemas: readonly unknown[]): Known | undefined {
  const kinds = schemas.filter((one) => isRecord(one) && mayHold(one))
  const all = kinds.map(knownBy)
  const given = all.filter((one) => one !== undefined)
  if (given.length === 0 || given.length < all.length) return undefined
  const named = given.flatMap(({ members }) => [...(members ?? [])])
  const items = given.find((one) => one.items !== undefined)?.items
  // The first kind that has a member says what may stand in it.
  const members = new Map(named.toReversed())
  return { ...(members.size > 0 && { members }), ...(items !== undefined && { items }) }
}

/** Whether an object or a list may stand where this schema is. */
function mayHold(schema: Readonly<Record<string, unknown>>): boolean {
  const scalars: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'null']
  return !('const' in schema) && !scalars.includes(schema.type)
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
