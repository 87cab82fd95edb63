/** A fault that a history found. A simpler history fails in the same way where its fault has the same kind. */
export class Mismatch extends Error {
  readonly kind: string

  constructor(kind: string, message: string, cause?: unknown) {
    super(`${kind}: ${message}`, { cause })
    this.kind = kind
  }
}

/** Returns the kind of an error, without the names and numbers in its text, which belong to one history alone. */
export function getErrorKind(error: unknown): string {
  if (error instanceof Mismatch) return error.kind
  const text = error instanceof Error ? error.message : String(error)
  return text.replaceAll(/"[^"]*"|'[^']*'|\S*\d\S*/g, '…').slice(0, 200)
}
