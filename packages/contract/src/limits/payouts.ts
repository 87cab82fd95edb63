/** Bounds on payouts and withdrawals. */
export const payoutLimits = {
  /** Time until a destination of payouts counts that its owner has not signed. */
  payoutDestinationSeconds: 24 * 3600,
  /** Time in which a withdrawal or payout must have been made; its money is given back after it. */
  transferSeconds: 24 * 3600,
} as const
