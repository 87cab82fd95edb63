import { createHash } from 'node:crypto'
import { requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import { claims } from '../claims/claim-store.ts'
import { replies } from '../claims/reply-store.ts'

/**
 * The use that has a payment: the purchase or the settlement that was first to write here, whatever a clock says. A
 * settlement that has no end yet has one more row, by its id: the name of what was asked and by whom, so that the next
 * process tells it to nobody else.
 */
const takers = sql.id('operations', 'payment_taker')

/** Authorizations to sellers end after 10 minutes, and a block that is a week old is replaced by no other one. */
const keptMs = 7 * 24 * 3_600_000

/** A use of a payment that pays somebody else than us. */
export type PaymentUse = {
  readonly identity: string
  /** The id of the claim of a purchase, or the name that `makeSettlementTaker` made. */
  readonly taker: string
  readonly nowMs: number
}

/**
 * Payments whose answers wait for their money are their purchases', and so are those that were sold of late: a
 * reorganisation may take one back, and then the chain does not call it used.
 */
export function buildTakerTable(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${takers} (
      identity text NOT NULL, taker text NOT NULL, taken_at_ms int8 NOT NULL,
      CONSTRAINT payment_taker_pkey PRIMARY KEY (identity))`,
    sql`CREATE INDEX payment_taker_time ON ${takers} (taken_at_ms)`,
    sql`INSERT INTO ${takers} (identity, taker, taken_at_ms)
      SELECT identity, id, created_at_ms FROM ${claims} WHERE state = 'ready' AND NOT payment::jsonb ? 'upto'
      UNION ALL
      SELECT claim.identity, claim.id, claim.created_at_ms FROM ${replies} AS kept JOIN ${claims} AS claim ON claim.id = kept.payment_id
      WHERE claim.state IN ('answered', 'delivered') AND kept.sale::jsonb ? 'paid_to'`,
  ]
}

/**
 * Takes a payment for a use; false where another one has it. An authorization that pays a seller's own wallet may be
 * brought for a purchase here, and by another server of the same seller, which lets us settle it: both find that it is
 * made, whoever made it, and one alone may deliver for it. A purchase takes it in the commit that keeps its answer, before
 * its money is asked for; a settlement takes it once it is made, before its server is told so.
 */
export async function takePayment(
  database: Queryable,
  { identity, taker, nowMs }: PaymentUse,
): Promise<boolean> {
  // The row is changed to what it is, so that it is read also where another process has just committed it.
  const [row] = await database.query<{ taker: string }>(sql`
    INSERT INTO ${takers} AS known (identity, taker, taken_at_ms) VALUES (${identity}, ${taker}, ${nowMs}::int8)
    ON CONFLICT (identity) DO UPDATE SET taker = known.taker RETURNING taker`)
  return requirePresent(row, 'the taker of a payment').taker === taker
}

/**
 * The same for a settlement that is made, which has no row by its own id any more: whoever dies between the two would
 * leave a payment that is told to nobody.
 */
export async function takeSettledPayment(
  database: Queryable,
  { identity, taker, nowMs }: PaymentUse,
  asked: Omit<PaymentUse, 'nowMs'>,
): Promise<boolean> {
  const [row] = await database.query<{ taker: string }>(sql`
    WITH begun AS (DELETE FROM ${takers} WHERE identity = ${asked.identity} AND taker = ${asked.taker})
    INSERT INTO ${takers} AS known (identity, taker, taken_at_ms) VALUES (${identity}, ${taker}, ${nowMs}::int8)
    ON CONFLICT (identity) DO UPDATE SET taker = known.taker RETURNING taker`)
  return requirePresent(row, 'the taker of a payment').taker === taker
}

/** Reads the use that has a payment, or the name of what was asked of a settlement. */
export async function readTaker(
  database: Queryable,
  identity: string,
): Promise<string | undefined> {
  const [row] = await database.query<{ taker: string }>(
    sql`SELECT taker FROM ${takers} WHERE identity = ${identity}`,
  )
  return row?.taker
}

/** Drops a row while it is of this taker. */
export async function dropTaker(
  database: Queryable,
  { identity, taker }: Omit<PaymentUse, 'nowMs'>,
): Promise<void> {
  await database.execute(
    sql`DELETE FROM ${takers} WHERE identity = ${identity} AND taker = ${taker}`,
  )
}

/** Drops what was taken so long ago that nobody else can be told any more that the payment was made. */
export async function dropTakers(database: Queryable, nowMs: number): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${takers} AS taken WHERE taken_at_ms < ${nowMs - keptMs}::int8
      AND NOT EXISTS (SELECT 1 FROM ${claims} AS claim WHERE claim.id = taken.taker AND claim.state = 'ready')`)
}

/** Makes the name by which one settlement knows its own row again, should it not hear that the row was written. */
export function makeSettlementTaker(random: Uint8Array): string {
  return `settlement_${Buffer.from(random).toString('hex')}`
}

/** Derives the id of the transaction of a payment for another server, from the identity of the payment. */
export function deriveSettlementId(identity: string): string {
  return `facilitated_${createHash('sha256').update(identity).digest('hex').slice(0, 32)}`
}
