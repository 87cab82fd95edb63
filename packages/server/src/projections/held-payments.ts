import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Booking, LedgerBody } from './ledger-entry.ts'

/**
 * Money that came in a life of the database that is lost: nobody knows what it bought. Each such payment has an account
 * of its own in the ledger, `held:<account>:<payment>`, which names the account that gets the money when the operator
 * releases it. It is a debt to the payer: no income, and no balance that could buy anything.
 */
export type HeldPayment = {
  readonly payment_id: string
  /** Network, asset, payer and nonce, separated by slashes. */
  readonly identity: string
  readonly transaction: string
  /** The account of the ledger that has the money. */
  readonly held_on: string
  /** The account that gets it. */
  readonly account: string
  /** Atomic units. */
  readonly amount: string
  /** When it was booked, in milliseconds since 1970. */
  readonly time_ms: bigint
}

const prefix = 'held:'

export const toHeldAccount = (account: string, paymentId: string) =>
  `${prefix}${account}:${paymentId}`

/** Prints the same of an account and a payment that a statement reads. */
export function printHeldAccount(account: SqlStatement, paymentId: SqlStatement): SqlStatement {
  return sql`(${prefix}::text || ${account} || ':' || ${paymentId})`
}

/** Finds the account on which an entry holds money, or from which it releases it. */
export function findHeldOn({ postings }: LedgerBody): string | undefined {
  return postings.find(({ account }) => account.startsWith(prefix))?.account
}

/** Lists those accounts that these releases name and that have money. */
export async function listHeldOn(
  tx: Queryable,
  schema: string,
  releases: readonly Booking[],
): Promise<Set<string>> {
  const named = releases.flatMap(({ body }) => findHeldOn(body) ?? [])
  if (named.length === 0) return new Set()
  const rows = await tx.query<{ account: string }>(sql`
    SELECT account FROM ${sql.id(schema, 'account')} WHERE account = ANY(${named}::text[]) AND balance > 0`)
  return new Set(rows.map(({ account }) => account))
}

/** The held payments that a list is about; all where nothing is named. */
export type HeldFilter = {
  readonly paymentId?: string | undefined
  /** Network, asset, payer and nonce: found by the key of the table, however much is held. */
  readonly identity?: string | undefined
  /** Lower case. */
  readonly payer?: string | undefined
  /** Ids greater than this one. */
  readonly after?: string | undefined
  readonly limit: number
}

/** Lists held payments by their ids. */
export async function listHeldPayments(
  database: Queryable,
  schema: string,
  { paymentId, identity, payer, after = '', limit }: HeldFilter,
): Promise<HeldPayment[]> {
  return database.query<HeldPayment>(sql`
    SELECT paid.payment_id, paid.identity, paid.transaction, held.account AS held_on,
      substr(held.account, ${prefix.length + 1}, length(held.account) - length(paid.payment_id) - ${prefix.length + 1}) AS account,
      held.balance::text AS amount, booked.time_ms
    FROM ${sql.id(schema, 'account')} AS held
    JOIN ${sql.id(schema, 'posting')} AS booked ON booked.account = held.account AND booked.kind = 'deposit'
    JOIN ${sql.id(schema, 'settled_payment')} AS paid ON paid.leaf = booked.leaf
    WHERE held.account >= ${prefix} AND held.account < 'held;' AND held.balance > 0
      ${paymentId === undefined ? sql`` : sql`AND paid.payment_id = ${paymentId}`}
      ${identity === undefined ? sql`` : sql`AND paid.identity = ${identity}`}
      ${payer === undefined ? sql`` : sql`AND split_part(paid.identity, '/', 3) = ${payer}`}
      AND paid.payment_id > ${after} ORDER BY paid.payment_id LIMIT ${limit}`)
}

/** Sums what is held. */
export async function sumHeld(database: Queryable, schema: string): Promise<bigint> {
  const [row] = await database.query<{ total: string }>(sql`
    SELECT coalesce(sum(balance), 0)::text AS total FROM ${sql.id(schema, 'account')}
    WHERE account >= ${prefix} AND account < 'held;'`)
  return BigInt(row?.total ?? 0)
}
