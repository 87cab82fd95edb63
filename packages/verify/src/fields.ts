import { FormatError } from './bytes.ts'
import { JsonScanner } from './json-scanner.ts'

/** A parsed JSON object whose members are still unknown. */
export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Parses JSON that every reader understands alike. Refuses a repeated member, of which one reader takes the first
 * and another the last, and a number in another form than the one that JSON.stringify writes.
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

/** The text is valid JSON. */
function refuseTwoMeanings(text: string, what: string): void {
  const scanner = new JsonScanner(text)
  const open: Set<string>[] = []
  for (let token = scanner.next(); token !== 'end'; token = scanner.next()) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (token === 'key') {
      const name = scanner.parseString()
      if (open.at(-1)?.has(name)) throw new FormatError(`${what} has the member "${name}" twice`)
      open.at(-1)?.add(name)
    } else if (token === 'broken') throw new FormatError(`${what} is not JSON`)
    else if (token === 'scalar') refuseUnusualNumber(scanner.getTokenText(), what)
  }
}

function refuseUnusualNumber(token: string, what: string): void {
  if (/^[-\d]/.test(token) && String(Number(token)) !== token)
    throw new FormatError(`${what} has a number in another form than the usual one: ${token}`)
}

/** Finds an own member, so that a document cannot borrow one from a prototype. */
export function findField(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

export function requireObject(fields: Fields, name: string): Fields {
  const value = findField(fields, name)
  if (!isFields(value)) throw new FormatError(`"${name}" must be an object`)
  return value
}

export function requireText(fields: Fields, name: string): string {
  const value = findField(fields, name)
  if (typeof value !== 'string') throw new FormatError(`"${name}" must be a string`)
  return value
}

export function requireTextOrNull(fields: Fields, name: string): string | null {
  return findField(fields, name) === null ? null : requireText(fields, name)
}

/** Requires a whole number from 0 to 2^53 - 1. */
export function requireCount(fields: Fields, name: string): number {
  const value = findField(fields, name)
  if (!isCount(value)) throw new FormatError(`"${name}" must be a whole number, 0 or more`)
  return value
}

export function requireTexts(fields: Fields, name: string): readonly string[] {
  const value = findField(fields, name)
  if (!isTexts(value)) throw new FormatError(`"${name}" must be a list of strings`)
  return value
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Parses decimal digits without sign and leading zeros, at most 2^53 - 1. */
export function parseCount(text: string, what: string): number {
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (!isCount(value)) throw new FormatError(`the ${what} must be a whole number, 0 or more`)
  return value
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}
