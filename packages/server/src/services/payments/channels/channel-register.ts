import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../../base/assert.ts'
import type { World } from '../../../base/world.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import {
  type ChannelDbRow,
  type ChannelRow,
  channelColumnNames,
  toChannel,
} from '../../../projections/channel-tables.ts'
import type { ChannelConfig, Voucher } from '../../../x402/channels/channel.ts'
import type { Escrow, EscrowState } from '../../../x402/channels/escrow.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { takeFromAccount } from '../accounts/account-lock.ts'
import { deleteHold, insertHold, printIsHeld } from '../accounts/holds.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { makeAdoptedEntry, makeSeenEntry, toChannelAccount } from './channel-entries.ts'
import type { NamedUse } from './voucher-payment.ts'

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

/** A channel as a payment finds it. */
export type ChannelLook = {
  /** Undefined where it is not known. */
  readonly channel: ChannelRow | undefined
  /** A sale or a refund of it is under way, in any process. */
  readonly isHeld: boolean
  /** The payment that a voucher of so much was used for before, where that allows more than was charged since. */
  readonly usedFor: string | undefined
  /** The most that any voucher allowed which was used; one that allows more was used for nothing. */
  readonly mostUsed: bigint
}

/** Reads several channels, each as the payment by a voucher of so much finds it, by one statement. */
export async function readChannelLooks(
  database: Queryable,
  vouchers: readonly Pick<Voucher, 'channelId' | 'maxClaimable'>[],
): Promise<ChannelLook[]> {
  const rows = await database.query<
    ChannelDbRow & { at: bigint; isHeld: boolean; usedFor: string | null; mostUsed: string }
  >(sql`
    SELECT asked.at, ${sql.join(channelColumnNames.map((name) => sql`channel.${sql.id(name)}`))},
      EXISTS (${printHolds(sql`${toChannelAccount('')}::text || asked.id`)}) AS "isHeld",
      (SELECT voucher.payment_id FROM system.channel_voucher AS voucher
        WHERE voucher.id = asked.id AND voucher.max_claimable = asked.max_claimable) AS "usedFor",
      greatest(channel.charged, channel.max_claimable,
        (SELECT max(voucher.max_claimable) FROM system.channel_voucher AS voucher WHERE voucher.id = asked.id))::text AS "mostUsed"
    FROM unnest(${vouchers.map(({ channelId }) => channelId)}::text[],
      ${vouchers.map(({ maxClaimable }) => String(maxClaimable))}::numeric[]) WITH ORDINALITY AS asked (id, max_claimable, at)
    JOIN system.channel AS channel ON channel.id = asked.id`)
  const known = new Map(
    rows.map(({ at, isHeld, usedFor, mostUsed, ...row }): [number, ChannelLook] => [
      Number(at) - 1,
      {
        channel: toChannel(row),
        isHeld,
        usedFor: usedFor ?? undefined,
        mostUsed: BigInt(mostUsed),
      },
    ]),
  )
  const unknown = { channel: undefined, isHeld: false, usedFor: undefined, mostUsed: 0n }
  return vouchers.map((_, at) => known.get(at) ?? unknown)
}

/** Reads a channel from its chain and writes down what is new; undefined where nothing was ever deposited there. */
export async function syncChannel(
  ports: Ports,
  { network, escrow }: ChannelMethod,
  named: NamedChannel &
    Pick<Parameters<typeof makeSeenEntry>[2], 'isRefund' | 'claimedBy' | 'movedBy'>,
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
    const { claimedBy, movedBy } = named
    const by = { claimedBy, movedBy }
    const entry = makeSeenEntry(channel, known, { ...seen, ...noteRefund, isEarned, ...by })
    await chain.append([entry], { isOwed: true })
    escrow.changed.add(named.id)
    const booked = await loadChannel(ports, named.id)
    const isBooked =
      booked !== undefined &&
      isSame(booked, seen) &&
      (named.isRefund !== true || !isSameRefund(known, booked))
    if (isBooked || attempt === syncAttempts) return booked
  }
}

