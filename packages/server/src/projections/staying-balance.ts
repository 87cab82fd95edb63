import { type SqlStatement, sql } from '../database/sql.ts'

const settings = sql.id('system', 'payout_settings')
const fees = sql.id('system', 'storage_fee')

/**
 * Prints the sum of what stays on an account whatever its owner asks for: of an application's balance, what its seller
 * locked and what it owes for storage. Whatever a seller disposes of leaves this much: payouts, withdrawals, refunds,
 * purchases by its keys, and the platform's share of payments to its own wallet. The fees for storage alone take it.
 */
export function printStaying(account: SqlStatement): SqlStatement {
  const app = sql`substr(${account}, ${'app:'.length + 1}::int4)`
  return sql`(CASE WHEN ${account} LIKE 'app:%' THEN
    coalesce((SELECT (one.body::jsonb ->> 'locked_balance')::numeric FROM ${settings} AS one WHERE one.app_id = ${app}), 0)
    + coalesce((SELECT fee.owed FROM ${fees} AS fee WHERE fee.app = ${app} ORDER BY fee.leaf DESC LIMIT 1), 0)
    ELSE 0 END)`
}
