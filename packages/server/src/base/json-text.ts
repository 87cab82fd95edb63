import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from './fault.ts'
import { findBreak } from './json-break.ts'
import { parseInSlices } from './json-slices.ts'
import { awaitTurn } from './turn.ts'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A parsed body. The value of an empty body is undefined. */
export type JsonBody = { readonly text: string; readonly value: unknown }

/** Parses a body at once; throws a 400 that says what is wrong. */
export function parseJsonBytes(bytes: Buffer): JsonBody {
  if (bytes.length === 0) return { text: '', value: undefined }
  const text = decodeText(bytes)
  refuseShape(bytes)
  try {
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw notJson(text, error)
  }
}

/** Parses a body of any length and yields to other requests in between. */
export async function parseLongJson(bytes: Buffer): Promise<JsonBody> {
  const text = await decodeLongText(bytes)
  try {
    const value = await parseInSlices(text, {
      charsMax: limits.bodyBytesAtOnce / 2,
      depthMax: limits.bodyDepthMax,
      membersMax: limits.objectMembersMax,
      pause: awaitTurn,
    })
    return { text, value }
  } catch (error) {
    throw error instanceof Fault ? error : notJson(text, error)
  }
}

function decodeText(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw makeInvalidFault('', 'is not valid UTF-8')
  }
}

async function decodeLongText(bytes: Buffer): Promise<string> {
  const ownDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const parts: string[] = []
  const step = limits.bodyBytesAtOnce * 8
  try {
    for (let at = 0; at < bytes.length; at += step) {
      parts.push(ownDecoder.decode(bytes.subarray(at, at + step), { stream: true }))
      await awaitTurn()
    }
    parts.push(ownDecoder.decode())
  } catch {
    throw makeInvalidFault('', 'is not valid UTF-8')
  }
  return parts.join('')
}

function notJson(text: string, error: unknown): Fault {
  const place = findBreak(text)
  const where =
    place === undefined ? '' : `: it breaks at line ${place.line}, column ${place.column}`
  return new Fault('VALIDATION_FAILED', {
    message: `The body is not valid JSON${where}`,
    details: { field: '', problem: 'is not valid JSON', ...place },
    internal: String(error),
  })
}

/**
 * Refuses bodies of extreme shape. Nesting by the thousand overflows the stack of every recursive walk
 * (JSON.stringify, checks, PostgreSQL), and objects of very many members take long to make and to look through.
 */
function refuseShape(bytes: Buffer): void {
  /** Commas counted so far in each open object and list. */
  const commas: number[] = []
  const kinds: number[] = []
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === backslash) at++
      else if (byte === quote) isText = false
    } else if (byte === quote) isText = true
    else if (byte === openBrace || byte === openBracket) {
      kinds.push(byte)
      if (commas.push(0) > limits.bodyDepthMax)
        throw makeInvalidFault('', `is nested deeper than ${limits.bodyDepthMax}`)
    } else if (byte === closeBrace || byte === closeBracket) {
      commas.pop()
      kinds.pop()
    } else if (byte === comma && kinds.at(-1) === openBrace) {
      const members = (commas.pop() ?? 0) + 1
      commas.push(members)
      if (members >= limits.objectMembersMax)
        throw makeInvalidFault('', `has an object of more than ${limits.objectMembersMax} members`)
    }
  }
}

/**
 * Lists the texts of the items of the array at a top-level key, exactly as sent: digits, order and spelling kept.
 * The text must have passed JSON.parse. Refuses, naming item and place, content that could not be stored as sent:
 * duplicate keys, NUL, lone surrogates, numbers past a double's range, nesting past the limit.
 */
export function listItemTexts(text: string, key: string): string[] {
  return [...iterateItemTexts(text, key)]
}

/** Iterates over these texts; a refusal comes when its item is reached. */
export function iterateItemTexts(text: string, key: string): Iterable<string> {
  return new Scanner(text).readItems(key)
}

/**
 * Removes the members of these names from an object's text. The others keep their own text and the separator before
 * it, so members that a client appended are taken off to the byte. The text must have passed JSON.parse.
 */
export function removeMembers(text: string, names: readonly string[]): string {
  const members = new Scanner(text).members()
  const first = members[0]
  const last = members.at(-1)
  if (first === undefined || last === undefined) return text
  let kept = text.slice(0, first.start)
  members.forEach(({ key, start, end }, at) => {
    if (names.includes(key)) return
    const isFirst = kept.length === first.start
    kept += text.slice(isFirst ? start : (members[at - 1]?.end ?? start), end)
  })
  return kept + text.slice(last.end)
}

/**
 * Finds the text of a member's value; undefined where the object has no such member. The text must have passed
 * JSON.parse.
 */
export function findMemberText(text: string, name: string): string | undefined {
  const member = new Scanner(text).members().find(({ key }) => key === name)
  return member && text.slice(member.value, member.end)
}

/**
 * Maps an object's member names, in their order, to the texts of their values. The text must have passed
 * JSON.parse.
 */
export function listMemberTexts(text: string): ReadonlyMap<string, string> {
  const members = new Scanner(text).members()
  return new Map(members.map(({ key, value, end }) => [key, text.slice(value, end)]))
}

/** Merges two objects as texts: members of the other object replace those of the same name, new ones follow. */
export function mergeObjectTexts(text: string, other: string): string {
  const fresh = new Map(
    new Scanner(other).members().map(({ key, start, end }) => [key, other.slice(start, end)]),
  )
  const kept = new Scanner(text).members().map(({ key, start, end }) => {
    const replacement = fresh.get(key)
    fresh.delete(key)
    return replacement ?? text.slice(start, end)
  })
  return `{${[...kept, ...fresh.values()].join(',')}}`
}

