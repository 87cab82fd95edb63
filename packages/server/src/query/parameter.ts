import { Fault, makeInvalidFault } from '../base/fault.ts'
import type { ParameterRef, Scalar } from './condition.ts'
import { extendPointer } from './field-path.ts'
import { findSuccessor, keyCharsMax, toKey } from './index-key.ts'

/** The argument for a parameter: values of its type, with texts no longer than it allows. */
export type ParameterValue = Scalar | readonly Scalar[]

/** The values of one run, by name. */
export type Arguments = ReadonlyMap<string, ParameterValue>

/** The arguments that the service itself gives to every run, under names that no declared parameter can have. */
export const ownParameters = { limit: ' limit', offset: ' offset', bytes: ' bytes', now: ' now' }

const late = Symbol('late')

/**
 * A placeholder among the values of a compiled statement for the `form` of an argument; a list's items are
 * converted one by one.
 */
export type LateValue = {
  readonly [late]: true
  readonly parameter: string
  readonly form: string
  readonly make: (value: Scalar) => unknown
}

export function makePlainValue(parameter: string): LateValue {
  return lateValue(parameter, 'plain', (value) => value)
}

/** Makes the late value of the argument's JSON text. */
export function makeJsonValue({ name }: ParameterRef): LateValue {
  return lateValue(name, 'json', (value) => JSON.stringify(value))
}

/** Makes the late value of the JSON text of the key that an index has for the argument (index-key.ts). */
export function makeKeyValue({ name }: ParameterRef): LateValue {
  return lateValue(name, 'key', (value) => JSON.stringify(toKey(value)))
}

/**
 * Makes the late value of the JSON text of the least string above all that start with the argument; null if there
 * is none.
 */
export function makePrefixEnd({ name }: ParameterRef): LateValue {
  return lateValue(name, 'after', (value) => {
    const next = findSuccessor(String(value))
    return next === undefined ? null : JSON.stringify(next)
  })
}

/**
 * Makes a late value of what `read` returns for a text; throws a 400 that names the parameter if `read` returns
 * undefined.
 */
export function makeReadValue(
  { name }: ParameterRef,
  type: string,
  read: (text: string) => unknown,
): LateValue {
  return lateValue(name, type, (value) => {
    const made = read(String(value))
    if (made === undefined) throw makeInvalidFault(extendPointer('/query', name), `is no ${type}`)
    return made
  })
}

/** Makes the late value of a whole number; throws a 400 that names the parameter unless it is from 0 to `most`. */
export function makeWholeNumber(parameter: ParameterRef, most: number): LateValue {
  return makeReadValue(parameter, `whole number from 0 to ${most}`, (text) => {
    const number = Number(text)
    return Number.isInteger(number) && number >= 0 && number <= most ? number : undefined
  })
}

/** Returns true if a longer value could have the same key, so that the key alone does not decide. */
export function canBeCut({ type, charsMax }: ParameterRef): boolean {
  return type === 'text' && charsMax >= keyCharsMax
}

/** Returns the statement's values for one run. */
export function bindValues(values: readonly unknown[], given: Arguments): unknown[] {
  return values.map((value) => (isLate(value) ? made(value, given) : value))
}

/** Returns the values for planning a statement with samples: a sample that a late value cannot convert is NULL. */
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

/** Returns true if one of the values is the time of each run. */
export function needsClock(values: readonly unknown[]): boolean {
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
