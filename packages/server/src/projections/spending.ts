import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Booking } from './ledger-body.ts'

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

/** Returns true once an account was charged for a sale. */
export async function hasBought(
  database: Queryable,
  schema: string,
  account: string,
): Promise<boolean> {
  const [row] = await database.query<{ is_so: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM ${sql.id(schema, 'posting')}
      WHERE account = ${account} AND kind = 'sale' AND amount < 0) AS is_so`)
  return row?.is_so === true
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
