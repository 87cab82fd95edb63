import { Fault } from '../base/fault.ts'
import { OtherNumber, type StrictJson } from './strict-json.ts'

/** Members of a payment as they were sent. */
export type Fields = { readonly [key: string]: StrictJson }

const uint256Max = 2n ** 256n - 1n
const decimal = /^(?:0|[1-9]\d{0,77})$/

export function parseObject(value: StrictJson | undefined, field: string): Fields {
  if (value === undefined) throw makeMalformedFault(field, 'is missing')
  if (!isObject(value)) throw makeMalformedFault(field, 'must be an object')
  return value
}

function isObject(value: StrictJson): value is Fields {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !(value instanceof OtherNumber)
}

export function refuseOtherKeys(fields: Fields, known: readonly string[], field: string): void {
  for (const key of Object.keys(fields)) {
    if (!known.includes(key))
      throw makeMalformedFault(`${field}.${key}`, 'is not a field of this scheme')
  }
}

export function parseText(value: StrictJson | undefined, field: string): string {
  if (value === undefined) throw makeMalformedFault(field, 'is missing')
  if (typeof value !== 'string') throw makeMalformedFault(field, 'must be a string')
  // No JSON of the database may have these, and a payment that is kept is read there as JSON.
  if (value.includes('\0') || !value.isWellFormed())
    throw makeMalformedFault(field, 'must have neither \\u0000 nor half of a surrogate pair')
  return value
}

/** Parses a decimal string, or a JSON integer, which the public SDK sends for times. */
export function parseUint(value: StrictJson | undefined, field: string): bigint {
  if (value === undefined) throw makeMalformedFault(field, 'is missing')
  const text =
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? String(value) : value
  if (typeof text !== 'string' || !decimal.test(text)) {
    throw makeMalformedFault(
      field,
      'must be a whole number from 0, as decimal digits without leading zeros',
    )
  }
  const number = BigInt(text)
  if (number > uint256Max) throw makeMalformedFault(field, 'must have 256 bits at most')
  return number
}

export function parseHex(value: StrictJson | undefined, bytes: number, field: string): string {
  const text = parseText(value, field)
  if (text.length !== 2 + 2 * bytes || !/^0x[0-9a-fA-F]+$/.test(text)) {
    throw makeMalformedFault(field, `must be 0x and ${2 * bytes} hexadecimal digits`)
  }
  return text.toLowerCase()
}

export function makeMalformedFault(field: string, problem: string): Fault {
  return new Fault('PAYMENT_MALFORMED', {
    message: `${field} ${problem}`,
    details: { field, problem },
  })
}
