import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { ClaimState } from './claims/payment-states.ts'
import type { TransferState } from './transfers/transfer-store.ts'

type TransactionKind =
  | 'payment'
  | 'deposit'
  | 'withdrawal'
  | 'payout'
  | 'refund'
  | 'channel_deposit'
  | 'channel_refund'
  | 'channel_claim'

/** Money that came in by a payment, went out by a transfer of ours, went back to a buyer's balance, or moved in a channel. */
export type Transaction = {
  readonly id: string
  readonly kind: TransactionKind
  /** An account of the ledger; of a payment, the application that it was made to; `system` of a payer's deposit. */
  readonly owner: string
  readonly operation: string | null
  readonly amount: string
  readonly network: string
  readonly sender: string | null
  readonly recipient: string | null
  readonly state: ClaimState | TransferState | 'reversed'
  /** There where its chain does not have its money any more: what the operator lost of it. */
  readonly lost: string | null
  readonly reason: string | null
  readonly transaction: string | null
  readonly created_at_ms: bigint
}

/** A place in a list of transactions by time. */
export type TransactionPlace = { readonly at: bigint; readonly id: string }

const claims = sql`SELECT id, CASE WHEN operation = 'deposit' THEN 'deposit' ELSE 'payment' END AS kind, 
  CASE WHEN operation = 'deposit' AND app <> 'system' THEN 'app:' || app ELSE app END AS owner, operation,
  (CASE WHEN identity LIKE 'balance/%' OR identity LIKE '%/channel:%' THEN cap ELSE amount END)::text AS amount, split_part(identity, '/', 1) AS network, split_part(identity, '/', 3) AS sender,
  NULL::text AS recipient, state, reason, settled_by AS transaction, created_at_ms,
  (SELECT lost::text FROM system.reversal AS taken WHERE taken.payment_id = claim.id) AS lost FROM operations.claim AS claim`

const transfers = sql`SELECT id, kind, account AS owner, NULL::text AS operation, amount::text AS amount, network,
  NULL::text AS sender, recipient, state, reason, transaction, created_at_ms, NULL::text AS lost FROM operations.outgoing_transfer`

const refunds = sql`SELECT id, 'refund' AS kind, 'app:' || app AS owner, NULL::text AS operation, amount::text AS amount, network,
  NULL::text AS sender, buyer AS recipient, 'paid' AS state, NULL::text AS reason, NULL::text AS transaction, time_ms AS created_at_ms,
  NULL::text AS lost FROM system.refund`

const channelMoves = sql`SELECT substr(kind, 9) || '_' || leaf AS id, kind, 'channel:' || channel AS owner, NULL::text AS operation,
  abs(amount)::text AS amount, network, CASE kind WHEN 'channel_deposit' THEN payer ELSE 'channel:' || channel END AS sender,
  CASE kind WHEN 'channel_deposit' THEN 'channel:' || channel WHEN 'channel_refund' THEN payer END AS recipient,
  CASE WHEN amount < 0 THEN 'reversed' ELSE 'paid' END AS state,
  CASE WHEN amount < 0 THEN 'a reorganisation took a claim back' END AS reason,
  transaction, time_ms AS created_at_ms, NULL::text AS lost FROM system.channel_move`

/** Reads the kind and the leaf of a channel's move from its id, such as `claim_93`. */
function parseMoveId(id: string): { readonly kind: string; readonly leaf: string } | undefined {
  const [, kind, leaf] = /^(deposit|refund|claim)_(\d{1,18})$/.exec(id) ?? []
  return kind === undefined || leaf === undefined ? undefined : { kind: `channel_${kind}`, leaf }
}

/** Finds the payment, transfer or refund of this id. */
export async function findTransaction(
  database: Queryable,
  id: string,
): Promise<Transaction | undefined> {
  const move = parseMoveId(id)
  const [row] = await database.query<Transaction>(
    sql`(${claims} WHERE id = ${id}) UNION ALL (${transfers} WHERE id = ${id}) UNION ALL (${refunds} WHERE id = ${id})
      UNION ALL (${channelMoves} WHERE leaf = ${move?.leaf ?? null}::int8 AND kind = ${move?.kind ?? null}::text) LIMIT 1`,
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
  const { app, limit } = page
  // Each part is cut by its own index, so that the page costs as much in the first year as in the tenth.
  const cut = makeCut(page)
  return database.query<Transaction>(sql`
    (${claims} WHERE app = ${app} ${cut('created_at_ms')})
    UNION ALL (${transfers} WHERE account = ${`app:${app}`} ${cut('created_at_ms')})
    UNION ALL (${refunds} WHERE app = ${app} ${cut('time_ms')})
    ORDER BY created_at_ms DESC, id DESC LIMIT ${limit}`)
}

/**
 * Lists all of a payer, newest first, before the cursor: its payments and those by its channels, deposits, withdrawals,
 * what it got back of sales, and what moved in its channels.
 */
export function listPayerTransactions(
  database: Queryable,
  page: {
    /** Lower case. */
    readonly payer: string
    readonly before: TransactionPlace | undefined
    readonly limit: number
  },
): Promise<Transaction[]> {
  const { payer, limit } = page
  const cut = makeCut(page)
  return database.query<Transaction>(sql`
    WITH payer AS (
      SELECT ${payer}::text AS name UNION ALL
      SELECT 'channel:' || id FROM system.channel WHERE config::json ->> 'payer' = ${payer})
    (SELECT one.* FROM payer CROSS JOIN LATERAL (
      ${claims} WHERE split_part(identity, '/', 3) = payer.name ${cut('created_at_ms')}) AS one)
    UNION ALL (SELECT one.* FROM payer CROSS JOIN LATERAL (
      ${refunds} WHERE buyer = payer.name ${cut('time_ms')}) AS one)
    UNION ALL (${transfers} WHERE account = ${`wallet:${payer}`} ${cut('created_at_ms')})
    UNION ALL (${channelMoves} WHERE payer = ${payer} ${cutMoves(page)})
    ORDER BY created_at_ms DESC, id DESC LIMIT ${limit}`)
}

type Cut = { readonly before: TransactionPlace | undefined; readonly limit: number }

/** Makes what cuts a part of the list by the column of its time, and its id. */
function makeCut({ before, limit }: Cut): (column: string) => SqlStatement {
  return (column) => {
    const time = sql.id(column)
    const older =
      before === undefined
        ? sql.empty
        : sql`AND (${time}, id) < (${before.at}::int8, ${before.id}::text)`
    return sql`${older} ORDER BY ${time} DESC, id DESC LIMIT ${limit}`
  }
}

/** The same for the moves of channels, whose leaves stand in the order of their times; a cursor names another id than a leaf. */
function cutMoves({ before, limit }: Cut): SqlStatement {
  const id = sql`substr(kind, 9) || '_' || leaf`
  const older =
    before === undefined
      ? sql.empty
      : sql`AND time_ms <= ${before.at}::int8 AND (time_ms, ${id}) < (${before.at}::int8, ${before.id}::text)`
  return sql`${older} ORDER BY time_ms DESC, ${id} DESC LIMIT ${limit}`
}
