/** Bounds on records, and on the stores and batches that bring them. */
export const recordLimits = {
  /** Largest single record in bytes of UTF-8. */
  recordBytesMax: 1024 * 1024,
  recordsPerStoreMax: 10_000,
  /** Characters of a primary key. */
  recordKeyCharsMax: 512,
  batchOperationsMax: 1_000,
  /** Records that the conditions of one operation of a batch may match. */
  batchMatchesMax: 1_000,
  /** Bytes of the records that the operations of a batch name by their keys. */
  batchReadBytesMax: 32 * 1024 * 1024,
  /** Time of all conditions of a batch together, with their waits: less than others wait who write to its collections. */
  batchConditionsMs: 15_000,
} as const
