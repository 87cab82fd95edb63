import type { SaleVoucher } from '@tollbase/verify/sale-details'
import { requirePresent } from '../base/assert.ts'
import { chooseLarger } from '../base/bigint.ts'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { type ChannelDbRow, type ChannelRow, channelColumns, toChannel } from './channel-tables.ts'
import type { Booking, LedgerBody } from './ledger-entry.ts'

/**
 * Payment channels as the service's own log tells them. A channel's account, `channel:<id>`, is what was charged to it
 * and not claimed yet, as a debt: never positive. `escrow:<network>` is what was claimed and not sent to us yet.
 *
 * The entries, beside the sales that name a channel: `channel_seen`, the chain's books of a channel as they were
 * read; `channel_adopted`, a total that the payer proves and this log does not know; `channel_settled`, what the
 * contract has sent to us.
 */

/** The channels and networks that a run of entries names, as the tables have them; booking changes them. */
export type ChannelBooks = {
  readonly channels: Map<string, ChannelRow>
  /** The sums that were sent to us, by network. */
  readonly settled: Map<string, bigint>
  readonly changed: Set<string>
  /** The vouchers of sales. */
  readonly used: UsedVoucher[]
}

/** A voucher that bought something, and what; it is kept while it allows more than was charged. */
type UsedVoucher = {
  readonly id: string
  readonly maxClaimable: bigint
  readonly paymentId: string
}

const kinds: readonly unknown[] = ['channel_seen', 'channel_adopted', 'channel_settled']

/** Returns true for an entry of channels alone. */
export function isChannelEntry({ body }: Booking): boolean {
  return kinds.includes(body.kind)
}

/** Finds the voucher that paid for a sale. */
export function findSaleVoucher({ channel }: LedgerBody): SaleVoucher | undefined {
  return channel
}

