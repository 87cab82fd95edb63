import { limits } from '@tollbase/contract/limits'
import type { PaymentNetwork } from '../networks.ts'

/** The name of the x402 scheme. */
export const channelScheme = 'batch-settlement'

/** An offer to be paid by a channel. */
export type ChannelOffer = {
  readonly network: PaymentNetwork
  /** Atomic units: the most that the request can cost. */
  readonly amount: bigint
  readonly quoteId: string
  /** The life of the authorization of a deposit. */
  readonly maxTimeoutSeconds: number
  /** The address of our key, which claims. */
  readonly authorizer: string
  /** The state of the payer's channel, where its books are wrong; see stock clients. */
  readonly correction?: Readonly<Record<string, unknown>>
}

/** Builds the option as version 2 writes it in `accepts`. */
export function buildChannelEntry(offer: ChannelOffer): Readonly<Record<string, unknown>> {
  const { network, amount, quoteId, maxTimeoutSeconds, authorizer, correction = {} } = offer
  const { name, version } = network.asset
  return {
    scheme: channelScheme,
    network: network.id,
    amount: String(amount),
    asset: network.asset.address,
    payTo: network.payTo,
    maxTimeoutSeconds,
    extra: {
      name,
      version,
      receiverAuthorizer: authorizer,
      withdrawDelay: limits.channelWithdrawSeconds,
      minDeposit: String(limits.channelDepositAtomicMin),
      quoteId,
      ...correction,
    },
  }
}
