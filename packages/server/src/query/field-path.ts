import { limits } from '@tollbase/contract/limits'
import { invalid } from '../base/fault.ts'
import type { FieldPath } from './condition.ts'
import { checkText } from './operand.ts'

/** A dot goes one object down, so `a.b` and `{a: {b: …}}` name the same field. */
export function parseFieldPath(name: string, pointer: string): FieldPath {
  return extendPath([], name, pointer)
}

/** The path of the field `name` (dots as above) inside the field `path`. */
export function extendPath(path: readonly string[], name: string, pointer: string): FieldPath {
  checkText(name, pointer)
  const [first, ...rest] = [...path, ...name.split('.')]
  if (first === undefined || [first, ...rest].includes(''))
    throw invalid(pointer, 'names an empty field')
  const extended: FieldPath = [first, ...rest]
  if (extended.length > limits.fieldPathDepthMax) {
    throw invalid(pointer, `is nested deeper than ${limits.fieldPathDepthMax} fields`)
  }
  if (extended.join('.').length > limits.fieldPathCharsMax) {
    throw invalid(pointer, `is a field name of more than ${limits.fieldPathCharsMax} characters`)
  }
  return Object.freeze(extended)
}

/** The JSON pointer (RFC 6901) of a member of what `pointer` points at. */
export function member(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
}
