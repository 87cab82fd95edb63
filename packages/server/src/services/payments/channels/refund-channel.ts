import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../../base/fault.ts'
import { sql } from '../../../database/sql.ts'
import type { ChannelRow } from '../../../projections/channel-books.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import { takeFromAccount } from '../accounts/account-lock.ts'
import { deleteHold, listChannelHolds, printHoldInsertion } from '../accounts/holds.ts'
import type { PaymentPorts } from '../purchase.ts'
import { toChannelAccount } from './channel-entries.ts'
import { encodeChannelNotice } from './channel-notice.ts'
import {
  type ChannelMethod,
  isChannelHeld,
  loadChannel,
  parseConfig,
  syncChannel,
} from './channel-register.ts'
import { channelRefusal } from './check-channel-payment.ts'

type Ports = Pick<PaymentPorts, 'database' | 'tenants' | 'world' | 'admit'>

type RefundOutcome =
  | { readonly refunded: bigint; readonly notice: string }
  | { readonly refusal: string }
  | { readonly correction: ChannelRow | undefined }

/**
 * Gives the payer back what is not charged, together with a claim of what is. While the transaction is under way
 * the amount is held, so no voucher is served from it.
 */
export async function sendRefund(
  ports: Ports,
  { method, payment }: { readonly method: ChannelMethod; readonly payment: ChannelPayment },
): Promise<RefundOutcome> {
  const { database, world } = ports
  const { voucher, config, refund } = payment
  const id = voucher.channelId
  const channel = await syncChannel(ports, method, { id, config })
  if (channel === undefined) return { refusal: channelRefusal('refund_no_balance') }
  if (voucher.maxClaimable !== channel.charged) return { correction: channel }
  const left = channel.balance - channel.charged
  if (left <= 0n) return { refusal: channelRefusal('refund_no_balance') }
  const asked = refund?.amount ?? left
  if (asked === 0n) return { refusal: channelRefusal('refund_amount_invalid') }
  const amount = limitTo(asked, left)
  const last = channel.refunded_at_ms
  if (last !== null && world.now() < Number(last) + limits.channelRefundSeconds * 1000)
    return { refusal: channelRefusal('refund_too_soon') }
  ports.admit?.()
  const name = `${world.now().toString(36)}_${world.randomBytes(16).toString('hex')}`
  const holdId = `channel_${name}`
  const account = toChannelAccount(id)
  // The part that the payer takes back by itself goes down with the refund: it cannot have both.
  const free = left - channel.withdrawing
  if (free < 0n) return { refusal: channelRefusal('refund_no_balance') }
  const held = limitTo(amount, free)
  const isOurs = await takeFromAccount(database, account, async (tx, available) => {
    if (available < held || (await isChannelHeld(tx, id))) return false
    const one = sql`(SELECT ${holdId}::text AS id, ${account}::text AS account, ${String(held)}::numeric AS amount) AS one`
    return (await tx.execute(printHoldInsertion(one))) === 1
  })
  if (!isOurs)
    throw new Fault('PAYMENT_PENDING', { retryAfterSeconds: 2, details: { status: 'pending' } })
  const { charged: total } = channel
  const row = { config, maxClaimable: total, signature: voucher.signature, total }
  const isClaimed = channel.charged === channel.claimed
  const sent = await method.escrow.refund(name, { config, amount, ...(!isClaimed && { row }) })
  world.failpoint?.('channel.refunded')
  // Its end is found by the upkeep.
  if (sent.state === 'pending')
    throw new Fault('PAYMENT_PENDING', { retryAfterSeconds: 5, details: { status: 'pending' } })
  const after = await syncChannel(ports, method, { id, config, isRefund: true })
  await deleteHold(database, holdId)
  if (sent.state === 'refused' || after === undefined)
    return { refusal: channelRefusal('refund_simulation_failed') }
  const { transaction } = sent
  return {
    refunded: amount,
    notice: encodeChannelNotice(method.network, after, { transaction, amount }),
  }
}

/** The age at which a refund is surely not in the hands of its request any more. */
const oldMs = 120_000

/** Ends the holds of refunds whose requests went away, once their transactions have ended. */
export async function endOldRefunds(
  ports: Ports,
  methods: readonly ChannelMethod[],
): Promise<void> {
  for (const { id: holdId, account } of await listChannelHolds(ports.database)) {
    const [, began = ''] = holdId.split('_')
    if (ports.world.now() < Number.parseInt(began, 36) + oldMs) continue
    const channel = await loadChannel(ports, account.slice('channel:'.length))
    const method = methods.find(({ network }) => network.id === channel?.network)
    if (channel === undefined || method === undefined) continue
    const ended = await method.escrow.findRefund(holdId.slice('channel_'.length))
    if (ended === 'pending') continue
    const named = { id: channel.id, config: parseConfig(channel) }
    await syncChannel(ports, method, ended === 'mined' ? { ...named, isRefund: true } : named)
    await deleteHold(ports.database, holdId)
  }
}

function limitTo(amount: bigint, most: bigint): bigint {
  if (amount > most) return most
  return amount
}
