import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { ClaimState } from './claims/payment-states.ts'
import type { TransferState } from './transfers/transfer-store.ts'

/** Money that came in by a payment, went out by a transfer of ours, or went back to a buyer's balance. */
export type Transaction = {
  readonly id: string
  readonly kind: 'payment' | 'deposit' | 'withdrawal' | 'payout' | 'refund'
  /** An account of the ledger; of a payment, the application that it was made to; `system` of a payer's deposit. */
  readonly owner: string
  readonly operation: string | null
  readonly amount: string
  readonly network: string
  readonly sender: string | null
  readonly recipient: string | null
  readonly state: ClaimState | TransferState
  /** There where its chain does not have its money any more: what the operator lost of it. */
  readonly lost: string | null
  readonly reason: string | null
  readonly transaction: string | null
  readonly created_at_ms: bigint
}

/** A place in a list of transactions by time. */
export type TransactionPlace = { readonly at: bigint; readonly id: string }

const claims = sql`(SELECT id, CASE WHEN operation = 'deposit' THEN 'deposit' ELSE 'payment' END AS kind, 
  CASE WHEN operation = 'deposit' AND app <> 'system' THEN 'app:' || app ELSE app END AS owner, operation,
  (CASE WHEN identity LIKE 'balance/%' OR identity LIKE '%/channel:%' THEN cap ELSE amount END)::text AS amount, split_part(identity, '/', 1) AS network, split_part(identity, '/', 3) AS sender,
  NULL::text AS recipient, state, reason, settled_by AS transaction, created_at_ms,
  (SELECT lost::text FROM system.reversal AS taken WHERE taken.payment_id = claim.id) AS lost FROM operations.claim AS claim`

const transfers = sql`(SELECT id, kind, account AS owner, NULL::text AS operation, amount::text AS amount, network,
  NULL::text AS sender, recipient, state, reason, transaction, created_at_ms, NULL::text AS lost FROM operations.outgoing_transfer`

const refunds = sql`(SELECT id, 'refund' AS kind, 'app:' || app AS owner, NULL::text AS operation, amount::text AS amount, network,
  NULL::text AS sender, buyer AS recipient, 'paid' AS state, NULL::text AS reason, NULL::text AS transaction, time_ms AS created_at_ms,
  NULL::text AS lost FROM system.refund`

/** Finds the payment, transfer or refund of this id. */
export async function findTransaction(
  database: Queryable,
  id: string,
): Promise<Transaction | undefined> {
  const [row] = await database.query<Transaction>(
    sql`${claims} WHERE id = ${id}) UNION ALL ${transfers} WHERE id = ${id}) UNION ALL ${refunds} WHERE id = ${id}) LIMIT 1`,
  )
  return row
}

/** Lists the payments to an application, and the transfers from its account, newest first, before the cursor. */
export function listTransactions(
  database: Queryable,
  page: {
    readonly app: string
    readonly before: TransactionPlace | undefined
    readonly limit: number
  },
): Promise<Transaction[]> {
  const { app, before, limit } = page
  const older =
    before === undefined
      ? sql.empty
      : sql`AND (created_at_ms, id) < (${before.at}::int8, ${before.id}::text)`
  // Each part is cut by its own index, so that the page costs as much in the first year as in the tenth.
  const olderRefund =
    before === undefined
      ? sql.empty
      : sql`AND (time_ms, id) < (${before.at}::int8, ${before.id}::text)`
  const cut = (): SqlStatement => sql`${older} ORDER BY created_at_ms DESC, id DESC LIMIT ${limit})`
  return database.query<Transaction>(sql`
    ${claims} WHERE app = ${app} ${cut()}
    UNION ALL ${transfers} WHERE account = ${`app:${app}`} ${cut()}
    UNION ALL ${refunds} WHERE app = ${app} ${olderRefund} ORDER BY time_ms DESC, id DESC LIMIT ${limit})
    ORDER BY created_at_ms DESC, id DESC LIMIT ${limit}`)
}
