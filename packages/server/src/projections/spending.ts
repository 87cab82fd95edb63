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

/** Sums what an account was charged for sales, or got for its own ones, without what was refunded, in atomic units. */
export async function sumTrades(
  database: Queryable,
  schema: string,
  account: string,
): Promise<bigint> {
  const [row] = await database.query<{ sum: string }>(sql`
    SELECT abs(coalesce(sum(amount), 0))::text AS sum FROM (
      SELECT amount FROM ${sql.id(schema, 'posting')}
      WHERE account = ${account} AND kind IN ('sale', 'refund') ORDER BY leaf DESC, line DESC LIMIT ${tradesMax}) AS trade`)
  return BigInt(row?.sum ?? 0)
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
