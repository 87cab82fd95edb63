/** Bounds on encrypted collections. */
export const encryptionLimits = {
  /** Records of an encrypted collection that one list opens, and bytes of their envelopes. */
  openedRecordsMax: 50_000,
  openedBytesMax: 32 * 1024 * 1024,
  /** Tokens by which one list looks for records; where a list of values has more, all records are opened. */
  fieldTokensMax: 20_000,
  /** Time that a call for a change of encryption waits for the records, before it answers with a task. */
  resealingWaitMs: 5_000,
  /** Time that a query waits for a plaintext table that is being filled, before it answers 503. */
  plaintextReadWaitMs: 1_000,
  /** Time that a store with `?wait=true` waits for the plaintext table to have its records. */
  plaintextWriteWaitMs: 5_000,
} as const
