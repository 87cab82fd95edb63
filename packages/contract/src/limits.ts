/** Every bound of the service, in one place; each is tested at the limit and one past it. */
export const limits = {
  /** Largest JSON request body in bytes (the public clients check the same 5 MiB). */
  bodyBytesMax: 5 * 1024 * 1024,
  /** Largest single record in bytes of UTF-8. */
  recordBytesMax: 1024 * 1024,
  recordsPerStoreMax: 10_000,
  jsonDepthMax: 64,
  /** Characters of a primary key. */
  recordKeyCharsMax: 512,
  collectionsPerApplicationMax: 2_000,
  indexesPerCollectionMax: 32,
  fieldPathCharsMax: 256,
  fieldPathDepthMax: 16,
  /** Conditions of one find, nested ones counted. */
  conditionsMax: 256,
  inListMax: 10_000,
  regexCharsMax: 512,
  offsetMax: 1_000_000,
  /** Rows and bytes of one answer; past them the caller is told to page. */
  rowsMax: 200_000,
  resultBytesMax: 64 * 1024 * 1024,
  /** Largest answer that can be sold in one call: it is spooled, hashed and kept for a retry. */
  paidResultBytesMax: 8 * 1024 * 1024,
  statementTimeoutMs: 15_000,
  /** Entries and bytes of one block. */
  blockEntriesMax: 10_000,
  blockBytesMax: 8 * 1024 * 1024,
  /** Entries appended but not yet projected, per application, before writes are asked to wait. */
  applierLagEntriesMax: 200_000,
  keysPerApplicationMax: 100,
  signedRequestWindowSeconds: 300,
  keyOverlapSecondsMax: 30 * 24 * 3600,
  quoteLifetimeSeconds: 300,
  paymentHeaderBytesMax: 16 * 1024,
  keptReplySeconds: 24 * 3600,
  /** Bytes of all kept replies together; the oldest go first. */
  keptRepliesBytesMax: 1024 * 1024 * 1024,
  previewRowsMax: 20,
  nameCharsMax: 200,
  descriptionCharsMax: 2_000,
  /** A price of more atomic units than this is a typing error (1 billion dollars at 6 decimals). */
  amountAtomicMax: 10n ** 15n,
} as const