/**
 * Takes over the total that a voucher proves; undefined where the channel is not free, or has moved on. While it is
 * written the channel is held: a sale that begins meanwhile, in any process, would never be booked.
 */
export async function takeOverBase(
  ports: Ports & Pick<PaymentPorts, 'world'>,
  channel: ChannelRow,
  { base, voucher }: { readonly base: bigint; readonly voucher: Voucher },
): Promise<ChannelRow | undefined> {
  const { database, world } = ports
  const { chain } = ports.tenants.system
  const beganMs = world.now()
  const id = `takeover_${makeHoldName(world)}`
  const account = toChannelAccount(channel.id)
  const use = { id: channel.id, base: channel.charged, uses: channel.uses }
  // No connection waits for the entry to be applied: the applier needs one, and after a restore many do this at once.
  const isOurs = await takeFromAccount(
    database,
    account,
    async (tx) => (await isChannelAt(tx, use)) && insertHold(tx, { id, account, amount: 0n }),
  )
  if (!isOurs) return undefined
  const isLate = world.now() > beganMs + holdSendMs
  if (!isLate) await chain.append([makeAdoptedEntry(channel, base, voucher)], { isOwed: true })
  const after = await loadChannel(ports, channel.id)
  // Where the outcome is unknown, it stays for the upkeep to end.
  await deleteHold(database, id)
  return isLate ? undefined : requirePresent(after, 'a channel that was there')
}

/** The age by which what a channel is held for must be on its way, and the one at which it surely is or never will be. */
export const holdSendMs = 30_000
export const holdOldMs = 120_000

/** Makes a name for a hold of a channel, which says when it began. */
export function makeHoldName(world: World): string {
  return `${world.now().toString(36)}_${world.randomBytes(16).toString('hex')}`
}

/** Reads when a hold of a channel began, in milliseconds since 1970. */
export function readHoldTime(holdId: string): number {
  return Number.parseInt(holdId.split('_')[1] ?? '', 36)
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

/** Returns true if the channel is free, and stands where this use begins. */
async function isChannelAt(tx: Queryable, use: NamedUse): Promise<boolean> {
  return (await listFreeChannels(tx, [use])).has(formatUse(use))
}

/** Names a use of a channel. */
export function formatUse({ id, base, uses }: NamedUse): string {
  return `${id} ${base} ${uses}`
}

/**
 * Lists the uses of channels that are free, and stand where these begin: one statement, so one snapshot. A hold counts
 * until the tables have its sale, which also moves the channel on: seen apart, both could be missed.
 */
export async function listFreeChannels(
  tx: Queryable,
  uses: readonly NamedUse[],
): Promise<ReadonlySet<string>> {
  if (uses.length === 0) return new Set()
  const rows = await tx.query<{ id: string; base: string; uses: number }>(sql`
    SELECT asked.id, asked.base::text AS base, asked.uses FROM unnest(${uses.map(({ id }) => id)}::text[], ${uses.map(({ base }) => String(base))}::numeric[],
      ${uses.map((one) => one.uses)}::int4[]) AS asked (id, base, uses)
    JOIN system.channel AS channel ON channel.id = asked.id AND channel.charged = asked.base AND channel.uses = asked.uses
    WHERE NOT EXISTS (${printHolds(sql`${toChannelAccount('')}::text || asked.id`)})`)
  return new Set(rows.map((row) => formatUse({ ...row, base: BigInt(row.base) })))
}

/** Returns true while a sale or a refund of the channel is under way, in any process. */
export async function isChannelHeld(database: Queryable, id: string): Promise<boolean> {
  return (
    (await database.query(sql`${printHolds(sql`${toChannelAccount(id)}::text`)} LIMIT 1`)).length >
    0
  )
}

function printHolds(account: SqlStatement): SqlStatement {
  return sql`SELECT hold.id FROM operations.account_hold AS hold WHERE hold.account = ${account} AND ${printIsHeld(sql`hold`)}`
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
