import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { isRefund } from './count-entries-once.ts'
import type { Booking } from './ledger-entry.ts'

/** A part of a sale's charge that its seller gave back. */
export type Refund = {
  readonly id: string
  /** The payment of the sale. */
  readonly payment_id: string
  readonly app: string
  readonly buyer: string
  readonly amount: string
  readonly time_ms: bigint
}

/** One row for each refund; an application refunds a sale once. */
export function buildRefundTables(schema: string): SqlStatement[] {
  return [
    sql`CREATE TABLE ${sql.id(schema, 'refund')} (
      id text NOT NULL, payment_id text NOT NULL, app text NOT NULL, buyer text NOT NULL, amount numeric NOT NULL,
      network text NOT NULL, time_ms int8 NOT NULL, leaf int8 NOT NULL, CONSTRAINT refund_pkey PRIMARY KEY (id))`,
    sql`CREATE INDEX refund_app ON ${sql.id(schema, 'refund')} (app, time_ms, id)`,
    buildRefundBuyerIndex(schema),
  ]
}

export function buildRefundBuyerIndex(schema: string): SqlStatement {
  return sql`CREATE INDEX refund_buyer ON ${sql.id(schema, 'refund')} (buyer, time_ms, id)`
}

export async function writeRefunds(
  tx: Queryable,
  { schema, bookings }: { readonly schema: string; readonly bookings: readonly Booking[] },
): Promise<void> {
  const refunds = bookings.filter(isRefund)
  if (refunds.length === 0) return
  const read = (name: string) => refunds.map(({ body }) => String(body[name]))
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'refund')} (id, payment_id, app, buyer, amount, network, time_ms, leaf)
    SELECT * FROM unnest(
      ${read('payment_id')}::text[], ${read('sale')}::text[], ${read('app')}::text[], ${read('payer')}::text[],
      ${read('amount')}::numeric[], ${read('network')}::text[],
      ${refunds.map(({ entry }) => entry.time)}::int8[], ${refunds.map(({ entry }) => entry.leafIndex)}::int8[])`)
}

export async function findRefund(
  database: Queryable,
  schema: string,
  id: string,
): Promise<Refund | undefined> {
  const [row] = await database.query<Refund>(sql`
    SELECT id, payment_id, app, buyer, amount::text AS amount, time_ms FROM ${sql.id(schema, 'refund')} WHERE id = ${id}`)
  return row
}
