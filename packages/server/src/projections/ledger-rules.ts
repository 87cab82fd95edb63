import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { SoldPass, SoldUse } from './metered.ts'
import type { SoldPart } from './sales.ts'

/**
 * Double entry: each `ledger` entry of the system chain carries postings that sum to zero.
 * Accounts: `wallet:<address>` of payers, `app:<app_id>`, `platform`, `outside:<network>`, which is what came in from
 * there, so it is never positive, and `transit:<network>`, which is on its way out to there.
 */
export type Posting = { readonly account: string; readonly amount: string }

/** deposit: money came in. sale: it bought something. refund: its seller gives
 * some of it back. The others are the steps of a transfer of ours, out of `pay_to`. */
export type LedgerKind =
  | 'deposit'
  | 'sale'
  | 'refund'
  | 'withdrawal'
  | 'payout'
  | 'transfer_paid'
  | 'transfer_returned'

export type LedgerBody = {
  readonly kind: LedgerKind
  /** The id of the payment, or of the transfer. */
  readonly payment_id: string
  /** Names the settled payment for ever: network, asset, payer and nonce; of a transfer, its id. */
  readonly identity: string
  readonly postings: readonly Posting[]
  /** The parts of a sale's charge. */
  readonly sold?: readonly SoldPart[]
  /** The uses by a sale of things that have tiers or quotas. */
  readonly uses?: readonly SoldUse[]
  /** The time pass that a sale sold. */
  readonly pass?: SoldPass
  readonly [field: string]: unknown
}

export type Booking = { readonly entry: AppliedEntry; readonly body: LedgerBody }

export function isDeposit({ body }: Booking): boolean {
  return body.kind === 'deposit'
}

export function isSale({ body }: Booking): boolean {
  return body.kind === 'sale'
}

export function isRefund({ body }: Booking): boolean {
  return body.kind === 'refund'
}

/** Returns true for a sale that the payer's balance was charged for, whatever became of the payment's own money. */
function isFromBalance({ paid_from }: LedgerBody): boolean {
  return paid_from === 'balance'
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
  /** True once a transfer's outcome is booked. */
  readonly transfers: Map<string, boolean>
  readonly refunds: Set<string>
}

/**
 * Returns the bookings that count, in their order: the first deposit of a settled payment, the first sale of a
 * payment that was deposited or that a balance was charged for, the first refund of a sale by an application, the first start of a transfer, and the first end of one that was started.
 */
export async function filterCounted(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Booking[]> {
  const known = await readKnown(tx, schema, bookings)
  return bookings.filter((booking) => countOnce(known, booking))
}

function countOnce({ deposited, sold, transfers, refunds }: Known, booking: Booking): boolean {
  const { identity, payment_id: id } = booking.body
  if (isDeposit(booking)) {
    if (deposited.has(identity)) return false
    deposited.set(identity, id)
    return true
  }
  if (isTransferStart(booking)) {
    if (transfers.has(id)) return false
    transfers.set(id, false)
    return true
  }
  if (isTransferEnd(booking)) {
    if (transfers.get(id) !== false) return false
    transfers.set(id, true)
    return true
  }
  if (isRefund(booking)) {
    if (refunds.has(id)) return false
    refunds.add(id)
    return true
  }
  const isPaid = isFromBalance(booking.body) || deposited.get(identity) === id
  if (!isPaid || sold.has(identity)) return false
  sold.add(identity)
  return true
}

async function readKnown(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Known> {
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
  }
}

async function readTransfers(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<Map<string, boolean>> {
  const named = bookings.filter((one) => isTransferStart(one) || isTransferEnd(one))
  if (named.length === 0) return new Map()
  const ids = [...new Set(named.map(({ body }) => body.payment_id))]
  const rows = await tx.query<{ id: string; outcome: string | null }>(
    sql`SELECT id, outcome FROM ${sql.id(schema, 'transfer')} WHERE id = ANY(${ids}::text[])`,
  )
  return new Map(rows.map(({ id, outcome }) => [id, outcome !== null]))
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
