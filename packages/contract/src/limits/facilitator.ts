/** Bounds on settling for other x402 servers. */
export const facilitatorLimits = {
  /** Settlements by the day: of one caller, and of all. */
  facilitatedPerCallerMax: 1_000,
  facilitatedPerDayMax: 10_000,
  /** Payers of one caller whose payments are under way, or failed that day, before each has one at a time. */
  facilitatedFailedPayersMax: 20,
} as const
