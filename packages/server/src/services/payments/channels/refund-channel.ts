import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import { isSignedByPayer } from '../../../x402/channels/channel.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import { lockName, takeFromAccount } from '../accounts/account-lock.ts'
import {
  type ChannelHold,
  deleteHold,
  insertHold,
  listChannelHolds,
  printRefunding,
} from '../accounts/holds.ts'
import { listVoucherPayments } from '../claims/claim-lists.ts'
import { isFromSenderOf } from '../claims/stored-payment.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { toChannelAccount } from './channel-entries.ts'
import { encodeChannelNotice } from './channel-notice.ts'
import {
  type ChannelMethod,
  holdOldMs,
  holdSendMs,
  isChannelHeld,
  isRefundEarned,
  loadChannel,
  makeHoldName,
  parseConfig,
  readHoldTime,
  syncChannel,
} from './channel-register.ts'
import { formatChannelRefusal } from './check-channel-payment.ts'
import { makeVoucherPayment } from './voucher-payment.ts'

const channels = sql.id('system', 'channel')

type Ports = Pick<PaymentPorts, 'database' | 'tenants' | 'world' | 'refuseFullDisk'>

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
  if (channel === undefined) return { refusal: formatChannelRefusal('refund_no_balance') }
  if (voucher.maxClaimable !== channel.charged) return { correction: channel }
  const left = channel.balance - channel.charged
  if (left <= 0n) return { refusal: formatChannelRefusal('refund_no_balance') }
  const asked = refund?.amount ?? left
  if (asked === 0n) return { refusal: formatChannelRefusal('refund_amount_invalid') }
  const amount = limitTo(asked, left)
  ports.refuseFullDisk?.()
  const beganMs = world.now()
  const name = makeHoldName(world)
  const holdId = `channel_${name}`
  const account = toChannelAccount(id)
  // The part that the payer takes back by itself goes down with the refund: it cannot have both.
  const free = left - channel.withdrawing
  if (free < 0n) return { refusal: formatChannelRefusal('refund_no_balance') }
  const held = limitTo(amount, free)
  const outcome = await takeFromAccount(database, account, async (tx, available) => {
    if (available < held || (await isChannelHeld(tx, id))) return 'busy'
    if (!(await isRefundDue(tx, ports, { method, channel }))) return 'too soon'
    return (await insertHold(tx, { id: holdId, account, amount: held })) ? 'held' : 'busy'
  })
  if (outcome === 'too soon') return { refusal: formatChannelRefusal('refund_too_soon') }
  if (outcome === 'busy')
    throw new Fault('PAYMENT_PENDING', { retryAfterSeconds: 2, details: { status: 'pending' } })
  // The upkeep takes a refund that was not sent by then for one that never will be.
  if (world.now() > beganMs + holdSendMs) {
    await deleteHold(database, holdId)
    throw new Fault('PAYMENT_PENDING', { retryAfterSeconds: 5, details: { status: 'pending' } })
  }
  const { charged: total } = channel
  const row = { config, maxClaimable: total, signature: voucher.signature, total }
  const isClaimed = channel.charged === channel.claimed
  const sent = await method.escrow.refund(name, { config, amount, ...(!isClaimed && { row }) })
  world.failpoint?.('channel.refunded')
  // Its end is found by the upkeep.
  if (sent.state === 'pending')
    throw new Fault('PAYMENT_PENDING', { retryAfterSeconds: 5, details: { status: 'pending' } })
  const by = sent.state === 'mined' ? sent.transaction : undefined
  const moved = { claimedBy: by, movedBy: by }
  const after = await syncChannel(ports, method, { id, config, isRefund: true, ...moved })
  await deleteHold(database, holdId)
  if (sent.state === 'refused' || after === undefined)
    return { refusal: formatChannelRefusal('refund_simulation_failed') }
  const { transaction } = sent
  return {
    refunded: amount,
    notice: encodeChannelNotice(method.network, after, { transaction, amount }),
  }
}

/**
 * Returns false where a refund may be asked for by somebody else: its voucher was used, so claims and receipts show it,
 * and nothing else in the request is the payer's. As for a sale, a used voucher counts only from the sender that used it,
 * or with the payer's signature of the request.
 */
