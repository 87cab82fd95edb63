import { Fault } from '../../../base/fault.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type ChannelMethod, getUsable } from './channel-register.ts'
import { formatChannelRefusal } from './check-channel-payment.ts'
import { computeBase } from './voucher-payment.ts'

/** The deposit that a request brought in; empty where it brought none. */
export type Moved = { readonly transaction?: string; readonly amount?: bigint }

/** The channel as it was known, and the way to read it anew from its chain. */
type Known = {
  readonly channel: ChannelRow | undefined
  readonly refresh: (movedBy?: string) => Promise<ChannelRow | undefined>
}

type Filled =
  | { readonly channel: ChannelRow; readonly moved: Moved }
  | { readonly correction: ChannelRow | undefined }
  | { readonly refusal: string }

/**
 * Brings the deposit in that a payment carries, for a voucher of more than the channel has; without one, the chain may
 * know of one that we do not.
 */
export async function fillChannel(
  { refuseFullDisk, world }: Pick<PaymentPorts, 'refuseFullDisk' | 'world'>,
  { payment, method }: { readonly payment: ChannelPayment; readonly method: ChannelMethod },
  { channel, refresh }: Known,
): Promise<Filled> {
  const { deposit, voucher, config } = payment
  const { escrow } = method
  const seen = channel && (await refresh())
  const usable = seen === undefined ? 0n : getUsable(seen)
  if (seen !== undefined && voucher.maxClaimable <= usable) return { channel: seen, moved: {} }
  // Money that came must be worth the gas, and a total that nobody can prove is no base to build on.
  if (computeBase(payment) !== (seen?.charged ?? 0n)) return { correction: seen }
  const refuseWhileArriving = async (missing: bigint) => {
    const { arriving } = await escrow.readState(voucher.channelId)
    if (arriving >= missing) throw makeDepositFault('not_confirmed')
  }
  const missing = voucher.maxClaimable - usable - (deposit?.amount ?? 0n)
  if (deposit === undefined || missing > 0n) {
    await refuseWhileArriving(missing)
    // Its payer believes that there is more; who never had a channel has no books to mend.
    const isMendable = seen !== undefined || deposit === undefined
    return isMendable
      ? { correction: seen }
      : { refusal: formatChannelRefusal('cumulative_exceeds_balance') }
  }
  refuseFullDisk?.()
  const sent = await escrow.deposit({ id: voucher.channelId, config }, deposit)
  world.failpoint?.('channel.deposited')
  if (sent.state === 'pending') throw makeDepositFault(sent.reason)
  const filled = await refresh(sent.state === 'mined' ? sent.transaction : undefined)
  const usableNow = filled === undefined ? 0n : getUsable(filled)
  if (filled === undefined || voucher.maxClaimable > usableNow) {
    if (sent.state !== 'refused') return { correction: filled }
    // Somebody else may have handed it in just now.
    await refuseWhileArriving(voucher.maxClaimable - usableNow)
    return { refusal: formatChannelRefusal('deposit_simulation_failed') }
  }
  const { amount } = deposit
  return sent.state === 'refused'
    ? { channel: filled, moved: {} }
    : { channel: filled, moved: { transaction: sent.transaction, amount } }
}

function makeDepositFault(reason: string): Fault {
  return new Fault('PAYMENT_PENDING', {
    message: 'The deposit into the channel is not confirmed yet; send the same request again',
    retryAfterSeconds: 5,
    internal: reason,
    details: { status: 'pending' },
  })
}
