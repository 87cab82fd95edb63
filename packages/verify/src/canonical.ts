import { FormatError } from './bytes.ts'
import { isFields } from './fields.ts'

const depthMax = 64

/**
 * Formats a JSON value as its one canonical text, after RFC 8785 (JCS): members sorted by UTF-16 code units, no
 * white space, strings as ECMAScript writes them. Numbers must be whole and within 2^53, since our documents carry
 * amounts as strings.
 */
export function canonicalizeJson(value: unknown): string {
  return write(value, 0)
}

function write(value: unknown, depth: number): string {
  if (depth > depthMax) throw new FormatError(`the JSON is nested deeper than ${depthMax}`)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return writeText(value)
  if (typeof value === 'number') return writeNumber(value)
  if (Array.isArray(value)) return `[${value.map((each) => write(each, depth + 1)).join(',')}]`
  if (!isFields(value)) throw new FormatError(`a value of type ${typeof value} is not JSON`)
  const members = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .sort()
    .map((name) => `${writeText(name)}:${write(value[name], depth + 1)}`)
  return `{${members.join(',')}}`
}

function writeNumber(value: number): string {
  if (!Number.isSafeInteger(value)) throw new FormatError('a number must be whole and within 2^53')
  return String(value === 0 ? 0 : value)
}

function writeText(value: string): string {
  if (/\p{Surrogate}/u.test(value)) throw new FormatError('a string has half of a surrogate pair')
  return JSON.stringify(value)
}
