/** Throws where the condition is false, which is a bug of ours; assertions stay on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** Returns the value, which the surrounding code guarantees to be there. */
export function requirePresent<T>(value: T | undefined | null, what: string): T {
  assert(value !== undefined && value !== null, `${what} is missing`)
  return value
}
