import { expect } from 'vitest'

/**
 * Lets `toEqual` compare bytes as bytes. Member by member, as it compares arrays, half a megabyte takes seconds of a
 * processor.
 */
expect.addEqualityTesters([
  (one: unknown, other: unknown) =>
    one instanceof Uint8Array && other instanceof Uint8Array && isOfOneKind(one, other)
      ? Buffer.compare(one, other) === 0
      : undefined,
])

function isOfOneKind(one: Uint8Array, other: Uint8Array): boolean {
  return Object.getPrototypeOf(one) === Object.getPrototypeOf(other)
}
