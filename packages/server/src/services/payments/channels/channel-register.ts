import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import type { ChannelConfig, Voucher } from '../../../x402/channels/channel.ts'
import type { Escrow, EscrowState } from '../../../x402/channels/escrow.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { takeFromAccount } from '../accounts/account-lock.ts'
import type { PaymentMethod, PaymentPorts } from '../purchase.ts'
import { makeAdoptedEntry, makeSeenEntry, toChannelAccount } from './channel-entries.ts'

/** The time for which what the chain said of a channel is believed: its payer waits for a day at least. */
export const watchMs = Math.min(limits.channelWithdrawSeconds * 100, 3_600_000)

/** Times that the chain is asked about a channel that others book at the same time. */
const syncAttempts = 3

/** A network whose channels pay. */
export type ChannelMethod = PaymentMethod & { readonly escrow: Escrow }

/** A channel as a payment names it. */
export type NamedChannel = { readonly id: string; readonly config: ChannelConfig }

type Ports = Pick<PaymentPorts, 'database' | 'tenants'>

/** Finds a channel with all that was appended until now. */
export async function loadChannel(
  { database, tenants }: Ports,
  id: string,
): Promise<ChannelRow | undefined> {
  const { chain, ledger, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  return ledger.findChannel(database, schema, id)
}

/** Reads a channel from its chain and writes down what is new; undefined where nothing was ever deposited there. */
export async function syncChannel(
  ports: Ports,
  { network, escrow }: ChannelMethod,
  named: NamedChannel & { readonly isRefund?: true },
): Promise<ChannelRow | undefined> {
  const { chain } = ports.tenants.system
  const noteRefund = named.isRefund && { isRefund: true as const }
  let isEarned: boolean | undefined
  for (let attempt = 1; ; attempt++) {
    // Our books are read first: where anybody learns more while the chain is asked, the answer is not booked.
    const known = await loadChannel(ports, named.id)
    const seen = await escrow.readState(named.id)
    if (known === undefined && seen.balance === 0n) return undefined
    const isNew = known === undefined || named.isRefund === true || !isSame(known, seen)
    if (!isNew) return known
    const channel = { id: named.id, network: network.id, config: named.config }
    isEarned ??= known !== undefined && isRefundEarned(network, known)
    await chain.append([makeSeenEntry(channel, known, { ...seen, ...noteRefund, isEarned })], {
      isOwed: true,
    })
    const booked = await loadChannel(ports, named.id)
    const isBooked =
      booked !== undefined &&
      isSame(booked, seen) &&
      (named.isRefund !== true || !isSameRefund(known, booked))
    if (isBooked || attempt === syncAttempts) return booked
  }
}

/** Takes over the total that a voucher proves; undefined where the channel is not free, or has moved on. */
export async function takeOverBase(
  ports: Ports,
  channel: ChannelRow,
  { base, voucher }: { readonly base: bigint; readonly voucher: Voucher },
): Promise<ChannelRow | undefined> {
  const { chain } = ports.tenants.system
  // Under the lock: a sale that begins meanwhile in another process would never be booked.
  return takeFromAccount(ports.database, toChannelAccount(channel.id), async (tx) => {
    if (!(await isChannelAt(tx, channel.id, { base: channel.charged, uses: channel.uses })))
      return undefined
    await chain.append([makeAdoptedEntry(channel, base, voucher)], { isOwed: true })
    return requirePresent(await loadChannel(ports, channel.id), 'a channel that was there')
  })
}

/** Returns true where the charges since the last refund have earned the gas of the next one. */
export function isRefundEarned(
  { minimumPayment }: Pick<PaymentNetwork, 'minimumPayment'>,
  { charged, refund_charged: before }: ChannelRow,
): boolean {
  return charged - (before ?? 0n) >= limits.channelRefundPayments * minimumPayment
}

/** Computes the part of a channel's deposits that vouchers may use: the payer cannot take it back unseen. */
export function getUsable({ balance, withdrawing }: ChannelRow): bigint {
  return balance - withdrawing
}

/** Reads the config that a channel was opened with. */
export function parseConfig({ config }: Pick<ChannelRow, 'config'>): ChannelConfig {
  return JSON.parse(config)
}

/**
 * Returns true if the channel is free, and stands where this use begins: one statement, so one snapshot. A hold counts
 * until the tables have its sale, which also moves the channel on: seen apart, both could be missed.
 */
export async function isChannelAt(
  tx: Queryable,
  id: string,
  { base, uses }: { readonly base: bigint; readonly uses: number },
): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT id FROM system.channel WHERE id = ${id} AND charged = ${String(base)}::numeric AND uses = ${uses}::int4
      AND NOT EXISTS (${printHolds(id)})`)
  return rows.length > 0
}

/** Returns true while a sale or a refund of the channel is under way, in any process. */
export async function isChannelHeld(database: Queryable, id: string): Promise<boolean> {
  return (await database.query(sql`${printHolds(id)} LIMIT 1`)).length > 0
}

function printHolds(id: string): SqlStatement {
  return sql`SELECT hold.id FROM operations.account_hold AS hold WHERE hold.account = ${toChannelAccount(id)}
    AND NOT EXISTS (SELECT 1 FROM system.sale AS sale WHERE sale.payment_id = hold.id)`
}

function isSameRefund(known: ChannelRow | undefined, booked: ChannelRow): boolean {
  return (
    booked.refunded_at_ms === (known?.refunded_at_ms ?? null) &&
    booked.refund_charged === (known?.refund_charged ?? null)
  )
}

function isSame(known: ChannelRow, seen: EscrowState): boolean {
  return (
    known.balance === seen.balance &&
    known.claimed === seen.claimed &&
    known.withdrawing === seen.withdrawing
  )
}