export async function readChannelBooks(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<ChannelBooks> {
  const ids = bookings.flatMap(({ body }) => findSaleVoucher(body)?.id ?? [])
  const named = bookings.filter(isChannelEntry).map(({ body }) => body.payment_id)
  const all = [...new Set([...ids, ...named])]
  if (all.length === 0)
    return { channels: new Map(), settled: new Map(), changed: new Set(), used: [] }
  const rows = await tx.query<ChannelDbRow>(
    sql`SELECT ${channelColumns} FROM ${sql.id(schema, 'channel')} WHERE id = ANY(${all}::text[])`,
  )
  const sums = await tx.query<{ network: string; settled: string }>(
    sql`SELECT network, settled FROM ${sql.id(schema, 'channel_receiver')} WHERE network = ANY(${all}::text[])`,
  )
  return {
    channels: new Map(rows.map((row) => [row.id, toChannel(row)])),
    settled: new Map(sums.map(({ network, settled }) => [network, BigInt(settled)])),
    changed: new Set(),
    used: [],
  }
}

/**
 * Books an entry of channels, or a channel's part in a sale; false where it does not go on from what is booked: it was
 * appended twice, or by two processes at once, and changes nothing.
 */
export function applyChannelEntry(books: ChannelBooks, { entry, body }: Booking): boolean {
  if (body.kind === 'channel_seen') return applySeen(books, { entry, body })
  if (body.kind === 'channel_settled') {
    const known = books.settled.get(body.payment_id) ?? 0n
    if (known !== BigInt(String(body.settled_before))) return false
    books.settled.set(body.payment_id, BigInt(String(body.settled)))
    books.changed.add(body.payment_id)
    return true
  }
  const voucher = findSaleVoucher(body)
  const channel = voucher && books.channels.get(voucher.id)
  if (channel === undefined || voucher === undefined) return false
  const base = BigInt(voucher.base)
  const signed = {
    max_claimable: BigInt(voucher.max_claimable),
    signature: voucher.signature,
  }
  if (body.kind === 'channel_adopted') {
    if (BigInt(String(body.charged_before)) !== channel.charged || base <= channel.charged)
      return false
    setChannel(books, entry.time, { ...channel, ...signed, charged: base })
    return true
  }
  const charge = BigInt(String(body.amount))
  if (base !== channel.charged || base + charge > signed.max_claimable) return false
  setChannel(books, entry.time, {
    ...channel,
    ...signed,
    charged: base + charge,
    uses: channel.uses + 1,
    last_base: base,
    last_charge: charge,
  })
  const { id, max_claimable: allowed } = voucher
  books.used.push({ id, maxClaimable: BigInt(allowed), paymentId: body.payment_id })
  return true
}

/** The chain's books; what it says was claimed beyond all known charges was charged in a life that is lost. */
function applySeen(books: ChannelBooks, { entry, body }: Booking): boolean {
  const id = body.payment_id
  const known = books.channels.get(id) ?? makeChannel(id, body)
  const before = (name: string) => BigInt(String(body[name]))
  const claimed = BigInt(String(body.claimed))
  // One that was read before another one must not undo it.
  const isNext =
    before('balance_before') === known.balance &&
    before('withdrawing_before') === known.withdrawing &&
    before('claimed_before') === known.claimed &&
    (claimed <= before('charged_before') || before('charged_before') === known.charged)
  if (!isNext) return false
  setChannel(books, entry.time, {
    ...known,
    balance: BigInt(String(body.balance)),
    withdrawing: BigInt(String(body.withdrawing)),
    claimed,
    charged: chooseLarger(claimed, known.charged),
    ...(body.is_refund === true && {
      refund_charged: chooseLarger(claimed, known.charged),
      ...(body.is_earned !== true && { refunded_at_ms: BigInt(entry.time) }),
    }),
  })
  return true
}

function makeChannel(id: string, { network, config }: LedgerBody): ChannelRow {
  const none = { balance: 0n, claimed: 0n, withdrawing: 0n, charged: 0n, uses: 0 }
  const unused = { max_claimable: null, signature: null, last_base: null, last_charge: null }
  const times = { unclaimed_since_ms: null, refunded_at_ms: null, refund_charged: null }
  return {
    ...{ id, network: String(network), config: JSON.stringify(config) },
    ...none,
    ...unused,
    ...times,
  }
}

function setChannel(books: ChannelBooks, timeMs: number, channel: ChannelRow): void {
  const { charged, claimed, unclaimed_since_ms: since } = channel
  const waiting = charged > claimed ? (since ?? BigInt(timeMs)) : null
  books.channels.set(channel.id, { ...channel, unclaimed_since_ms: waiting })
  books.changed.add(channel.id)
}

export async function writeChannelBooks(
  tx: Queryable,
  schema: string,
  { channels, settled, changed, used }: ChannelBooks,
): Promise<void> {
  const names = [...changed]
  const rows = names.flatMap((id) => channels.get(id) ?? [])
  const text = (value: bigint | null) => (value === null ? null : String(value))
  if (rows.length > 0)
    await tx.execute(sql`
      INSERT INTO ${sql.id(schema, 'channel')} (${channelColumns})
      SELECT * FROM unnest(
        ${rows.map((one) => one.id)}::text[], ${rows.map((one) => one.network)}::text[],
        ${rows.map((one) => one.config)}::text[], ${rows.map((one) => text(one.balance))}::numeric[],
        ${rows.map((one) => text(one.claimed))}::numeric[], ${rows.map((one) => text(one.withdrawing))}::numeric[],
        ${rows.map((one) => text(one.charged))}::numeric[], ${rows.map((one) => one.uses)}::int4[],
        ${rows.map((one) => text(one.max_claimable))}::numeric[], ${rows.map((one) => one.signature)}::text[],
        ${rows.map((one) => text(one.last_base))}::numeric[], ${rows.map((one) => text(one.last_charge))}::numeric[],
        ${rows.map((one) => one.unclaimed_since_ms)}::int8[], ${rows.map((one) => one.refunded_at_ms)}::int8[],
        ${rows.map((one) => text(one.refund_charged))}::numeric[])
      ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, claimed = excluded.claimed,
        withdrawing = excluded.withdrawing, charged = excluded.charged, uses = excluded.uses,
        max_claimable = excluded.max_claimable, signature = excluded.signature, last_base = excluded.last_base,
        last_charge = excluded.last_charge, unclaimed_since_ms = excluded.unclaimed_since_ms,
        refunded_at_ms = excluded.refunded_at_ms, refund_charged = excluded.refund_charged`)
  if (rows.length > 0) await writeUsedVouchers(tx, schema, { used, ids: names })
  const sums = names.filter((name) => settled.has(name))
  if (sums.length === 0) return
  const amounts = sums.map((name) => String(requirePresent(settled.get(name), 'a sum')))
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'channel_receiver')} (network, settled)
    SELECT * FROM unnest(${sums}::text[], ${amounts}::numeric[])
    ON CONFLICT (network) DO UPDATE SET settled = excluded.settled`)
}

async function writeUsedVouchers(
  tx: Queryable,
  schema: string,
  { used, ids }: { readonly used: readonly UsedVoucher[]; readonly ids: readonly string[] },
): Promise<void> {
  const vouchers = sql.id(schema, 'channel_voucher')
  await tx.execute(sql`
    INSERT INTO ${vouchers} (id, max_claimable, payment_id)
    SELECT * FROM unnest(
      ${used.map((one) => one.id)}::text[], ${used.map((one) => String(one.maxClaimable))}::numeric[],
      ${used.map((one) => one.paymentId)}::text[])
    ON CONFLICT (id, max_claimable) DO NOTHING`)
  await tx.execute(sql`
    DELETE FROM ${vouchers} AS voucher USING ${sql.id(schema, 'channel')} AS channel
    WHERE voucher.id = ANY(${ids}::text[]) AND channel.id = voucher.id AND voucher.max_claimable <= channel.charged`)
}
