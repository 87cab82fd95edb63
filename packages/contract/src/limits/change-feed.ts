/** Bounds on the change feed. */
export const changeLimits = {
  /** Versions in one answer of a change feed, and bytes of their records; the first record may exceed the bytes. */
  changesMax: 1_000,
  changesBytesMax: 8 * 1024 * 1024,
  /** Longest wait of a change feed for a change, and waits at once, per application. */
  changesWaitSecondsMax: 25,
  changesWaitingMax: 100,
} as const
