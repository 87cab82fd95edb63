/** Bounds on payouts and withdrawals. */
export const payoutLimits = {
  /** Time until a destination of payouts counts that its owner has not signed. */
  payoutDestinationSeconds: 24 * 3600,
  /** Withdrawals from one balance, and payouts of one application, in this time: each costs gas. */
  withdrawalsMax: 10,
  payoutsMax: 24,
  withdrawalSeconds: 24 * 3600,
  /**
   * The same of all balances together that trade nothing, where there is no fee: their sales or purchases are below the
   * network's smallest payment for each withdrawal. The first one of a balance is not held up by others for longer than
   * this after the balance began.
   */
  unspentWithdrawalsMax: 100,
  firstWithdrawalSeconds: 7 * 24 * 3600,
  /** Time in which a withdrawal or payout must have been made; its money is given back after it. */
  transferSeconds: 24 * 3600,
} as const
