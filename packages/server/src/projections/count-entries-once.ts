import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import {
  applyChannelEntry,
  type ChannelBooks,
  findSaleVoucher,
  isChannelEntry,
  readChannelBooks,
} from './channel-books.ts'
import { findHeldOn, listHeldOn } from './held-payments.ts'
import type { Booking, LedgerBody } from './ledger-entry.ts'

export function isDeposit({ body }: Booking): boolean {
  return body.kind === 'deposit'
}

export function isSale({ body }: Booking): boolean {
  return body.kind === 'sale'
}

function isRelease({ body }: Booking): boolean {
  return body.kind === 'release'
}

export function isRefund({ body }: Booking): boolean {
  return body.kind === 'refund'
}

export function isStorageFee({ body }: Booking): boolean {
  return body.kind === 'storage_fee'
}

export function isReversal({ body }: Booking): boolean {
  return body.kind === 'reversal'
}

/** Returns true for a sale that a balance or a channel was charged for, whatever became of the payment's own money. */
function isCharged({ paid_from }: LedgerBody): boolean {
  return paid_from === 'balance' || paid_from === 'channel'
}

/** Returns true for the entry that takes a transfer's money from its account. */
export function isTransferStart({ body }: Booking): boolean {
  return body.kind === 'withdrawal' || body.kind === 'payout'
}

/** Returns true for the entry that says what became of a transfer. */
export function isTransferEnd({ body }: Booking): boolean {
  return body.kind === 'transfer_paid' || body.kind === 'transfer_returned'
}

/** The tables' knowledge of the payments and transfers that a run of entries names. */
type Known = {
  /** Ids of payments by the identities that were deposited. */
  readonly deposited: Map<string, string>
  /** Identities of the payments that bought something. */
  readonly sold: Set<string>
  /** The outcome of a transfer as it is booked. */
  readonly transfers: Map<string, string | null>
  /** Payments and transfers that were reversed. */
  readonly reversed: Set<string>
  readonly refunds: Set<string>
  /** The accounts on which money is held. */
  readonly held: Set<string>
  /** Applications and days. */
  readonly storageFees: Set<string>
  readonly books: ChannelBooks
}

/**
 * Finds the bookings that count, in their order, and the channels as these leave them: the first deposit of a settled
 * payment, the first release of its money where that is held, the first sale of a payment that was deposited or that a
 * balance or channel was charged for, the first refund of a sale by an application, the first fee of an application for a
 * day, the first start of a transfer, the first end of one that was started, and the first reversal of what was deposited
 * or paid.
 */
