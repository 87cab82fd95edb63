import type { ChannelConfig } from '../../packages/server/src/x402/channels/channel.ts'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import type { Order } from './order.ts'

/** A payment channel, as the buyer knows it who opened it. */
export type Channel = {
  readonly name: string
  readonly network: PaymentNetwork
  readonly config: ChannelConfig
  readonly id: string
  /** Signs deposits, and vouchers. */
  readonly payerKey: Buffer
  readonly voucherKey: Buffer
  /** The client's books: what it believes to have been charged, and to lie in the channel. */
  charged: bigint
  balance: bigint
  readonly orders: ChannelOrder[]
  /** The totals that corrections have told. */
  readonly told: bigint[]
  /** It has asked for money back, or takes it back by itself. */
  isDrawn: boolean
  isWithdrawing: boolean
}

/** A request that a voucher pays for, as its buyer knows it. */
export type ChannelOrder = Omit<
  Order,
  | 'settling'
  | 'isUpto'
  | 'isUsedBefore'
  | 'isBalanceOff'
  | 'isSpent'
  | 'validBefore'
  | 'isDirect'
  | 'isNews'
> & {
  readonly isNews: false
  readonly isDirect: false
  readonly channel: Channel
  /** The total that its buyer believed to be charged before it, and the most that its voucher allows. */
  readonly base: bigint
  readonly maxClaimable: bigint
  /** Atomic units; 0n where nothing is deposited with it. */
  readonly deposit: bigint
  /** The nonce of the authorization that a deposit has. */
  readonly depositNonce: string
  /** From when on it may be too late for the deposit, in milliseconds since 1970. */
  readonly depositEndsMs: number
  /** The charge that was told with the answer. */
  charge: bigint | undefined
  /** A try had no answer that says what became of it. */
  isOpen: boolean
  isDepositTold: boolean
}
