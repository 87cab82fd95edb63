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
