import { FormatError } from './bytes.ts'

/** A parsed JSON object whose members are still unknown. */
export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new FormatError(`${what} is not JSON`)
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
