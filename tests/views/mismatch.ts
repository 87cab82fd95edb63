/** What a history came upon. A simpler history fails in the same way where what it comes upon is of the same kind. */
export class Wrong extends Error {
  readonly kind: string

  constructor(kind: string, message: string, cause?: unknown) {
    super(`${kind}: ${message}`, { cause })
    this.kind = kind
  }
}

/** The kind of an error; names and numbers in its text are of one history alone. */
export function kindOf(error: unknown): string {
  if (error instanceof Wrong) return error.kind
  const text = error instanceof Error ? error.message : String(error)
  return text.replaceAll(/"[^"]*"|'[^']*'|\S*\d\S*/g, '…').slice(0, 200)
}
