import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Booking } from './ledger-entry.ts'

/**
 * The sums that were charged to the budgets of keys and authorizations, by day in UTC: a sale names the budget that it
 * was made under (`budget`) and the day that it counts on (`budget_day`).
 */
export function buildSpendingTable(schema: string): SqlStatement {
  return sql`CREATE TABLE ${sql.id(schema, 'spending')} (
    budget text NOT NULL, day text NOT NULL, amount numeric NOT NULL, CONSTRAINT spending_pkey PRIMARY KEY (budget, day))`
}

/** Adds those of the sales that name a budget. */
export async function writeSpending(
  tx: Queryable,
  { schema, bookings }: { readonly schema: string; readonly bookings: readonly Booking[] },
): Promise<void> {
  const spent = bookings.filter(({ body }) => body.budget !== undefined)
  if (spent.length === 0) return
  const table = sql.id(schema, 'spending')
  await tx.execute(sql`
    INSERT INTO ${table} AS known (budget, day, amount)
    SELECT budget, day, sum(amount) FROM unnest(
      ${spent.map(({ body }) => String(body.budget))}::text[], ${spent.map(({ body }) => String(body.budget_day))}::text[],
      ${spent.map(({ body }) => String(body.amount))}::numeric[]) AS fresh (budget, day, amount)
    GROUP BY budget, day ORDER BY budget, day
    ON CONFLICT (budget, day) DO UPDATE SET amount = known.amount + excluded.amount`)
}

/** Movements of an account that are summed at most, the newest ones. */
const tradesMax = 10_000

/** The trades of an account. */
export type Trades = {
  /** Atomic units. */
  readonly sum: bigint
  /** The time of the oldest of those that are summed, in milliseconds since 1970; undefined where all are. */
  readonly sinceMs: number | undefined
}

/**
 * Sums what an account was charged for sales, and what it got for its own ones, each without what was refunded: who spends
 * what it earns trades both. Where there are many, the newest ones are summed.
 */
export async function readTrades(
  database: Queryable,
  schema: string,
  account: string,
): Promise<Trades> {
  const [row] = await database.query<{ sum: string; since: bigint | null }>(sql`
    SELECT (greatest(coalesce(sum(amount) FILTER (WHERE is_own), 0), 0)
        + greatest(coalesce(-sum(amount) FILTER (WHERE NOT is_own), 0), 0))::text AS sum,
      CASE WHEN count(*) = ${tradesMax}::int8 THEN min(time_ms) END AS since
    FROM (
      SELECT amount, time_ms, (kind = 'sale') = (amount > 0) AS is_own FROM ${sql.id(schema, 'posting')}
      WHERE account = ${account} AND kind IN ('sale', 'refund') ORDER BY leaf DESC, line DESC LIMIT ${tradesMax}) AS trade`)
  return {
    sum: BigInt(row?.sum ?? 0),
    sinceMs: row?.since == null ? undefined : Number(row.since),
  }
}

/** Finds the time of the first movement of an account, in milliseconds since 1970. */
export async function findFirstMovement(
  database: Queryable,
  schema: string,
  account: string,
): Promise<number | undefined> {
  const [row] = await database.query<{ at: bigint }>(sql`
    SELECT time_ms AS at FROM ${sql.id(schema, 'posting')} WHERE account = ${account} ORDER BY leaf, line LIMIT 1`)
  return row && Number(row.at)
}

/** Sums what was charged to each of these budgets; those without a charge are not there. */
export async function sumSpending(
  database: Queryable,
  schema: string,
  budgets: readonly string[],
): Promise<Map<string, bigint>> {
  const rows = await database.query<{ budget: string; amount: string }>(sql`
    SELECT budget, sum(amount)::text AS amount FROM ${sql.id(schema, 'spending')}
    WHERE budget = ANY(${budgets}::text[]) GROUP BY budget`)
  return new Map(rows.map(({ budget, amount }) => [budget, BigInt(amount)]))
}
