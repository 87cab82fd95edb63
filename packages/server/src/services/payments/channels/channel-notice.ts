import type { ChannelRow } from '../../../projections/channel-tables.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { parseConfig } from './channel-register.ts'

/** The state of a channel as stock clients read it. */
export function describeChannel(channel: ChannelRow): Readonly<Record<string, unknown>> {
  return {
    channelId: channel.id,
    balance: String(channel.balance),
    totalClaimed: String(channel.claimed),
    withdrawRequestedAt: 0,
    refundNonce: '0',
    chargedCumulativeAmount: String(channel.charged),
  }
}

/** The last voucher, by which a client believes the state that it is told; undefined before the first. */
export function describeVoucher({
  max_claimable,
  signature,
}: ChannelRow): Readonly<Record<string, unknown>> | undefined {
  if (max_claimable === null || signature === null) return undefined
  return { signedMaxClaimable: String(max_claimable), signature }
}

/** Encodes PAYMENT-RESPONSE for a client that pays by a channel; it counts at any status. */
export function encodeChannelNotice(
  network: PaymentNetwork,
  channel: ChannelRow,
  moved: {
    /** Atomic units that were charged; left out of a refund. */
    readonly charge?: bigint
    /** The transaction of a deposit or a refund, and its amount. */
    readonly transaction?: string
    readonly amount?: bigint
  },
): string {
  const { charge, transaction = '', amount } = moved
  const notice = {
    success: true,
    payer: parseConfig(channel).payer,
    network: network.id,
    transaction,
    amount: amount === undefined ? '' : String(amount),
    extra: {
      ...(charge !== undefined && { chargedAmount: String(charge) }),
      channelState: describeChannel(channel),
    },
  }
  return Buffer.from(JSON.stringify(notice)).toString('base64')
}
