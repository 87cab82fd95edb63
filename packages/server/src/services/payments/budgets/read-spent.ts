import { dayMs } from '../../../base/durations.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { otherThanSales } from '../../../projections/ledger.ts'
import type { Tenants } from '../../applications/tenants.ts'
import { holds, printHeldSum, printIsHeld } from '../accounts/holds.ts'
import { formatSpendingDay, type KeySpending } from './check-spending.ts'

const spending = sql.id('system', 'spending')

/**
 * Reads what was charged to the budgets of these payments, ever and on their days, with what is held for them: one
 * statement, so one snapshot. The sums are by budget, and by budget and day.
 */
export async function readSpent(
  tx: Queryable,
  payments: readonly KeySpending[],
): Promise<ReadonlyMap<string, bigint>> {
  if (payments.length === 0) return new Map()
  const asked = [...new Map(payments.map((one) => [formatSpendingDay(one), one])).values()]
  const rows = await tx.query<{ budget: string; day: string; spent: string; today: string }>(sql`
    SELECT asked.budget, asked.day, coalesce(sum(used.amount), 0)::text AS spent,
      coalesce(sum(used.amount) FILTER (WHERE used.day = asked.day), 0)::text AS today
    FROM unnest(${asked.map(({ paying }) => paying.budget)}::text[], ${asked.map(({ paying }) => paying.account)}::text[],
      ${asked.map(({ day }) => day)}::text[]) AS asked (budget, account, day)
    LEFT JOIN LATERAL (
      SELECT day, amount FROM ${spending} AS booked WHERE booked.budget = asked.budget
      UNION ALL SELECT hold.budget_day, hold.amount FROM ${holds} AS hold
        WHERE hold.account = asked.account AND hold.budget = asked.budget AND ${printIsHeld(sql`hold`)}) AS used ON true
    GROUP BY asked.budget, asked.day`)
  return new Map(
    rows.flatMap(({ budget, day, spent, today }) => [
      [budget, BigInt(spent)],
      [`${budget} ${day}`, BigInt(today)],
    ]),
  )
}

/** Reads what the keys of the applications that pay may spend of their balances. */
export async function readPrepaid(
  tx: Queryable,
  tenants: Tenants,
  payments: readonly KeySpending[],
): Promise<ReadonlyMap<string, bigint>> {
  const accounts = new Set(payments.map(({ paying }) => paying.account))
  const paid = [...accounts].filter((account) => account.startsWith('app:'))
  return new Map(
    await Promise.all(
      paid.map(async (account) => [account, await readPrepaidOf(tx, tenants, account)] as const),
    ),
  )
}

/**
 * Reads what keys may spend of an application's balance: what was paid in, without what was spent. Its earnings are
 * not for them, or a stolen key with Admin could buy its way around the rules of payouts. A payout, a withdrawal, a
 * refund of its own sale, the share of one that was paid to its own wallet, or a fee for storage takes earnings first, so
 * no more than it left behind was paid in before it. Money that a chain took back was never paid in.
 */
async function readPrepaidOf(tx: Queryable, tenants: Tenants, account: string): Promise<bigint> {
  const { keys, authorizations } = tenants.system
  const app = account.slice('app:'.length)
  const budgets = [...keys.listBudgets(app), ...authorizations.listBudgets(app)]
  // A budget's sums are by day, and a sale may be booked on the day after its own: the day before such a transfer
  // counts as after it, which leaves too little rather than too much.
  const [row] = await tx.query<{ prepaid: string }>(sql`
    WITH moved AS (
      SELECT leaf, amount, NULL::numeric AS rest, time_ms FROM system.posting
      WHERE account = ${account} AND (kind IN ('deposit', 'release', 'refund') AND amount > 0 OR kind = 'reversal' AND amount < 0)
        AND ${otherThanSales}
      UNION ALL
      SELECT one.leaf, 0, posting.balance_after, posting.time_ms
      FROM system.transfer AS one JOIN system.posting AS posting ON posting.leaf = one.leaf AND posting.account = one.account
      WHERE one.account = ${account} AND one.outcome IS DISTINCT FROM 'transfer_returned'
      UNION ALL
      SELECT leaf, 0, balance_after, time_ms FROM system.posting
      WHERE account = ${account} AND kind IN ('refund', 'direct', 'storage_fee') AND amount < 0 AND ${otherThanSales}),
    summed AS (
      SELECT rest, sum(amount) OVER (ORDER BY leaf DESC) AS later,
        to_char(to_timestamp((time_ms - ${dayMs}::int8) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day FROM moved),
    bound AS (
      SELECT '' AS day, coalesce(sum(amount), 0) AS amount FROM moved
      UNION ALL SELECT day, min(rest + later) FROM summed WHERE rest IS NOT NULL GROUP BY day),
    spent AS MATERIALIZED (
      SELECT day, sum(amount) AS amount FROM ${spending} WHERE budget = ANY(${[...new Set(budgets)]}::text[]) GROUP BY day)
    SELECT (min(bound.amount - coalesce((SELECT sum(spent.amount) FROM spent WHERE spent.day >= bound.day), 0))
      - ${printHeldSum(sql`${account}::text`)})::text AS prepaid
    FROM bound`)
  return BigInt(row?.prepaid ?? 0)
}
