import { assert } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'

/**
 * asked: its amount is taken from what its account has, and nothing is booked. debited: the ledger has its money on
 * the way out. sent: its transaction may have been signed. cancelled: it never will be. paid: the chain has moved it.
 * returned: no block will ever take it, and its money is on the account again.
 */
export type TransferState = 'asked' | 'debited' | 'sent' | 'cancelled' | 'paid' | 'returned'

export type TransferKind = 'withdrawal' | 'payout'

/** A transfer of ours out of a network's own address, exactly once. */
export type OutgoingTransfer = {
  readonly id: string
  readonly kind: TransferKind
  /** The account of the ledger that pays for it. */
  readonly account: string
  readonly network: string
  /** Lower case. */
  readonly recipient: string
  /** Atomic units. */
  readonly amount: bigint
  /** Atomic units that the account pays to the operator beside the amount, once it is paid. */
  readonly fee: bigint
  /** Its account had traded too little for it when it was asked for. */
  readonly unspent: boolean
  readonly state: TransferState
  /** Transactions of it that were reverted. */
  readonly tries: number
  /** Why it has not been made yet, or never will. */
  readonly reason: string | null
  /** There once it is paid. */
  readonly transaction: string | null
  /** Unix seconds after which no block takes it. */
  readonly valid_before: bigint
  readonly created_at_ms: bigint
}

/** The states that may follow each one; nothing leads out of an outcome. */
const nextStates: Readonly<Record<TransferState, readonly TransferState[]>> = {
  asked: ['debited'],
  // Past its end the chain takes it no more, though it was never sent. In a life that a backup does not know it was paid.
  debited: ['sent', 'cancelled', 'paid', 'returned'],
  sent: ['paid', 'returned'],
  cancelled: ['returned'],
  // A reorganisation took it back, and no block will ever take it again.
  paid: ['returned'],
  returned: [],
}

export const transfers = sql.id('operations', 'outgoing_transfer')
const columns = sql`id, kind, account, network, recipient, amount, fee, unspent, state, tries, reason,
  transaction, valid_before, created_at_ms`

/** The condition that a transfer has no outcome yet. */
export const isOpen: SqlStatement = sql`state NOT IN ('paid', 'returned')`

type Row = Omit<OutgoingTransfer, 'amount' | 'fee'> & {
  readonly amount: string
  readonly fee: string
}

const toTransfer = (row: Row): OutgoingTransfer => ({
  ...row,
  amount: BigInt(row.amount),
  fee: BigInt(row.fee),
})

export function buildTransferTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${transfers} (
      id text NOT NULL, kind text NOT NULL, account text NOT NULL, network text NOT NULL, recipient text NOT NULL,
      amount numeric NOT NULL, state text NOT NULL, tries int4 NOT NULL, reason text, transaction text,
      valid_before int8 NOT NULL, created_at_ms int8 NOT NULL,
      CONSTRAINT outgoing_transfer_pkey PRIMARY KEY (id),
      CONSTRAINT outgoing_transfer_state CHECK (
        state IN ('asked', 'debited', 'paid', 'returned') AND (state = 'paid') = (transaction IS NOT NULL)))`,
    sql`CREATE INDEX outgoing_transfer_open ON ${transfers} (created_at_ms, id) WHERE state IN ('asked', 'debited')`,
    sql`CREATE INDEX outgoing_transfer_account ON ${transfers} (account, created_at_ms, id)`,
  ]
}

/**
 * Transfers are marked before they are signed for the first time. A transfer that was under way before may have been
 * signed.
 */
export function buildSentState(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${transfers} DROP CONSTRAINT outgoing_transfer_state`,
    sql`UPDATE ${transfers} SET state = 'sent' WHERE state = 'debited'`,
    sql`ALTER TABLE ${transfers} ADD CONSTRAINT outgoing_transfer_state CHECK (
      state IN ('asked', 'debited', 'sent', 'cancelled', 'paid', 'returned') AND (state = 'paid') = (transaction IS NOT NULL))`,
    sql`DROP INDEX operations.outgoing_transfer_open`,
    sql`CREATE INDEX outgoing_transfer_open ON ${transfers} (created_at_ms, id) WHERE ${isOpen}`,
  ]
}

