import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { printOnce } from './channel-tables.ts'
import { isReversal } from './count-entries-once.ts'
import type { Booking } from './ledger-entry.ts'

/** A deposit, or a transfer of ours, whose chain does not have it any more; amounts in atomic units. */
export type Reversal = {
  /** The id of the payment, or of the transfer. */
  readonly payment_id: string
  readonly network: string
  readonly amount: string
  /** The sum that its account gave back; of a transfer of ours, the sum that its account got back. */
  readonly moved: string
  /** The sum that nobody gave back: the loss of the operator. */
  readonly lost: string
  readonly reason: string
  readonly time_ms: bigint
}

/** One row for each reversal: a payment is reversed once. */
export function buildReversalTable(schema: string): SqlStatement {
  return sql`CREATE TABLE ${sql.id(schema, 'reversal')} (
    payment_id text NOT NULL, network text NOT NULL, amount numeric NOT NULL, moved numeric NOT NULL, lost numeric NOT NULL,
    reason text NOT NULL, time_ms int8 NOT NULL, leaf int8 NOT NULL, CONSTRAINT reversal_pkey PRIMARY KEY (payment_id))`
}

/** The same for a service's chain from before there were any. */
export function buildMissingReversalTable(): SqlStatement[] {
  return [
    printOnce(
      sql`to_regclass('system.watermark') IS NOT NULL AND to_regclass('system.reversal') IS NULL`,
      [buildReversalTable('system')],
    ),
  ]
}

/** Writes those of the bookings that reverse something; a transfer that is reversed was not made. */
export async function writeReversals(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<void> {
  const reversals = bookings.filter(isReversal)
  if (reversals.length === 0) return
  const read = (name: string) => reversals.map(({ body }) => String(body[name]))
  const ids = reversals.map(({ body }) => body.payment_id)
  const leaves = reversals.map(({ entry }) => entry.leafIndex)
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'reversal')} (payment_id, network, amount, moved, lost, reason, time_ms, leaf)
    SELECT * FROM unnest(
      ${ids}::text[], ${read('network')}::text[], ${read('amount')}::numeric[], ${read('moved')}::numeric[],
      ${read('lost')}::numeric[], ${read('reason')}::text[], ${reversals.map(({ entry }) => entry.time)}::int8[],
      ${leaves}::int8[])`)
  await tx.execute(sql`
    UPDATE ${sql.id(schema, 'transfer')} AS one SET outcome = 'transfer_returned', transaction = NULL, end_leaf = told.leaf
    FROM unnest(${ids}::text[], ${leaves}::int8[]) AS told (id, leaf) WHERE one.id = told.id`)
}

export async function findReversal(
  database: Queryable,
  schema: string,
  paymentId: string,
): Promise<Reversal | undefined> {
  const [row] = await database.query<Reversal>(sql`
    SELECT payment_id, network, amount::text AS amount, moved::text AS moved, lost::text AS lost, reason, time_ms
    FROM ${sql.id(schema, 'reversal')} WHERE payment_id = ${paymentId}`)
  return row
}

/** A deposit that came in by a network, or a transfer of ours that went out by it. */
export type BookedMove = {
  /** The place of its entry. */
  readonly leaf: bigint
  readonly kind: 'deposit' | 'transfer_paid'
  /** The id of the payment, or of the transfer. */
  readonly id: string
}

/** Lists what is booked as moved by a network, after this place in the log, in its order. */
export function listBookedMoves(
  database: Queryable,
  schema: string,
  page: { readonly network: string; readonly after: bigint; readonly limit: number },
): Promise<BookedMove[]> {
  return database.query<BookedMove>(sql`
    SELECT leaf, kind, reference AS id FROM ${sql.id(schema, 'posting')}
    WHERE account = ${`outside:${page.network}`} AND leaf > ${page.after}::int8 AND kind IN ('deposit', 'transfer_paid')
    ORDER BY leaf, line LIMIT ${page.limit}`)
}

/** Finds the place of the last entry that moved something by a network before this time; -1 where there is none. */
export async function findMoveBefore(
  database: Queryable,
  schema: string,
  { network, beforeMs }: { readonly network: string; readonly beforeMs: number },
): Promise<bigint> {
  const [row] = await database.query<{ leaf: bigint }>(sql`
    SELECT leaf FROM ${sql.id(schema, 'posting')}
    WHERE account = ${`outside:${network}`} AND time_ms < ${beforeMs}::int8 ORDER BY leaf DESC LIMIT 1`)
  return row?.leaf ?? -1n
}
