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
  try {
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw new Fault('VALIDATION_FAILED', {
      message: 'The body is not valid JSON',
      internal: String(error),
    })
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

/** One pass over text that is known to be valid JSON. */
class Scanner {
  private at = 0
  private item = -1
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  itemsOf(wanted: string): string[] {
    let items: string[] = []
    this.skipSpace()
    this.object(0, (key, depth) => {
      if (key === wanted && this.text.charCodeAt(this.at) === openBracket) items = this.items(depth)
      else this.value(depth)
    })
    return items
  }

  private items(depth: number): string[] {
    const found: string[] = []
    this.array(depth, (inner) => {
      this.item = found.length
      const start = this.at
      this.value(inner)
      found.push(this.text.slice(start, this.at))
    })
    this.item = -1
    return found
  }

  private value(depth: number): void {
    const code = this.text.charCodeAt(this.at)
    if (code === quote) this.string()
    else if (code === openBrace) this.object(depth, (_, inner) => this.value(inner))
    else if (code === openBracket) this.array(depth, (inner) => this.value(inner))
    else this.scalar()
  }

  private object(depth: number, member: (key: string, depth: number) => void): void {
    this.checkDepth(depth)
    this.at++
    const seen = new Set<string>()
    this.skipSpace()
    while (this.text.charCodeAt(this.at) !== closeBrace) {
      const key = this.string()
      if (seen.has(key)) throw this.refusal(`has the key ${JSON.stringify(key)} twice`)
      seen.add(key)
      this.skipSpace()
      this.at++
      this.skipSpace()
      member(key, depth + 1)
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
    return invalid(this.item < 0 ? '' : `/data/${this.item}`, problem)
  }
}
