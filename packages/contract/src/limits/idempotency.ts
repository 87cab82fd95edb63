/** Bounds on requests with an Idempotency-Key. */
export const idempotencyLimits = {
  /** Time for which a request is known by its Idempotency-Key, and the longest wait for one that is under way. */
  namedRequestSeconds: 24 * 3600,
  namedRequestWaitMs: 10_000,
  /** Such requests of one application (or wallet), and bytes of their answers; beyond them the oldest go first. */
  namedRequestsMax: 100_000,
  namedAnswersBytesMax: 64 * 1024 * 1024,
} as const
