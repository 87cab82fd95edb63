import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import type { FieldPath } from './condition.ts'
import { checkText } from './operand.ts'

/** The latest paths: a field that is named once is named again. */
const read = new Map<string, FieldPath>()
const readMax = 1_000

/** Parses a dotted name. A dot goes one object down, so `a.b` and `{a: {b: …}}` name the same field. */
export function parseFieldPath(name: string, pointer: string): FieldPath {
  const known = read.get(name)
  if (known !== undefined) return known
  const path = extended([], name, pointer)
  if (read.size === readMax) read.clear()
  read.set(name, path)
  return path
}

/** Returns the path of the field `name` (dots as above) inside the field `path`. */
export function extendPath(path: readonly string[], name: string, pointer: string): FieldPath {
  return path.length === 0 ? parseFieldPath(name, pointer) : extended(path, name, pointer)
}

function extended(path: readonly string[], name: string, pointer: string): FieldPath {
  checkText(name, pointer)
  const [first, ...rest] = [...path, ...name.split('.')]
  if (first === undefined || [first, ...rest].includes(''))
    throw makeInvalidFault(pointer, 'names an empty field')
  const whole: FieldPath = [first, ...rest]
  if (whole.length > limits.fieldPathDepthMax) {
    throw makeInvalidFault(pointer, `is nested deeper than ${limits.fieldPathDepthMax} fields`)
  }
  if (whole.join('.').length > limits.fieldPathCharsMax) {
    throw makeInvalidFault(
      pointer,
      `is a field name of more than ${limits.fieldPathCharsMax} characters`,
    )
  }
  return Object.freeze(whole)
}

/** Returns the JSON pointer (RFC 6901) of a member of the value at `pointer`. */
export function extendPointer(pointer: string, key: string | number): string {
  const name = String(key)
  if (!name.includes('~') && !name.includes('/')) return `${pointer}/${name}`
  return `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}
