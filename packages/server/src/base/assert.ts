/** States what must be true; a failure is a bug of ours, and it stays on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** The value, which the code around it guarantees to be there. */
export function present<T>(value: T | undefined | null, what: string): T {
  assert(value !== undefined && value !== null, `${what} is missing`)
  return value
}
