import { limits } from '@tollbase/contract/limits'
import { isValueToken, JsonScanner, type JsonToken } from '@tollbase/verify/json-scanner'
import { assert } from './assert.ts'
import { awaitTurn } from './await-turn.ts'
import { type Fault, makeInvalidFault } from './fault.ts'
import { type JsonSource, toJsonSource, toListSource } from './json-source.ts'

// Texts that are cut here have passed JSON.parse; parts keep their bytes: digits, order, spelling and blanks.

/**
 * Lists the texts of the items of the array at a top-level key, exactly as sent. Refuses, naming item and place,
 * content that could not be stored as sent: duplicate keys, NUL, lone surrogates, numbers past a double's range,
 * nesting past the limit.
 */
export function listItemTexts(source: JsonSource, key: string): string[] {
  return [...iterateItemTexts(source, key)]
}

/** Iterates over these texts; a refusal comes when its item is reached. */
export function* iterateItemTexts(source: JsonSource, wanted: string): Generator<string, void> {
  const scanner = new StorableScanner(source)
  scanner.next()
  while (scanner.next() === 'key') {
    const { key } = scanner
    const token = scanner.next()
    if (key === wanted && token === '[') yield* iterateItems(scanner, key)
    else scanner.skipValue(token)
  }
}

function* iterateItems(scanner: StorableScanner, key: string): Generator<string, void> {
  scanner.place = `/${key}/0`
  for (let count = 1, token = scanner.next(); isValueToken(token); token = scanner.next()) {
    const { start } = scanner
    scanner.skipValue(token)
    yield scanner.source.cut(start, scanner.end)
    scanner.place = `/${key}/${count++}`
  }
  scanner.place = ''
}

/**
 * Lists the texts of items joined by commas, which the service itself has made and which may be long: other requests have
 * their turns meanwhile.
 */
export async function listElementTextsInTurns(items: string): Promise<string[]> {
  const source = toListSource(items)
  const scanner = new JsonScanner(source)
  const found: string[] = []
  scanner.next()
  const outside = scanner.depth
  let pauseAt = charsAtOnce
  for (let token = scanner.next(); isValueToken(token); token = scanner.next()) {
    const { start } = scanner
    for (;;) {
      if (scanner.end >= pauseAt) {
        pauseAt = scanner.end + charsAtOnce
        await awaitTurn()
      }
      if (scanner.depth <= outside) break
      scanner.next()
    }
    found.push(source.cut(start, scanner.end))
  }
  return found
}

/** Offsets of a part of a text. */
export type TextRange = { readonly from: number; readonly to: number }

/**
 * Removes the members of these names from an object's text. The others keep their own text and the separator before
 * it, so members that a client appended are taken off to the byte.
 */
export function removeMembers(text: string, names: readonly string[]): string {
  const kept = listKept(listMembers(text), { end: text.length, names })
  return kept.map(({ from, to }) => text.slice(from, to)).join('')
}

/** Lists what `removeMembers` leaves of a long text, and yields to other requests in between. */
export async function listKeptInTurns(
  source: JsonSource,
  names: readonly string[],
): Promise<readonly TextRange[]> {
  return listKept(await listMembersInTurns(source), { end: source.length, names })
}

function listKept(
  members: readonly Member[],
  { end, names }: { readonly end: number; readonly names: readonly string[] },
): readonly TextRange[] {
  const first = members[0]
  const last = members.at(-1)
  if (first === undefined || last === undefined) return [{ from: 0, to: end }]
  const kept = members.flatMap((member, at) => {
    if (names.includes(member.key)) return []
    return [{ from: members[at - 1]?.end ?? member.start, to: member.end, start: member.start }]
  })
  const [leading, ...others] = kept
  return [
    { from: 0, to: first.start },
    ...(leading === undefined ? [] : [{ from: leading.start, to: leading.to }]),
    ...others,
    { from: last.end, to: end },
  ]
}

/** Finds the text of a member's value; undefined where the text is no object with such a member. */
export function findMemberText(text: string, name: string): string | undefined {
  const member = listMembers(text).find(({ key }) => key === name)
  return member && text.slice(member.value, member.end)
}

/** The same of a text that may be long. */
export async function findMemberTextInTurns(
  text: string,
  name: string,
): Promise<string | undefined> {
  for (const member of iterateMembers(toJsonSource(text))) {
    if (member === undefined) await awaitTurn()
    else if (member.key === name) return text.slice(member.value, member.end)
  }
  return undefined
}

/** Merges two objects as texts: members of the other object replace those of the same name, new ones follow. */
export function mergeObjectTexts(text: string, other: string): string {
  return merge({ text, members: listMembers(text) }, { text: other, members: listMembers(other) })
}

/**
 * The same of texts that may be long: other requests have their turns meanwhile. `noteNew` is told of the members that
 * the other object adds, and of all.
 */
export async function mergeObjectTextsInTurns(
  text: string,
  other: string,
  noteNew?: (added: number, all: number) => void,
): Promise<string> {
  return merge(
    { text, members: await listMembersInTurns(toJsonSource(text)) },
    { text: other, members: await listMembersInTurns(toJsonSource(other)) },
    noteNew,
  )
}

