/** Bounds on payouts and withdrawals. */
export const payoutLimits = {
  /** Time until a destination of payouts counts that its owner has not signed. */
  payoutDestinationSeconds: 24 * 3600,
  /** Withdrawals from one balance, and payouts of one application, in this time: each costs gas. */
  withdrawalsMax: 10,
  payoutsMax: 24,
  withdrawalSeconds: 24 * 3600,
  /** The same of all wallets together that never bought anything, on a network where a withdrawal has no fee. */
  unspentWithdrawalsMax: 100,
  /** Time in which a withdrawal or payout must have been made; its money is given back after it. */
  transferSeconds: 24 * 3600,
} as const
