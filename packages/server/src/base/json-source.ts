/**
 * A JSON text to be scanned. In `scanned` each byte of a long text beyond ASCII is a character of its own: as UTF-16 it
 * would need up to twice its bytes, in one piece. JSON's own marks are ASCII, so `cut` gives what stands between two
 * offsets that a scanner stopped at.
 */
export type JsonSource = {
  readonly scanned: string
  readonly cut: (from: number, to: number) => string
}

/** A text that is scanned as it is. */
export function toJsonSource(text: string): JsonSource {
  return { scanned: text, cut: (from, to) => text.slice(from, to) }
}
