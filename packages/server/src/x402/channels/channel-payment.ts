import type { ChannelConfig, ChannelDeposit, Voucher } from './channel.ts'

/** The way to pay that a payment by a channel says it accepts. */
export type AcceptedChannel = {
  /** CAIP-2. */
  readonly network: string
  /** Atomic units: the most that the request may be charged. */
  readonly amount: bigint
  readonly asset: string
  readonly payTo: string
}

/**
 * A payment by a channel, read strictly; nothing in it has been checked against anything yet. `deposit` fills the
 * channel first; `refund` asks for money back and buys nothing.
 */
export type ChannelPayment = {
  readonly scheme: 'batch-settlement'
  /** CAIP-2. */
  readonly network: string
  /** The quote that it echoes, which only its buyer was told. */
  readonly quoteId: string
  readonly accepted: AcceptedChannel
  readonly config: ChannelConfig
  readonly voucher: Voucher
  readonly deposit?: ChannelDeposit
  readonly refund?: {
    /** Atomic units; all that is left where it is not given. */
    readonly amount?: bigint
  }
}

export function isChannelPayment<T extends object>(
  payment: T | ChannelPayment,
): payment is ChannelPayment {
  return 'voucher' in payment
}
