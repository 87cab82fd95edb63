import { makeInvalidFault } from '../base/fault.ts'
import type { Scalar } from './condition.ts'

/**
 * Returns the text, or throws a 400 if no stored string could equal it: PostgreSQL's JSON has neither U+0000 nor
 * lone surrogates.
 */
export function checkText(text: string, pointer: string): string {
  if (text.includes('\0')) throw makeInvalidFault(pointer, 'must not contain the character U+0000')
  if (!text.isWellFormed())
    throw makeInvalidFault(pointer, 'must not contain half of a surrogate pair')
  return text
}

export function parseText(operand: unknown, pointer: string): string {
  if (typeof operand !== 'string') throw makeInvalidFault(pointer, 'must be a string')
  return checkText(operand, pointer)
}

export function parseBoolean(operand: unknown, pointer: string): boolean {
  if (typeof operand !== 'boolean') throw makeInvalidFault(pointer, 'must be true or false')
  return operand
}

export function parseScalar(operand: unknown, pointer: string): Scalar {
  if (!isScalar(operand))
    throw makeInvalidFault(pointer, 'must be a string, a number, true or false')
  if (typeof operand === 'string') return checkText(operand, pointer)
  if (typeof operand === 'number' && !Number.isFinite(operand)) {
    throw makeInvalidFault(pointer, 'must be a number of double precision')
  }
  return operand
}

export function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
