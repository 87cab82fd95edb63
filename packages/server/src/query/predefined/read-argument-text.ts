import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { Scalar } from '../condition.ts'
import { checkText } from '../operand.ts'
import type { MatchBudget } from '../pattern-matcher.ts'
import type { DeclaredParameter } from './declared-parameter.ts'

type Bounds = Omit<
  DeclaredParameter,
  'default' | 'use' | 'required' | 'isList' | 'name' | 'maxItems'
>

const numberForm = /^[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?$/
const integerForm = /^[+-]?\d{1,16}$/
const dateForm = /^(\d{4})-(\d\d)-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/

/** The place of a value in the request, and the work that may still be spent on the patterns of all its values. */
export type TextPlace = { readonly pointer: string; readonly work: MatchBudget }

/** The most steps of matching all values of a request: about ten milliseconds, whatever they are. */
const stepsMax = 400_000

export function makeMatchBudget(): MatchBudget {
  return { steps: stepsMax }
}

/** Reads one value of a query string, or throws a 400 that names the place and never the value. */
export function readText(text: string, declared: Bounds, place: TextPlace): Scalar {
  const { pointer } = place
  checkText(text, pointer)
  switch (declared.type) {
    case 'boolean':
      if (text !== 'true' && text !== 'false')
        throw makeInvalidFault(pointer, 'must be true or false')
      return text === 'true'
    case 'number':
      return inBounds(parseNumber(text, numberForm, pointer), declared, pointer)
    case 'integer': {
      const number = parseNumber(text, integerForm, pointer)
      if (!Number.isSafeInteger(number)) throw makeInvalidFault(pointer, 'must be a whole number')
      return inBounds(number, declared, pointer)
    }
    case 'date':
      inBounds(parseTime(text, pointer), declared, pointer)
      return text
    case 'enum': {
      const found = declared.values.find((value) => String(value) === text)
      if (found === undefined)
        throw makeInvalidFault(pointer, `must be one of ${declared.values.slice(0, 20).join(', ')}`)
      return found
    }
    default:
      return parseString(text, declared, place)
  }
}

function parseNumber(text: string, form: RegExp, pointer: string): number {
  const number = form.test(text) ? Number(text) : Number.NaN
  if (!Number.isFinite(number))
    throw makeInvalidFault(pointer, `must be a ${form === integerForm ? 'whole ' : ''}number`)
  // Minus zero would be another value in JSON than in SQL.
  return number === 0 ? 0 : number
}

function parseTime(text: string, pointer: string): number {
  const [found, year, month, day] = dateForm.exec(text) ?? []
  const time = found === undefined ? Number.NaN : Date.parse(text)
  const last = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number.isNaN(time) || Number(day) > last)
    throw makeInvalidFault(
      pointer,
      'must be a date (2026-01-31) or a time with its zone (RFC 3339)',
    )
  return time
}

function inBounds(value: number, { min, max, type }: Bounds, pointer: string): number {
  const words = (bound: number) => (type === 'date' ? new Date(bound).toISOString() : String(bound))
  if (min !== undefined && value < min)
    throw makeInvalidFault(pointer, `must be at least ${words(min)}`)
  if (max !== undefined && value > max)
    throw makeInvalidFault(pointer, `must be at most ${words(max)}`)
  return value
}

function parseString(
  text: string,
  { minLength, maxLength, matches }: Bounds,
  { pointer, work }: TextPlace,
): string {
  if (text.length < minLength)
    throw makeInvalidFault(
      pointer,
      `must have at least ${minLength} character${minLength === 1 ? '' : 's'}`,
    )
  if (text.length > maxLength)
    throw makeInvalidFault(pointer, `must have at most ${maxLength} characters`)
  if (matches !== undefined && !isMatch(() => matches(text, work)))
    throw makeInvalidFault(pointer, 'is not of the form that its owner asks for')
  return text
}

/** A text that takes too long to judge does not match. */
function isMatch(match: () => boolean): boolean {
  try {
    return match()
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}