export async function filterCounted(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<{ readonly counted: Booking[]; readonly books: ChannelBooks }> {
  const books = await readChannelBooks(tx, schema, bookings)
  const known = { ...(await readKnown(tx, schema, bookings)), books }
  return { counted: bookings.filter((booking) => countOnce(known, booking)), books }
}

function countOnce(known: Known, booking: Booking): boolean {
  const { deposited, sold, transfers, refunds, storageFees, held, books } = known
  const { identity, payment_id: id } = booking.body
  if (isDeposit(booking)) {
    if (deposited.has(identity)) return false
    deposited.set(identity, id)
    const heldOn = findHeldOn(booking.body)
    if (heldOn !== undefined) held.add(heldOn)
    return true
  }
  if (isRelease(booking)) return held.delete(findHeldOn(booking.body) ?? '')
  if (isReversal(booking)) return countReversal(known, booking)
  if (isTransferStart(booking)) {
    if (transfers.has(id)) return false
    transfers.set(id, null)
    return true
  }
  if (isTransferEnd(booking)) {
    if (transfers.get(id) !== null) return false
    transfers.set(id, booking.body.kind)
    return true
  }
  if (isRefund(booking)) {
    if (refunds.has(id)) return false
    refunds.add(id)
    return true
  }
  if (isStorageFee(booking)) {
    const name = formatFeeName(booking.body.app, booking.body.day)
    if (storageFees.has(name)) return false
    storageFees.add(name)
    return true
  }
  if (isChannelEntry(booking)) return applyChannelEntry(books, booking)
  const isPaid = isCharged(booking.body) || deposited.get(identity) === id
  if (!isPaid || sold.has(identity)) return false
  if (findSaleVoucher(booking.body) !== undefined && !applyChannelEntry(books, booking))
    return false
  sold.add(identity)
  return true
}

/** Money that is held for its operator's decision is taken back from there: it counts where that has not been released. */
function countReversal(
  { deposited, transfers, reversed, held }: Known,
  { body }: Booking,
): boolean {
  const { identity, payment_id: id } = body
  const isThere = deposited.get(identity) === id || transfers.get(id) === 'transfer_paid'
  if (!isThere || reversed.has(id)) return false
  const heldOn = findHeldOn(body)
  if (heldOn !== undefined && !held.delete(heldOn)) return false
  reversed.add(id)
  return true
}

async function readKnown(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Omit<Known, 'books'>> {
  const identities = [...new Set(bookings.map(({ body }) => body.identity))]
  const deposits = await tx.query<{ identity: string; payment_id: string }>(sql`
    SELECT identity, payment_id FROM ${sql.id(schema, 'settled_payment')} WHERE identity = ANY(${identities}::text[])`)
  const sales = await tx.query<{ identity: string }>(
    sql`SELECT identity FROM ${sql.id(schema, 'sale')} WHERE identity = ANY(${identities}::text[])`,
  )
  return {
    deposited: new Map(deposits.map((row) => [row.identity, row.payment_id])),
    sold: new Set(sales.map((row) => row.identity)),
    transfers: await readTransfers(tx, schema, bookings),
    refunds: await readRefunds(tx, schema, bookings),
    held: await listHeldOn(
      tx,
      schema,
      bookings.filter((one) => isRelease(one) || isReversal(one)),
    ),
    reversed: await readReversed(tx, schema, bookings),
    storageFees: await readStorageFees(tx, schema, bookings),
  }
}

async function readTransfers(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Map<string, string | null>> {
  const named = bookings.filter(
    (one) => isTransferStart(one) || isTransferEnd(one) || isReversal(one),
  )
  if (named.length === 0) return new Map()
  const ids = [...new Set(named.map(({ body }) => body.payment_id))]
  const rows = await tx.query<{ id: string; outcome: string | null }>(
    sql`SELECT id, outcome FROM ${sql.id(schema, 'transfer')} WHERE id = ANY(${ids}::text[])`,
  )
  return new Map(rows.map(({ id, outcome }) => [id, outcome]))
}

async function readReversed(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Set<string>> {
  const ids = bookings.filter(isReversal).map(({ body }) => body.payment_id)
  if (ids.length === 0) return new Set()
  const rows = await tx.query<{ payment_id: string }>(
    sql`SELECT payment_id FROM ${sql.id(schema, 'reversal')} WHERE payment_id = ANY(${ids}::text[])`,
  )
  return new Set(rows.map((row) => row.payment_id))
}

async function readRefunds(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Set<string>> {
  const ids = bookings.filter(isRefund).map(({ body }) => body.payment_id)
  if (ids.length === 0) return new Set()
  const rows = await tx.query<{ id: string }>(
    sql`SELECT id FROM ${sql.id(schema, 'refund')} WHERE id = ANY(${ids}::text[])`,
  )
  return new Set(rows.map((row) => row.id))
}

async function readStorageFees(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Set<string>> {
  const days = bookings.filter(isStorageFee).map(({ body }) => String(body.day))
  if (days.length === 0) return new Set()
  const rows = await tx.query<{ app: string; day: string }>(
    sql`SELECT app, day FROM ${sql.id(schema, 'storage_fee')} WHERE day = ANY(${[...new Set(days)]}::text[])`,
  )
  return new Set(rows.map(({ app, day }) => formatFeeName(app, day)))
}

function formatFeeName(app: unknown, day: unknown): string {
  return `${String(app)} ${String(day)}`
}
