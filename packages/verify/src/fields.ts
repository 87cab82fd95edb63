import { FormatError } from './bytes.ts'

/** A parsed JSON object whose members are still unknown. */
export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * JSON in which two readers cannot see two things: a member that comes twice, of which one reader takes the first and
 * another the last, is refused, and so is a number in another form than the one that JSON.stringify writes.
 */
export function parseJson(text: string, what: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new FormatError(`${what} is not JSON`)
  }
  refuseTwoMeanings(text, what)
  return value
}

const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}]|-?\d[\d.eE+-]*/g

/** The text is JSON, so its tokens follow one another as they must. */
function refuseTwoMeanings(text: string, what: string): void {
  const open: Set<unknown>[] = []
  for (const [token, colon] of text.matchAll(tokens)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (colon !== undefined) {
      const name: unknown = JSON.parse(token.slice(0, -colon.length))
      if (open.at(-1)?.has(name)) throw new FormatError(`${what} has the member "${name}" twice`)
      open.at(-1)?.add(name)
    } else if (!token.startsWith('"') && String(Number(token)) !== token)
      throw new FormatError(`${what} has a number in another form than the usual one: ${token}`)
  }
}

/** Own members only, so that a document cannot borrow one from a prototype. */
export function fieldOf(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

export function objectField(fields: Fields, name: string): Fields {
  const value = fieldOf(fields, name)
  if (!isFields(value)) throw new FormatError(`"${name}" must be an object`)
  return value
}

export function textField(fields: Fields, name: string): string {
  const value = fieldOf(fields, name)
  if (typeof value !== 'string') throw new FormatError(`"${name}" must be a string`)
  return value
}

export function textOrNullField(fields: Fields, name: string): string | null {
  return fieldOf(fields, name) === null ? null : textField(fields, name)
}

/** A whole number from 0 to 2^53 - 1. */
export function countField(fields: Fields, name: string): number {
  const value = fieldOf(fields, name)
  if (!isCount(value)) throw new FormatError(`"${name}" must be a whole number, 0 or more`)
  return value
}

export function textsField(fields: Fields, name: string): readonly string[] {
  const value = fieldOf(fields, name)
  if (!isTexts(value)) throw new FormatError(`"${name}" must be a list of strings`)
  return value
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Decimal digits without sign and leading zeros, at most 2^53 - 1. */
export function parseCount(text: string, what: string): number {
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (!isCount(value)) throw new FormatError(`the ${what} must be a whole number, 0 or more`)
  return value
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}