/** Offsets of a member: the start of its key, and the start and end of its value. */
type Member = {
  readonly key: string
  readonly start: number
  readonly value: number
  readonly end: number
}

/** Refuses, naming `pointer`, a value whose JSON text could not be a part of a record. */
export function checkStorable(value: unknown, pointer: string): void {
  new Scanner(JSON.stringify(value), pointer).whole()
}

/** A single pass over text that is known to be valid JSON. */
class Scanner {
  private at = 0
  /** Pointer of the item that is being read. */
  private item: string | undefined
  private readonly text: string
  private readonly place: string

  /** `place` is the pointer of the text itself. */
  constructor(text: string, place = '') {
    this.text = text
    this.place = place
  }

  whole(): void {
    this.value(0)
  }

  *readItems(wanted: string): Generator<string, void> {
    this.skipSpace()
    this.open(0)
    const seen = new Set<string>()
    while (this.text.charCodeAt(this.at) !== closeBrace) {
      if (this.key(seen) === wanted && this.text.charCodeAt(this.at) === openBracket)
        yield* this.items(1, wanted)
      else this.value(1)
      this.separator()
    }
    this.at++
  }

  /** Locates the members of the object, from the key's quote to the end of the value. */
  members(): Member[] {
    const found: Member[] = []
    this.skipSpace()
    this.object(0, (key, depth, start) => {
      const value = this.at
      this.value(depth)
      found.push({ key, start, value, end: this.at })
    })
    return found
  }

  private *items(depth: number, list: string): Generator<string, void> {
    this.open(depth)
    for (let count = 0; this.text.charCodeAt(this.at) !== closeBracket; count++) {
      this.item = `/${list}/${count}`
      const start = this.at
      this.value(depth + 1)
      yield this.text.slice(start, this.at)
      this.separator()
    }
    this.at++
    this.item = undefined
  }

  private value(depth: number): void {
    const code = this.text.charCodeAt(this.at)
    if (code === quote) this.string()
    else if (code === openBrace) this.object(depth, (_, inner) => this.value(inner))
    else if (code === openBracket) this.array(depth, (inner) => this.value(inner))
    else this.scalar()
  }

  private object(depth: number, member: (key: string, depth: number, start: number) => void): void {
    this.open(depth)
    const seen = new Set<string>()
    while (this.text.charCodeAt(this.at) !== closeBrace) {
      const start = this.at
      member(this.key(seen), depth + 1, start)
      this.separator()
    }
    this.at++
  }

  private array(depth: number, element: (depth: number) => void): void {
    this.open(depth)
    while (this.text.charCodeAt(this.at) !== closeBracket) {
      element(depth + 1)
      this.separator()
    }
    this.at++
  }

  /** Moves into an object or a list. */
  private open(depth: number): void {
    if (depth > limits.jsonDepthMax)
      throw this.refusal(`is nested deeper than ${limits.jsonDepthMax}`)
    this.at++
    this.skipSpace()
  }

  /** Moves past a key to its value; refuses one that was there before. */
  private key(seen: Set<string>): string {
    const key = this.string()
    if (seen.has(key)) throw this.refusal(`has the key ${JSON.stringify(key)} twice`)
    seen.add(key)
    this.skipSpace()
    this.at++
    this.skipSpace()
    return key
  }

  private separator(): void {
    this.skipSpace()
    if (this.text.charCodeAt(this.at) === comma) this.at++
    this.skipSpace()
  }

  /** Moves past a string and returns its content. */
  private string(): string {
    const start = this.at
    let escaped = false
    let end = this.text.indexOf('"', start + 1)
    while (this.backslashesBefore(end) % 2 === 1) {
      escaped = true
      end = this.text.indexOf('"', end + 1)
    }
    this.at = end + 1
    const raw = this.text.slice(start + 1, end)
    if (!escaped && !raw.includes('\\')) {
      if (!raw.isWellFormed()) throw this.refusal('contains half of a surrogate pair')
      return raw
    }
    const said: string = JSON.parse(this.text.slice(start, this.at))
    if (said.includes('\u0000'))
      throw this.refusal('contains the character U+0000, which cannot be stored')
    if (!said.isWellFormed()) throw this.refusal('contains half of a surrogate pair')
    return said
  }

  private backslashesBefore(end: number): number {
    let count = 0
    while (this.text.charCodeAt(end - 1 - count) === backslash) count++
    return count
  }

  private scalar(): void {
    const start = this.at
    let code = this.text.charCodeAt(this.at)
    while (code > 0x20 && code !== comma && code !== closeBrace && code !== closeBracket) {
      code = this.text.charCodeAt(++this.at)
    }
    const first = this.text.charCodeAt(start)
    // Numbers start with a digit or a minus; 15 characters without an exponent need no second look.
    if (first <= 0x39 && this.at - start > 4) this.checkNumber(this.text.slice(start, this.at))
  }

  private checkNumber(token: string): void {
    if (token.length > 400 || !Number.isFinite(Number(token))) {
      throw this.refusal(`has a number that is too large to keep: ${token.slice(0, 24)}`)
    }
    const exponent = /[eE]-(\d+)$/.exec(token)?.[1]
    if (exponent !== undefined && Number(exponent) > 400) {
      throw this.refusal(`has a number that is too small to keep: ${token.slice(0, 24)}`)
    }
  }

  private skipSpace(): void {
    let code = this.text.charCodeAt(this.at)
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      code = this.text.charCodeAt(++this.at)
    }
  }

  private refusal(problem: string): Fault {
    return makeInvalidFault(this.item ?? this.place, problem)
  }
}
