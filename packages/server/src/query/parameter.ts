import { Fault, invalid } from '../base/fault.ts'
import type { ParameterRef, Scalar } from './condition.ts'
import { member } from './field-path.ts'
import { keyCharsMax, keyOf, successor } from './index-key.ts'

/** What is given for a parameter: values of its type, texts no longer than it says. */
export type ParameterValue = Scalar | readonly Scalar[]

/** The values of one run, by name. */
export type Arguments = ReadonlyMap<string, ParameterValue>

/** Names that no declared parameter can have: what the service itself gives to every run. */
export const ownParameters = { limit: ' limit', offset: ' offset', bytes: ' bytes', now: ' now' }

const late = Symbol('late')

/** Stands among the values of a compiled statement for what `form` makes of an argument; of a list, item by item. */
export type LateValue = {
  readonly [late]: true
  readonly parameter: string
  readonly form: string
  readonly make: (value: Scalar) => unknown
}

export function plain(parameter: string): LateValue {
  return lateValue(parameter, 'plain', (value) => value)
}

/** JSON text of the value. */
export function json({ name }: ParameterRef): LateValue {
  return lateValue(name, 'json', (value) => JSON.stringify(value))
}

/** JSON text of the key that an index has of the value (index-key.ts). */
export function key({ name }: ParameterRef): LateValue {
  return lateValue(name, 'key', (value) => JSON.stringify(keyOf(value)))
}

/** JSON text of the least string above all that start with the value; null where there is none. */
export function afterPrefix({ name }: ParameterRef): LateValue {
  return lateValue(name, 'after', (value) => {
    const next = successor(String(value))
    return next === undefined ? null : JSON.stringify(next)
  })
}

/** What `read` makes of a text; 400 naming the parameter where it makes nothing of it. */
export function readAs(
  { name }: ParameterRef,
  type: string,
  read: (text: string) => unknown,
): LateValue {
  return lateValue(name, type, (value) => {
    const made = read(String(value))
    if (made === undefined) throw invalid(member('/query', name), `is no ${type}`)
    return made
  })
}

/** The value as a whole number; 400 naming the parameter where it is none up to `most`. */
export function wholeNumber(parameter: ParameterRef, most: number): LateValue {
  return readAs(parameter, `whole number from 0 to ${most}`, (text) => {
    const number = Number(text)
    return Number.isInteger(number) && number >= 0 && number <= most ? number : undefined
  })
}

/** Whether a longer value could have the same key, so that the key alone does not decide. */
export function mayBeCut({ type, charsMax }: ParameterRef): boolean {
  return type === 'text' && charsMax >= keyCharsMax
}

/** The statement's values for one run. */
export function bindValues(values: readonly unknown[], given: Arguments): unknown[] {
  return values.map((value) => (isLate(value) ? made(value, given) : value))
}

/** The same to plan a statement with samples: one that the text could make nothing of is NULL. */
export function bindSamples(values: readonly unknown[], given: Arguments): unknown[] {
  return values.map((value) => {
    try {
      return isLate(value) ? made(value, given) : value
    } catch (error) {
      if (error instanceof Fault) return null
      throw error
    }
  })
}

/** Whether one of the values is the time of each run. */
export function readsClock(values: readonly unknown[]): boolean {
  return values.some((value) => isLate(value) && value.parameter === ownParameters.now)
}

function lateValue(parameter: string, form: string, make: LateValue['make']): LateValue {
  return { [late]: true, parameter, form, make }
}

function isLate(value: unknown): value is LateValue {
  return typeof value === 'object' && value !== null && late in value
}

function made({ parameter, make }: LateValue, given: Arguments): unknown {
  const value = given.get(parameter)
  if (value === undefined) throw new Error(`the parameter ${parameter} was not given`)
  return typeof value === 'object' ? value.map(make) : make(value)
}