/** A withdrawal may have a fee, and those of accounts that trade nothing are counted. */
export function buildWithdrawalFees(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${transfers} ADD COLUMN fee numeric NOT NULL DEFAULT 0, ADD COLUMN unspent boolean NOT NULL DEFAULT false`,
    sql`CREATE INDEX outgoing_transfer_unspent ON ${transfers} (network, created_at_ms) WHERE unspent`,
  ]
}

/** The reason of a transfer that its owner took back before anything of it was sent. */
export const cancelledReason = 'cancelled'

/**
 * Lists the times of the last transfers of a kind from an account, or of those of accounts that trade nothing on a network
 * that may have cost gas, the newest first.
 */
export async function listWithdrawalTimes(
  tx: Queryable,
  of: { readonly account: string; readonly kind: TransferKind } | { readonly unspentOn: string },
  { sinceMs, limit }: { readonly sinceMs: number; readonly limit: number },
): Promise<number[]> {
  const whose =
    'account' in of
      ? sql`account = ${of.account} AND kind = ${of.kind}`
      : sql`network = ${of.unspentOn} AND unspent AND reason IS DISTINCT FROM ${cancelledReason}`
  const rows = await tx.query<{ at: bigint }>(sql`
    SELECT created_at_ms AS at FROM ${transfers}
    WHERE ${whose} AND created_at_ms > ${sinceMs}::int8 ORDER BY created_at_ms DESC LIMIT ${limit}`)
  return rows.map(({ at }) => Number(at))
}

/** Counts the transfers that an account has asked for since this time, in milliseconds since 1970; ever, by default. */
export async function countTransfers(
  database: Queryable,
  account: string,
  sinceMs = 0,
): Promise<bigint> {
  const [row] = await database.query<{ count: bigint }>(
    sql`SELECT count(*)::int8 AS count FROM ${transfers} WHERE account = ${account} AND created_at_ms >= ${sinceMs}::int8`,
  )
  return row?.count ?? 0n
}

/** False where there is one of this id. */
export async function insertTransfer(tx: Queryable, one: OutgoingTransfer): Promise<boolean> {
  const inserted = await tx.execute(sql`
    INSERT INTO ${transfers} (${columns}) VALUES (${one.id}, ${one.kind}, ${one.account}, ${one.network}, ${one.recipient},
      ${String(one.amount)}::numeric, ${String(one.fee)}::numeric, ${one.unspent}, ${one.state}, ${one.tries}, ${one.reason}, ${one.transaction},
      ${one.valid_before}::int8, ${one.created_at_ms}::int8)
    ON CONFLICT (id) DO NOTHING`)
  return inserted === 1
}

export async function findTransfer(
  database: Queryable,
  id: string,
): Promise<OutgoingTransfer | undefined> {
  const [row] = await database.query<Row>(sql`SELECT ${columns} FROM ${transfers} WHERE id = ${id}`)
  return row && toTransfer(row)
}

/** A place in a list of transfers by time. */
export type TransferCursor = { readonly at: bigint; readonly id: string }

/** Lists transfers without an outcome, oldest first, after the cursor. */
export async function listOpenTransfers(
  database: Queryable,
  page: { readonly after: TransferCursor; readonly limit: number },
): Promise<OutgoingTransfer[]> {
  const rows = await database.query<Row>(sql`
    SELECT ${columns} FROM ${transfers}
    WHERE ${isOpen} AND (created_at_ms, id) > (${page.after.at}::int8, ${page.after.id}::text)
    ORDER BY created_at_ms, id LIMIT ${page.limit}`)
  return rows.map(toTransfer)
}

/** Lists the transfers of an account, of one kind where it is given, newest first, before the cursor. */
export async function listTransfers(
  database: Queryable,
  page: {
    readonly account: string
    readonly kind?: TransferKind
    readonly before?: TransferCursor
    readonly limit: number
  },
): Promise<OutgoingTransfer[]> {
  const { account, kind, before, limit } = page
  const ofKind = kind === undefined ? sql`true` : sql`kind = ${kind}`
  const older =
    before === undefined
      ? sql`true`
      : sql`(created_at_ms, id) < (${before.at}::int8, ${before.id}::text)`
  const rows = await database.query<Row>(sql`
    SELECT ${columns} FROM ${transfers} WHERE account = ${account} AND ${ofKind} AND ${older}
    ORDER BY created_at_ms DESC, id DESC LIMIT ${limit}`)
  return rows.map(toTransfer)
}

/** Sums what is on its way out of an account, and what payouts have brought out of it. */
export async function sumTransfers(
  database: Queryable,
  account: string,
): Promise<{ readonly pending: bigint; readonly paid: bigint }> {
  const [row] = await database.query<{ pending: string; paid: string }>(sql`
    SELECT coalesce(sum(amount + fee) FILTER (WHERE ${isOpen}), 0)::text AS pending,
      coalesce(sum(amount) FILTER (WHERE state = 'paid' AND kind = 'payout'), 0)::text AS paid
    FROM ${transfers} WHERE account = ${account}`)
  return { pending: BigInt(row?.pending ?? 0), paid: BigInt(row?.paid ?? 0) }
}

/** Moves a transfer to its next state; false where somebody else was first. */
export async function updateTransfer(
  database: Queryable,
  { id, state }: Pick<OutgoingTransfer, 'id' | 'state'>,
  to: { readonly state: TransferState; readonly reason?: string; readonly transaction?: string },
): Promise<boolean> {
  assert(nextStates[state].includes(to.state), `no transfer goes from ${state} to ${to.state}`)
  const moved = await database.execute(sql`
    UPDATE ${transfers} SET state = ${to.state}, reason = ${to.reason ?? null}, transaction = ${to.transaction ?? null}
    WHERE id = ${id} AND state = ${state}`)
  return moved === 1
}

/** Notes why a transfer was not made by the attempt of this number; one that was reverted is signed anew. */
export async function noteAttempt(
  database: Queryable,
  { id, tries }: Pick<OutgoingTransfer, 'id' | 'tries'>,
  attempt: { readonly reason: string; readonly isOver: boolean },
): Promise<void> {
  await database.execute(sql`
    UPDATE ${transfers} SET reason = ${attempt.reason}, tries = ${attempt.isOver ? tries + 1 : tries}
    WHERE id = ${id} AND state IN ('debited', 'sent') AND tries = ${tries}`)
}
