/**
 * A token of JSON: a string before a colon is a `key`, and a `scalar` is a number, true, false or null. The last one is
 * `end`, or `broken` where no token can stand.
 */
export type JsonToken = '{' | '}' | '[' | ']' | 'key' | 'string' | 'scalar' | 'end' | 'broken'

/** A long text that is not in memory as one string; lengths are in characters. */
export type JsonText = {
  readonly length: number
  readonly read: (from: number, to: number) => string
  /** The length of the parts that it is read in. */
  readonly partMax: number
  /** The length of its longest token; one that is longer is told to be so, with an end that is not its own. */
  readonly tokenMax: number
  /** The most space between two tokens; where there is more, the text may be told to be broken somewhere in it. */
  readonly spaceMax: number
}

/** Returns true if the token begins a value. */
export function isValueToken(token: JsonToken): boolean {
  return token === 'string' || token === 'scalar' || token === '{' || token === '['
}

/** The tokens that may come next; a `member` is a key in an object and a value in a list. */
type Wanted = 'value' | 'first member or end' | 'colon' | 'next member or end'

const codes = {
  quote: 0x22,
  backslash: 0x5c,
  comma: 0x2c,
  colon: 0x3a,
  openBrace: 0x7b,
  closeBrace: 0x7d,
  openBracket: 0x5b,
  closeBracket: 0x5d,
} as const

/**
 * Native code is several times as fast as a loop where there is much to skip, and slower where there is little. It looks
 * for the end: an expression that takes all before it would keep a stack of each place that it could go back to.
 */
const noSpace = /[^ \t\n\r]/g
/** The end of a number or word. */
const noScalar = /[^\w.+-]/g

/**
 * Reads JSON text token by token; the only code that does. It judges where a token may stand, so that every text is
 * either read to its end or broken at a place. It does not judge how strings and scalars are spelled: a text that has
 * passed JSON.parse needs no second look, others are asked by `isWellSpelled`. A stack of its own, not the program's,
 * holds what is open, so no nesting is too deep for it.
 */
export class JsonScanner {
  readonly #whole: JsonText
  /** The part of the text that is being read, and its offset. */
  #part = ''
  #offset = 0
  /** Offsets of the token, and of what follows it. */
  start = 0
  end = 0
  /** True if the token is a key or string in which a character is escaped. */
  hasEscapes = false
  /** For each list and object that is open behind the token, from the outermost: true for an object. */
  readonly #open: boolean[] = []
  #isObject = false
  #wanted: Wanted = 'value'
  /** The place of the next backslash in the part: one search serves all strings before it. */
  #backslash = -1

  constructor(text: string | JsonText) {
    this.#whole = typeof text === 'string' ? makeWhole(text) : text
    this.#readPart(0, this.#whole.partMax)
  }

  /** Number of lists and objects that are open behind the token. */
  get depth(): number {
    return this.#open.length
  }

  /** Moves to the next token. A reader stops at the last one. */
  next(): JsonToken {
    const code = this.#skipSpace()
    switch (this.#wanted) {
      case 'value':
        return this.#value(code)
      case 'colon':
        return code === codes.colon ? this.#value(this.#skipMark()) : 'broken'
      case 'first member or end':
        return this.#ends(code) ? this.#close() : this.#member(code)
      default:
        if (this.#open.length === 0) return this.start === this.#whole.length ? 'end' : 'broken'
        if (this.#ends(code)) return this.#close()
        return code === codes.comma ? this.#member(this.#skipMark()) : 'broken'
    }
  }

  /** Moves to the end of the value that the token begins. */
  skipValue(token: JsonToken): void {
    if (token !== '{' && token !== '[') return
    const inside = this.depth
    while (this.depth >= inside) {
      const inner = this.next()
      if (inner === 'end' || inner === 'broken') return
    }
  }

  /** Returns the text of the token, as it stands there. */
  getTokenText(): string {
    return this.#part.slice(this.start - this.#offset, this.end - this.#offset)
  }

  /** Returns the meaning of a key or string; throws a SyntaxError where it is not well spelled. */
  parseString(): string {
    const token = this.getTokenText()
    return this.hasEscapes ? JSON.parse(token) : token.slice(1, -1)
  }

  /** Returns true if JSON.parse takes the token, which is a key, a string or a scalar. */
  isWellSpelled(): boolean {
    try {
      JSON.parse(this.getTokenText())
      return true
    } catch {
      return false
    }
  }

  #member(code: number): JsonToken {
    if (!this.#isObject) return this.#value(code)
    if (code !== codes.quote || !this.#skipString()) return 'broken'
    this.#wanted = 'colon'
    return 'key'
  }

  #value(code: number): JsonToken {
    if (code === codes.openBrace) return this.#enter(true)
    if (code === codes.openBracket) return this.#enter(false)
    const isString = code === codes.quote
    if (isString ? !this.#skipString() : !this.#skipScalar()) return 'broken'
    this.#wanted = 'next member or end'
    return isString ? 'string' : 'scalar'
  }

  #enter(isObject: boolean): JsonToken {
    this.end = this.start + 1
    this.#open.push(isObject)
    this.#isObject = isObject
    this.#wanted = 'first member or end'
    return isObject ? '{' : '['
  }

  /** Returns true if the character ends the innermost list or object. */
  #ends(code: number): boolean {
    return code === (this.#isObject ? codes.closeBrace : codes.closeBracket)
  }

  #close(): JsonToken {
    const token = this.#isObject ? '}' : ']'
    this.end = this.start + 1
    this.#open.pop()
    this.#isObject = this.#open.at(-1) === true
    this.#wanted = 'next member or end'
    return token
  }

  /** Moves past a comma or colon and the space behind it; returns the code of the character there. */
  #skipMark(): number {
    this.end = this.start + 1
    return this.#skipSpace()
  }