export async function isRefundByPayer(
  { database }: Pick<Ports, 'database'>,
  brought: {
    readonly payment: ChannelPayment
    readonly hash: string
    readonly origin: string
    readonly isPayer: boolean
  },
): Promise<boolean> {
  if (brought.isPayer) return true
  const { maxClaimable } = brought.payment.voucher
  const { identity, payment } = makeVoucherPayment(brought.payment, { base: 0n, uses: 0 }, brought)
  const channel = identity.slice(0, identity.lastIndexOf('/') + 1)
  const used = await listVoucherPayments(database, { channel, maxClaimable })
  return used.length === 0 || used.some((stored) => isFromSenderOf(stored, payment))
}

/**
 * Returns true where a refund is worth its gas, or its payer may have one that is not: so nobody drains our gas by
 * deposits and refunds. Any other payer waits, or takes the money back by a transaction of its own. Channels whose
 * vouchers another key signs count apart: anybody can open one in a payer's name, and would take its refund.
 */
async function isRefundDue(
  tx: Queryable,
  { world }: Pick<Ports, 'world'>,
  { method, channel }: { readonly method: ChannelMethod; readonly channel: ChannelRow },
): Promise<boolean> {
  const { network } = method
  const config = parseConfig(channel)
  if (isRefundEarned(network, channel)) return true
  // One after the other, in all processes: each counts those that are under way before it.
  await lockName(tx, `channel-refunds:${network.id}`)
  const sinceMs = world.now() - limits.channelRefundSeconds * 1000
  const least = limits.channelRefundPayments * network.minimumPayment
  const [row] = await tx.query<{ own: number; unused: number; all: number }>(sql`
    SELECT (count(*) FILTER (WHERE config::json ->> 'payer' = ${config.payer}
        AND (config::json ->> 'payerAuthorizer' IS NOT DISTINCT FROM config::json ->> 'payer') = ${isSignedByPayer(config)}))::int4 AS own,
      (count(*) FILTER (WHERE charged = 0))::int4 AS unused, count(*)::int4 AS all
    FROM ${channels} WHERE network = ${network.id}
      AND id IN (SELECT id FROM ${channels} WHERE refunded_at_ms > ${sinceMs}::int8 UNION ${printRefunding()})
      AND (refunded_at_ms > ${sinceMs}::int8 OR charged - coalesce(refund_charged, 0) < ${String(least)}::numeric)`)
  const { own, unused, all } = requirePresent(row, 'a count')
  // Somebody who moves one dollar through ever new wallets must leave some refunds to payers who bought something.
  const isLeft = channel.charged > 0n || unused < limits.channelUnusedRefundsMax
  return own === 0 && isLeft && all < limits.channelRefundsMax
}

/** Ends the holds of refunds and takeovers whose requests went away, once what they are for has ended. */
export async function endOldHolds(
  ports: Ports & { readonly log: Pick<Logger, 'warn'> },
  methods: readonly ChannelMethod[],
): Promise<void> {
  let after = ''
  for (;;) {
    const holds = await listChannelHolds(ports.database, after)
    // One that cannot be ended keeps no other one waiting.
    for (const hold of holds)
      await endOldHold(ports, methods, hold).catch((error: unknown) =>
        ports.log.warn(
          { hold: hold.id, error: String(error) },
          'a hold of a channel could not be ended',
        ),
      )
    const last = holds.at(-1)
    if (last === undefined) return
    after = last.id
  }
}

async function endOldHold(
  ports: Ports,
  methods: readonly ChannelMethod[],
  { id: holdId, account }: ChannelHold,
): Promise<void> {
  if (ports.world.now() < readHoldTime(holdId) + holdOldMs) return
  if (holdId.startsWith('takeover_')) return deleteHold(ports.database, holdId)
  const channel = await loadChannel(ports, account.slice('channel:'.length))
  const method = methods.find(({ network }) => network.id === channel?.network)
  if (channel === undefined || method === undefined) return
  const ended = await method.escrow.findRefund(holdId.slice('channel_'.length))
  if (ended === 'pending') return
  const named = { id: channel.id, config: parseConfig(channel) }
  await syncChannel(ports, method, ended === 'mined' ? { ...named, isRefund: true } : named)
  await deleteHold(ports.database, holdId)
}

function limitTo(amount: bigint, most: bigint): bigint {
  if (amount > most) return most
  return amount
}
