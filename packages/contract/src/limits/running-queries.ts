/** Bounds on queries while they run: their time, how many at once, how many wait. */
export const runningQueryLimits = {
  /** Longest time of a caller's query, without its wait; then 503 QUERY_TIMEOUT. */
  queryTimeoutMs: 15_000,
  /**
   * A list of records that takes longer than `quickReadMs` is cancelled and repeated as a heavy query. For
   * `slowReaderMs` after that, lists of the same caller that are not known to be short start as heavy queries.
   * `quickReadsOfCallerMax` bounds the short lists that one caller runs at once.
   */
  quickReadMs: 100,
  slowReaderMs: 10_000,
  quickReadsOfCallerMax: 16,
  /**
   * Heavy queries (SQL, groups, slow lists) that run at once, so that they never take all connections. The waiting
   * limits apply to each rank (payers, keys, neither): in all, for one application, and for one caller. The last is
   * the longest wait.
   */
  queriesAtOnceMax: 4,
  queriesWaitingMax: 256,
  queriesWaitingOfApplicationMax: 64,
  queriesWaitingOfCallerMax: 32,
  queryWaitMs: 10_000,
  /** Temporary space on disk that one heavy query may take for sorting and joining, in KB. */
  queryTemporaryKbMax: 512 * 1024,
} as const