type Members = { readonly text: string; readonly members: readonly Member[] }

function merge(
  { text, members }: Members,
  other: Members,
  noteNew?: (added: number, all: number) => void,
): string {
  const fresh = new Map(
    other.members.map(({ key, start, end }) => [key, other.text.slice(start, end)]),
  )
  const kept = members.map(({ key, start, end }) => {
    const replacement = fresh.get(key)
    fresh.delete(key)
    return replacement ?? text.slice(start, end)
  })
  noteNew?.(fresh.size, kept.length + fresh.size)
  return `{${[...kept, ...fresh.values()].join(',')}}`
}

/** Adds members behind the last one of an object's text, which has none of them. */
export function addMembers(
  text: string,
  members: readonly (readonly [name: string, value: unknown])[],
): string {
  if (members.length === 0) return text
  const open = text.slice(0, text.lastIndexOf('}')).trimEnd()
  const added = members
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join(',')
  return `${open}${open === '{' ? '' : ','}${added}}`
}

/** Refuses, naming `pointer`, a value whose JSON text could not be a part of a record. */
export function checkStorable(value: unknown, pointer: string): void {
  const scanner = new StorableScanner(toJsonSource(JSON.stringify(value)), pointer)
  scanner.skipValue(scanner.next())
}

/** Offsets of a member: the start of its key, and the start and end of its value. */
type Member = {
  readonly key: string
  readonly start: number
  readonly value: number
  readonly end: number
}

/** Locates the members of an object, from the key's quote to the end of the value; there are none of other values. */
function listMembers(text: string): Member[] {
  return [...iterateMembers(toJsonSource(text))].filter((member) => member !== undefined)
}

async function listMembersInTurns(source: JsonSource): Promise<Member[]> {
  const members: Member[] = []
  for (const member of iterateMembers(source)) {
    if (member === undefined) await awaitTurn()
    else members.push(member)
  }
  return members
}

/** Characters that are scanned without a pause. */
const charsAtOnce = 128 * 1024

/** Iterates over the members; undefined where others may have a turn. */
function* iterateMembers(source: JsonSource): Generator<Member | undefined, void> {
  const scanner = new StorableScanner(source)
  if (scanner.next() !== '{') return
  let pauseAt = charsAtOnce
  while (scanner.next() === 'key') {
    const { key, start } = scanner
    const outside = scanner.depth
    scanner.next()
    const value = scanner.start
    for (;;) {
      if (scanner.end >= pauseAt) {
        pauseAt = scanner.end + charsAtOnce
        yield undefined
      }
      if (scanner.depth <= outside) break
      scanner.next()
    }
    yield { key, start, value, end: scanner.end }
  }
}

/** Refuses content that could not be stored as it was sent. */
class StorableScanner extends JsonScanner {
  readonly source: JsonSource
  /** Pointer that a refusal names. */
  place: string
  /** The last key. */
  key = ''
  /** Keys of each object that is open, from the outermost. */
  readonly #keys: Set<string>[] = []

  constructor(source: JsonSource, place = '') {
    super(source)
    this.source = source
    this.place = place
  }

  override getTokenText(): string {
    const { source, start, end } = this
    return source.isScannedAsIs ? super.getTokenText() : source.cut(start, end)
  }

  override next(): JsonToken {
    const token = super.next()
    assert(token !== 'broken', 'the text has passed JSON.parse')
    switch (token) {
      case 'key':
        this.#noteKey()
        break
      case 'string':
        if (this.hasEscapes) this.#parseStorable()
        break
      case 'scalar':
        // Four characters need no second look.
        if (this.end - this.start > 4) this.#checkNumber(this.getTokenText())
        break
      case '{':
      case '[':
        if (this.depth > limits.jsonDepthMax + 1)
          throw this.#refusal(`is nested deeper than ${limits.jsonDepthMax}`)
        if (token === '{') this.#keys.push(new Set())
        break
      default:
        if (token === '}') this.#keys.pop()
    }
    return token
  }

  #noteKey(): void {
    const key = this.#parseStorable()
    const keys = this.#keys.at(-1)
    if (keys?.has(key)) throw this.#refusal(`has the key ${JSON.stringify(key)} twice`)
    keys?.add(key)
    this.key = key
  }

  #parseStorable(): string {
    const said = this.parseString()
    // The text was UTF-8, or is JSON.stringify's: both are well-formed where nothing is escaped.
    if (!this.hasEscapes) return said
    if (said.includes('\u0000'))
      throw this.#refusal('contains the character U+0000, which cannot be stored')
    if (!said.isWellFormed()) throw this.#refusal('contains half of a surrogate pair')
    return said
  }

  #checkNumber(token: string): void {
    if (token === 'false') return
    if (token.length > 400 || !Number.isFinite(Number(token)))
      throw this.#refusal(`has a number that is too large to keep: ${token.slice(0, 24)}`)
    const exponent = /[eE]-(\d+)$/.exec(token)?.[1]
    if (exponent !== undefined && Number(exponent) > 400)
      throw this.#refusal(`has a number that is too small to keep: ${token.slice(0, 24)}`)
  }

  #refusal(problem: string): Fault {
    return makeInvalidFault(this.place, problem)
  }
}
