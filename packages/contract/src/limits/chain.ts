/** Bounds on blocks, on the lag of tables behind them, and on the disk that they need. */
export const chainLimits = {
  /** Entries and bytes of one block. */
  blockEntriesMax: 10_000,
  blockBytesMax: 8 * 1024 * 1024,
  /** Entries appended but not yet projected, per application, before writes are asked to wait. */
  applierLagEntriesMax: 200_000,
  /** Lag of a chain's tables behind its log above which GET /ready says no. */
  readyLagEntriesMax: 100_000,
  readyLagMsMax: 30_000,
  /** Free bytes on the disk of our own database below which nothing new is taken in; work under way has this room. */
  storageFreeBytesMin: 64 * 1024 * 1024,
} as const
