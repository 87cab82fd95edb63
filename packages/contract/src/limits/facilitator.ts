/** Bounds on settling for other x402 servers. */
export const facilitatorLimits = {
  /** Settlements by the day: of one caller, of all, and those of one caller that may fail. */
  facilitatedPerCallerMax: 1_000,
  facilitatedPerDayMax: 10_000,
  facilitatedFailuresMax: 20,
} as const