  /** Moves the start to what follows the token; returns its character's code, NaN at the end of the text. */
  #skipSpace(from = this.end): number {
    const part = this.#part
    let at = this.end - this.#offset
    let code = part.charCodeAt(at)
    // Mostly there is no space, or one.
    if (code === 0x20) code = part.charCodeAt(++at)
    if (isSpace(code)) {
      at = findFirst(noSpace, part, at)
      code = part.charCodeAt(at)
    }
    this.start = at + this.#offset
    if (at < part.length || this.#isLast()) return code
    const { partMax, spaceMax } = this.#whole
    if (this.start - from > spaceMax) return Number.NaN
    this.end = this.start
    this.#readPart(this.start, partMax)
    return this.#skipSpace(from)
  }

  #readPart(from: number, chars: number): void {
    this.#part = this.#whole.read(from, from + chars)
    this.#offset = from
    this.#backslash = -1
  }

  /** Returns true if nothing follows the part. */
  #isLast(): boolean {
    return this.#offset + this.#part.length === this.#whole.length
  }

  /** Reads the token anew if its part has but its beginning; false if it is longer than any. */
  #readWhole(): boolean {
    const { tokenMax } = this.#whole
    if (this.#offset === this.start && this.#part.length > tokenMax) return false
    this.#readPart(this.start, tokenMax + 1)
    return true
  }

  /** Moves the end behind the string that begins at the start; false where it has no end. */
  #skipString(): boolean {
    const part = this.#part
    const start = this.start - this.#offset
    if (this.#backslash < start) this.#backslash = indexOrEnd(part, '\\', start)
    const quote = indexOrEnd(part, '"', start + 1)
    this.hasEscapes = this.#backslash < quote
    const end = this.hasEscapes ? findUnescaped(part, this.#backslash) : quote
    this.end = this.#offset + Math.min(end + 1, part.length)
    if (end < part.length) return true
    if (this.#isLast()) return false
    return this.#readWhole() ? this.#skipString() : true
  }

  /** Moves the end behind the number or word that begins at the start; false where there is none. */
  #skipScalar(): boolean {
    const end = findFirst(noScalar, this.#part, this.start - this.#offset)
    this.end = this.#offset + end
    if (end === this.#part.length && !this.#isLast() && this.#readWhole()) return this.#skipScalar()
    return this.end > this.start
  }
}

function makeWhole(text: string): JsonText {
  const { length } = text
  return { length, read: () => text, partMax: length, tokenMax: length, spaceMax: length }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** Finds the first character of this form, which has the flag `g`; the length of the text where there is none. */
function findFirst(form: RegExp, text: string, from: number): number {
  form.lastIndex = from
  return form.test(text) ? form.lastIndex - 1 : text.length
}

function indexOrEnd(text: string, character: string, from: number): number {
  const found = text.indexOf(character, from)
  return found < 0 ? text.length : found
}

/** Finds the quote that ends a string, from one of its backslashes on. */
function findUnescaped(text: string, backslash: number): number {
  let at = backslash
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === codes.quote) break
    at += code === codes.backslash ? 2 : 1
  }
  return at
}
