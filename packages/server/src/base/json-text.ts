import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from './fault.ts'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes -> text -> value, or a 400 that says what is wrong. An empty body is undefined. */
export function parseJsonBytes(bytes: Buffer): { text: string; value: unknown } {
  if (bytes.length === 0) return { text: '', value: undefined }
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    throw invalid('', 'is not valid UTF-8')
  }
  refuseDeep(bytes)
  try {
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw new Fault('VALIDATION_FAILED', {
      message: 'The body is not valid JSON',
      internal: String(error),
    })
  }
}

/** What is nested by the thousand overflows the stack of whoever walks it: JSON.stringify, checks, PostgreSQL. */
function refuseDeep(bytes: Buffer): void {
  let depth = 0
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === backslash) at++
      else if (byte === quote) isText = false
    } else if (byte === quote) isText = true
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > limits.bodyDepthMax)
        throw invalid('', `is nested deeper than ${limits.bodyDepthMax}`)
    } else if (byte === closeBrace || byte === closeBracket) depth--
  }
}

/**
 * The texts of the items of the array at a top-level key, exactly as sent: digits, order and
 * spelling kept. The text must have passed JSON.parse. Refuses, naming item and place, what
 * would not be stored as sent: duplicate keys, NUL, lone surrogates, numbers past a double's
 * range, nesting past the limit.
 */
export function itemTexts(text: string, key: string): string[] {
  const scan = new Scanner(text)
  return scan.itemsOf(key)
}

/**
 * The text of the object without its members of these names: of the others each keeps its own text and the separator
 * before it, so what a client appended to an object is taken off to the byte. The text must have passed JSON.parse.
 */
export function withoutMembers(text: string, names: readonly string[]): string {
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

/** The text of the value of an object's member; undefined where it has none of this name. Valid JSON as above. */
export function memberText(text: string, name: string): string | undefined {
  const member = new Scanner(text).members().find(({ key }) => key === name)
  return member && text.slice(member.value, member.end)
}

/** The texts of the values of an object's members, by their names and in their order. Valid JSON as above. */
export function memberTexts(text: string): ReadonlyMap<string, string> {
  const members = new Scanner(text).members()
  return new Map(members.map(({ key, value, end }) => [key, text.slice(value, end)]))
}

/** The text of an object with the members of another one: its own of the same names give way, new ones follow. */
export function mergedText(text: string, other: string): string {
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

/** Where a member's key starts, and its value starts and ends. */
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

/** One pass over text that is known to be valid JSON. */
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

  itemsOf(wanted: string): string[] {
    let items: string[] = []
    this.skipSpace()
    this.object(0, (key, depth) => {
      if (key === wanted && this.text.charCodeAt(this.at) === openBracket)
        items = this.items(depth, wanted)
      else this.value(depth)
    })
    return items
  }

  /** Where the members of the object are: from the key's quote to the end of the value. */
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

  private items(depth: number, list: string): string[] {
    const found: string[] = []
    this.array(depth, (inner) => {
      this.item = `/${list}/${found.length}`
      const start = this.at
      this.value(inner)
      found.push(this.text.slice(start, this.at))
    })
    this.item = undefined
    return found
  }

  private value(depth: number): void {
    const code = this.text.charCodeAt(this.at)
    if (code === quote) this.string()
    else if (code === openBrace) this.object(depth, (_, inner) => this.value(inner))
    else if (code === openBracket) this.array(depth, (inner) => this.value(inner))
    else this.scalar()
  }

  private object(depth: number, member: (key: string, depth: number, start: number) => void): void {
    this.checkDepth(depth)
    this.at++
    const seen = new Set<string>()
    this.skipSpace()
    while (this.text.charCodeAt(this.at) !== closeBrace) {
      const start = this.at
      const key = this.string()
      if (seen.has(key)) throw this.refusal(`has the key ${JSON.stringify(key)} twice`)
      seen.add(key)
      this.skipSpace()
      this.at++
      this.skipSpace()
      member(key, depth + 1, start)
      this.skipSpace()
      if (this.text.charCodeAt(this.at) === comma) this.at++
      this.skipSpace()
    }
    this.at++
  }

  private array(depth: number, element: (depth: number) => void): void {
    this.checkDepth(depth)
    this.at++
    this.skipSpace()
    while (this.text.charCodeAt(this.at) !== closeBracket) {
      element(depth + 1)
      this.skipSpace()
      if (this.text.charCodeAt(this.at) === comma) this.at++
      this.skipSpace()
    }
    this.at++
  }

  /** Moves past a string and returns what it says. */
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

  private checkDepth(depth: number): void {
    if (depth > limits.jsonDepthMax)
      throw this.refusal(`is nested deeper than ${limits.jsonDepthMax}`)
  }

  private skipSpace(): void {
    let code = this.text.charCodeAt(this.at)
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      code = this.text.charCodeAt(++this.at)
    }
  }

  private refusal(problem: string): Fault {
    return invalid(this.item ?? this.place, problem)
  }
}
