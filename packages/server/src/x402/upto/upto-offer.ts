import type { PaymentNetwork } from '../networks.ts'
import { uptoScheme } from './upto-terms.ts'

/** An offer to be paid by the scheme `upto`. */
export type UptoOffer = {
  readonly network: PaymentNetwork
  /** Atomic units: the most that is taken. */
  readonly amount: bigint
  readonly quoteId: string
  readonly maxTimeoutSeconds: number
  /** The address of our key, which takes the payment. */
  readonly facilitator: string
}

/** Builds the option as version 2 writes it in `accepts`. */
export function buildUptoEntry(offer: UptoOffer): Readonly<Record<string, unknown>> {
  const { network, amount, quoteId, maxTimeoutSeconds, facilitator } = offer
  const { name, version, address } = network.asset
  return {
    scheme: uptoScheme,
    network: network.id,
    amount: String(amount),
    asset: address,
    payTo: network.payTo,
    maxTimeoutSeconds,
    extra: {
      ...{ name, version, assetTransferMethod: 'permit2' },
      facilitatorAddress: facilitator,
      quoteId,
    },
  }
}
