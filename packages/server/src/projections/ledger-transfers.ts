import { requirePresent } from '../base/assert.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { isTransferEnd, isTransferStart } from './count-entries-once.ts'
import type { Booking } from './ledger-entry.ts'

/** A transfer of ours as the ledger has it. */
export type BookedTransfer = {
  readonly kind: string
  /** Whose money it is. */
  readonly account: string
  readonly network: string
  readonly recipient: string
  /** Atomic units. */
  readonly amount: string
  /** Atomic units that its account paid beside it. */
  readonly fee: string
  /** Unix seconds. */
  readonly valid_before: bigint
  /** The place of the entry that took the money from its account. */
  readonly leaf: bigint
  readonly outcome: 'transfer_paid' | 'transfer_returned' | null
  /** The transaction that it was paid by. */
  readonly transaction: string | null
}

/** One row for each transfer that was begun, with the entry that says what became of it. */
export function buildTransferTable(schema: string): SqlStatement {
  return sql`CREATE TABLE ${sql.id(schema, 'transfer')} (
    id text NOT NULL, kind text NOT NULL, account text NOT NULL, network text NOT NULL, recipient text NOT NULL,
    amount numeric NOT NULL, valid_before int8 NOT NULL, leaf int8 NOT NULL, outcome text, transaction text, end_leaf int8,
    CONSTRAINT transfer_pkey PRIMARY KEY (id))`
}

export async function findBookedTransfer(
  database: Queryable,
  schema: string,
  id: string,
): Promise<BookedTransfer | undefined> {
  const [row] = await database.query<BookedTransfer>(
    sql`SELECT kind, account, network, recipient, amount, valid_before, leaf, outcome, transaction,
      (SELECT coalesce(-sum(line.amount), 0) FROM ${sql.id(schema, 'posting')} AS line WHERE line.account = one.account
        AND line.leaf = one.leaf AND line.kind = 'withdrawal_fee')::text AS fee
      FROM ${sql.id(schema, 'transfer')} AS one WHERE id = ${id}`,
  )
  return row
}

/** Writes those of the bookings that begin or end a transfer. */
export async function writeTransfers(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<void> {
  const starts = bookings.filter(isTransferStart)
  if (starts.length > 0) {
    await tx.execute(sql`
      INSERT INTO ${sql.id(schema, 'transfer')} (id, kind, account, network, recipient, amount, valid_before, leaf)
      SELECT * FROM unnest(
        ${starts.map(({ body }) => body.payment_id)}::text[], ${starts.map(({ body }) => body.kind)}::text[],
        ${starts.map(findAccount)}::text[], ${starts.map(({ body }) => String(body.network))}::text[],
        ${starts.map(({ body }) => String(body.recipient))}::text[], ${starts.map(({ body }) => String(body.amount))}::numeric[],
        ${starts.map(({ body }) => String(body.valid_before))}::int8[],
        ${starts.map(({ entry }) => entry.leafIndex)}::int8[])`)
  }
  const ends = bookings.filter(isTransferEnd)
  if (ends.length === 0) return
  await tx.execute(sql`
    UPDATE ${sql.id(schema, 'transfer')} AS one SET outcome = ended.outcome, transaction = ended.transaction, end_leaf = ended.leaf
    FROM unnest(
      ${ends.map(({ body }) => body.payment_id)}::text[], ${ends.map(({ body }) => body.kind)}::text[],
      ${ends.map(({ body }) => (body.transaction === undefined ? null : String(body.transaction)))}::text[],
      ${ends.map(({ entry }) => entry.leafIndex)}::int8[]) AS ended (id, outcome, transaction, leaf)
    WHERE one.id = ended.id`)
}

/** Finds the account that the entry takes the money from. */
function findAccount({ body }: Booking): string {
  const taken = body.postings.find(({ amount }) => amount.startsWith('-'))
  return requirePresent(taken, 'the account that pays for a transfer').account
}
