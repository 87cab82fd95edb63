import { isValueToken, JsonScanner, type JsonToken } from '@tollbase/verify/json-scanner'

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
const plainInteger = /^(?:0|-?[1-9]\d*)$/

/** Parses the text, or throws a StrictJsonError that says what is wrong. */
export function parseStrictJson(text: string): StrictJson {
  // Most clients write as JSON.stringify does. Such a text has no key twice, and is read natively.
  const value = parseLoosely(text)
  if (isPlain(value, 0) && JSON.stringify(value) === text) return value
  return parseByTokens(text)
}

/** Undefined where it is no JSON. */
function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns true for a value in which there is nothing to refuse, and no number to keep as its digits. */
function isPlain(value: unknown, depth: number): value is StrictJson {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value === 'number') return Number.isSafeInteger(value)
  if (typeof value !== 'object') return typeof value === 'boolean'
  if (value === null) return true
  if (depth === depthMax) return false
  const isEachPlain = (one: unknown) => isPlain(one, depth + 1)
  if (Array.isArray(value)) return value.every(isEachPlain)
  return Object.entries(value).every(
    ([key, one]) => !specialKeys.has(key) && key.isWellFormed() && isEachPlain(one),
  )
}

function parseByTokens(text: string): StrictJson {
  const scanner = new StrictScanner(text)
  const value = readValue(scanner, scanner.next())
  scanner.next()
  return value
}

/** Refuses a text that is broken, or whose strings and scalars are not well spelled. */
class StrictScanner extends JsonScanner {
  override next(): JsonToken {
    const token = super.next()
    const isSpelled = token === 'key' || token === 'string' || token === 'scalar'
    if (token === 'broken' || (isSpelled && !this.isWellSpelled()))
      throw new StrictJsonError(`is not valid JSON at character ${this.start}`)
    if (this.depth > depthMax) throw new StrictJsonError(`is nested deeper than ${depthMax}`)
    return token
  }

  override parseString(): string {
    const said = super.parseString()
    if (!said.isWellFormed()) throw new StrictJsonError('contains half of a surrogate pair')
    return said
  }
}

/** Reads the value that the token begins; the scanner has refused tokens that begin none. */
function readValue(scanner: StrictScanner, token: JsonToken): StrictJson {
  if (token === '{') return readObject(scanner)
  if (token === '[') return readArray(scanner)
  if (token === 'string') return scanner.parseString()
  return readScalar(scanner.getTokenText())
}

function readObject(scanner: StrictScanner): { [key: string]: StrictJson } {
  const object: { [key: string]: StrictJson } = Object.create(null)
  while (scanner.next() === 'key') {
    const key = scanner.parseString()
    if (specialKeys.has(key)) throw new StrictJsonError(`has the key ${key}`)
    if (key in object) throw new StrictJsonError(`has the key ${JSON.stringify(key)} twice`)
    object[key] = readValue(scanner, scanner.next())
  }
  return object
}

function readArray(scanner: StrictScanner): StrictJson[] {
  const array: StrictJson[] = []
  for (let token = scanner.next(); isValueToken(token); token = scanner.next())
    array.push(readValue(scanner, token))
  return array
}

function readScalar(text: string): null | boolean | number | OtherNumber {
  const value: null | boolean | number = JSON.parse(text)
  if (typeof value !== 'number') return value
  return plainInteger.test(text) && Number.isSafeInteger(value) ? value : new OtherNumber(text)
}
