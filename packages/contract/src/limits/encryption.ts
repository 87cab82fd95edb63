/** Bounds on encrypted collections. */
export const encryptionLimits = {
  /** Records of an encrypted collection that one list opens, and bytes of their envelopes. */
  openedRecordsMax: 50_000,
  openedBytesMax: 32 * 1024 * 1024,
  /** Tokens by which one list looks for records; where a list of values has more, all records are opened. */
  fieldTokensMax: 20_000,
  /** Time that a call for a change of encryption waits for the records, before it answers with a task. */
  resealingWaitMs: 5_000,
} as const
