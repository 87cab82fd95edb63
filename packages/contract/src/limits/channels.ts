/** Bounds on payment channels. */
export const channelLimits = {
  /** Least deposit into a payment channel, in atomic units: each costs a transaction. */
  channelDepositAtomicMin: 1_000_000n,
  /** The time that a payer waits for what it takes out of a channel by itself; stock clients name it. */
  channelWithdrawSeconds: 24 * 3600,
  /**
   * A refund is due if the channel was charged at least this many of its network's smallest payments since its last
   * refund, which pays for the gas. Any other refund is limited: one for each payer in this many seconds, and this many
   * for all payers, of which channels that were never charged may have a part.
   */
  channelRefundPayments: 5n,
  channelRefundSeconds: 24 * 3600,
  channelRefundsMax: 100,
  channelUnusedRefundsMax: 50,
  /** Longest wait of a payment for another one of its channel. */
  channelWaitMs: 10_000,
} as const
