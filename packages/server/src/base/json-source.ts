import type { JsonText } from '@tollbase/verify/json-scanner'

/**
 * A JSON text to be scanned. A long one is scanned as its bytes, each as a character of its own, a part at a time: in
 * one string of megabytes it would hold up all other requests while that is made. JSON's own marks are ASCII, so `cut`
 * gives what stands between two offsets that a scanner stopped at.
 */
export type JsonSource = JsonText & {
  readonly cut: (from: number, to: number) => string
  /** True if what is scanned is the text itself: its bytes are ASCII, or it is scanned as it is. */
  readonly isScannedAsIs: boolean
}

/** A text that is scanned as it is. */
export function toJsonSource(text: string): JsonSource {
  const { length } = text
  // Written out, as this is a part of each request.
  return {
    length,
    partMax: length,
    tokenMax: length,
    spaceMax: length,
    read: () => text,
    cut: (from, to) => text.slice(from, to),
    isScannedAsIs: true,
  }
}

/**
 * The list of items whose texts are joined by commas. They are not copied for it, as `[${items}]` copies them when it is
 * read; the list does not end, but breaks off behind its last item.
 */
export function toListSource(items: string): JsonSource {
  const length = items.length + 1
  return {
    length,
    partMax: length,
    tokenMax: length,
    spaceMax: length,
    read: (from) => (from === 0 ? '[' : items.slice(from - 1)),
    cut: (from, to) => items.slice(from - 1, to - 1),
    isScannedAsIs: true,
  }
}
