/**
 * JSON (RFC 8259) read so that two readers cannot understand it differently: duplicate keys, keys that JavaScript
 * treats in a special way, and half surrogate pairs are refused. A number that is not plainly a safe integer is
 * kept as its digits, so that no field reader accepts it.
 */
export type StrictJson =
  | null
  | boolean
  | number
  | string
  | OtherNumber
  | readonly StrictJson[]
  | { readonly [key: string]: StrictJson }

/** A fraction, an exponent, a minus zero or an integer past 2^53. */
export class OtherNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError'
}

const depthMax = 16
const specialKeys = new Set(['__proto__', 'constructor', 'prototype'])
const space = /[\t\n\r ]*/y
const numberToken = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const plainInteger = /^(?:0|-?[1-9]\d*)$/
const stringToken = /"(?:[^"\\]|\\.)*"/y

/** Parses the text, or throws a StrictJsonError that says what is wrong. */
export function parseStrictJson(text: string): StrictJson {
  const reader = new Reader(text)
  const value = reader.value(0)
  reader.end()
  return value
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(depth: number): StrictJson {
    if (depth > depthMax) throw new StrictJsonError(`is nested deeper than ${depthMax}`)
    this.#match(space)
    const first = this.#text[this.#at]
    if (first === '{') return this.#object(depth)
    if (first === '[') return this.#array(depth)
    if (first === '"') return this.#string()
    for (const [word, meaning] of words) {
      if (!this.#text.startsWith(word, this.#at)) continue
      this.#at += word.length
      return meaning
    }
    return this.#number()
  }

  end(): void {
    this.#match(space)
    if (this.#at !== this.#text.length) throw this.#unexpected()
  }

  #object(depth: number): { [key: string]: StrictJson } {
    const object: { [key: string]: StrictJson } = Object.create(null)
    this.#at++
    if (this.#skip('}')) return object
    do {
      this.#match(space)
      const key = this.#string()
      if (specialKeys.has(key)) throw new StrictJsonError(`has the key ${key}`)
      if (key in object) throw new StrictJsonError(`has the key ${JSON.stringify(key)} twice`)
      if (!this.#skip(':')) throw this.#unexpected()
      object[key] = this.value(depth + 1)
    } while (this.#skip(','))
    if (!this.#skip('}')) throw this.#unexpected()
    return object
  }

  #array(depth: number): StrictJson[] {
    const array: StrictJson[] = []
    this.#at++
    if (this.#skip(']')) return array
    do {
      array.push(this.value(depth + 1))
    } while (this.#skip(','))
    if (!this.#skip(']')) throw this.#unexpected()
    return array
  }

  #string(): string {
    const token = this.#match(stringToken)
    if (token === undefined) throw this.#unexpected()
    const said = this.#unescaped(token)
    if (!said.isWellFormed()) throw new StrictJsonError('contains half of a surrogate pair')
    return said
  }

  #unescaped(token: string): string {
    try {
      return JSON.parse(token)
    } catch {
      throw this.#unexpected()
    }
  }

  #number(): number | OtherNumber {
    const token = this.#match(numberToken)
    if (token === undefined) throw this.#unexpected()
    const value = Number(token)
    return plainInteger.test(token) && Number.isSafeInteger(value) ? value : new OtherNumber(token)
  }

  /** Skips the next character, after white space, if it is this one. */
  #skip(character: string): boolean {
    this.#match(space)
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #match(token: RegExp): string | undefined {
    token.lastIndex = this.#at
    const found = token.exec(this.#text)?.[0]
    if (found !== undefined) this.#at = token.lastIndex
    return found
  }

  #unexpected(): StrictJsonError {
    return new StrictJsonError(`is not valid JSON at character ${this.#at}`)
  }
}

const words: readonly (readonly [string, null | boolean])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
]
