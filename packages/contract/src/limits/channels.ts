/** Bounds on payment channels. */
export const channelLimits = {
  /** Least deposit into a payment channel, in atomic units: each costs a transaction. */
  channelDepositAtomicMin: 1_000_000n,
  /** The time that a payer waits for what it takes out of a channel by itself; stock clients name it. */
  channelWithdrawSeconds: 24 * 3600,
  /**
   * Smallest payments of its network that a channel must have been charged since its last refund, for the gas of the
   * next one; where it was not, one refund in so many seconds for each payer, and so many in that time for all. Those of
   * channels that were never charged have a part of them.
   */
  channelRefundPayments: 5n,
  channelRefundSeconds: 24 * 3600,
  channelRefundsMax: 100,
  channelUnusedRefundsMax: 50,
  /** Longest wait of a payment for another one of its channel. */
  channelWaitMs: 10_000,
} as const
