import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { Budget } from '../../../model/spending-limits.ts'
import { printHeldAccount } from '../../../projections/held-payments.ts'

export const holds = sql.id('operations', 'account_hold')
const sales = sql.id('system', 'sale')
const reversals = sql.id('system', 'reversal')
const accounts = sql.id('system', 'account')
const watermark = sql.id('system', 'watermark')

/**
 * A hold keeps a part of an account's balance for one sale, named by the payment's id. It counts until the ledger's
 * tables have that sale, so charge and release are one commit; its row is deleted later, or when nothing was sold.
 */
export function buildHoldTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${holds} (
      id text NOT NULL, account text NOT NULL, amount numeric NOT NULL, CONSTRAINT account_hold_pkey PRIMARY KEY (id))`,
    sql`CREATE INDEX account_hold_account ON ${holds} (account)`,
  ]
}

/** A hold under a budget names it, so that what is spent under it is summed without a look at the claims. */
export function buildHoldBudgetColumns(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${holds} ADD COLUMN budget text, ADD COLUMN budget_day text`,
    sql`UPDATE ${holds} AS hold SET budget = claim.terms::jsonb -> 'budget' ->> 'id', budget_day = claim.terms::jsonb -> 'budget' ->> 'day'
      FROM operations.claim AS claim WHERE claim.id = hold.id`,
  ]
}

/**
 * A hold of a block is of all that its sales charged to one account, under one budget: it counts until the tables have
 * that block.
 */
export function buildHoldHeightColumn(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${holds} ADD COLUMN height int8`,
    sql`CREATE INDEX account_hold_height ON ${holds} (height) WHERE height IS NOT NULL`,
  ]
}

const reversalPrefix = 'reversal_'

/** Names the hold of what a chain does not have of a payment. */
export const formatReversalHold = (paymentId: string) => `${reversalPrefix}${paymentId}`

/**
 * Prints the condition that a hold counts. Each row is looked up by itself, whatever the planner takes the tables for.
 * The hold of a payment that its chain does not have counts while its account has the money: from the release of what
 * was held for the operator's decision, in whose entry it gets there, to the reversal, in whose entry it goes.
 */
export function printIsHeld(hold: SqlStatement): SqlStatement {
  const payment = printReversed(hold)
  return sql`CASE
    WHEN ${hold}.height IS NOT NULL
    THEN ${hold}.height > (SELECT reached.height FROM ${watermark} AS reached WHERE reached.id = 1)
    WHEN starts_with(${hold}.id, ${reversalPrefix})
    THEN (SELECT one.payment_id FROM ${reversals} AS one WHERE one.payment_id = ${payment}) IS NULL
      AND coalesce((SELECT one.balance FROM ${accounts} AS one
        WHERE one.account = ${printHeldAccount(sql`${hold}.account`, payment)}), 0) = 0
    ELSE (SELECT sale.payment_id FROM ${sales} AS sale WHERE sale.payment_id = ${hold}.id) IS NULL END`
}

/** Prints the payment that the hold of a reversal is about. */
const printReversed = (hold: SqlStatement) =>
  sql`substr(${hold}.id, ${reversalPrefix.length + 1}::int4)`

/**
 * Prints the sum that is held of an account, in atomic units. While a payment that its chain does not have is still held
 * for its purchase, that much counts once: the hold of its reversal takes over in the moment in which the other ends.
 */
export function printHeldSum(account: SqlStatement): SqlStatement {
  const hold = sql`hold`
  const own = printOwnHold(printReversed(hold), account)
  return sql`coalesce((SELECT sum(CASE WHEN starts_with(hold.id, ${reversalPrefix})
      THEN greatest(hold.amount - ${own}, 0) ELSE hold.amount END)
    FROM ${holds} AS hold WHERE hold.account = ${account} AND ${printIsHeld(hold)}), 0)`
}

/** Prints the amount that is held on an account for the sale of a payment, 0 where none is. */
function printOwnHold(payment: SqlStatement, account: SqlStatement): SqlStatement {
  return sql`coalesce((SELECT own.amount FROM ${holds} AS own
    WHERE own.id = ${payment} AND own.account = ${account} AND ${printIsHeld(sql`own`)}), 0)`
}

/** Reads the amount that is held on an account for the sale of a payment, in atomic units; 0 where none is. */
export async function readOwnHold(
  database: Queryable,
  { id, account }: Pick<Hold, 'id' | 'account'>,
): Promise<bigint> {
  const [row] = await database.query<{ amount: string }>(
    sql`SELECT (${printOwnHold(sql`${id}::text`, sql`${account}::text`)})::text AS amount`,
  )
  return BigInt(row?.amount ?? 0)
}

/**
 * Lists those of these payments whose money is on their accounts, and held there because their chain does not have it. A
 * purchase that is held anew must not be so: that would count as held of this money, and what it was held of be free.
 */
export async function listGone(
  database: Queryable,
  payments: readonly string[],
): Promise<ReadonlySet<string>> {
  const hold = sql`hold`
  const rows = await database.query<{ payment: string }>(sql`
    SELECT ${printReversed(hold)} AS payment FROM ${holds} AS hold
    WHERE hold.id = ANY(${payments.map(formatReversalHold)}::text[]) AND hold.amount > 0 AND ${printIsHeld(hold)}`)
  return new Set(rows.map(({ payment }) => payment))
}

/** The charges of a block on one account, under one budget. */
export type BlockHold = {
  readonly account: string
  /** Atomic units. */
  readonly amount: bigint
  readonly budget: Budget | undefined
}

/** Prints, as a part of a WITH, what writes the holds of a block. */
export function printBlockHolds(height: number, rows: readonly BlockHold[]): SqlStatement {
  return sql`holds AS (INSERT INTO ${holds} (id, account, amount, budget, budget_day, height)
    SELECT concat('block_', ${height}::int8, '_', at), account, amount, budget, budget_day, ${height}::int8 FROM unnest(
      ${rows.map(({ account }) => account)}::text[], ${rows.map(({ amount }) => String(amount))}::numeric[],
      ${rows.map(({ budget }) => budget?.id ?? null)}::text[], ${rows.map(({ budget }) => budget?.day ?? null)}::text[])
      WITH ORDINALITY AS one (account, amount, budget, budget_day, at))`
}

/** Deletes the holds of blocks that the tables have. */
export async function dropBlockHolds(database: Queryable): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${holds} WHERE height <= (SELECT reached.height FROM ${watermark} AS reached WHERE reached.id = 1)`)
}

/** Prints the statement that makes a hold of each row of `from`, which has the columns of a hold. */
export function printHoldInsertion(from: SqlStatement): SqlStatement {
  return sql`INSERT INTO ${holds} (id, account, amount, budget, budget_day)
    SELECT id, account, amount, budget, budget_day FROM ${from} ON CONFLICT (id) DO NOTHING`
}

type Hold = {
  readonly id: string
  readonly account: string
  /** Atomic units. */
  readonly amount: bigint
}

/** Makes a hold that has no claim: of a refund, or of a total that is taken over. Returns false where it is there. */
export async function insertHold(tx: Queryable, { id, account, amount }: Hold): Promise<boolean> {
  const row = sql`(SELECT ${id}::text AS id, ${account}::text AS account, ${String(amount)}::numeric AS amount,
    NULL::text AS budget, NULL::text AS budget_day) AS fresh`
  return (await tx.execute(printHoldInsertion(row))) === 1
}

/** Finds the amount that a hold keeps, in atomic units. */
export async function findHold(database: Queryable, id: string): Promise<bigint | undefined> {
  const [row] = await database.query<{ amount: string }>(
    sql`SELECT amount::text AS amount FROM ${holds} WHERE id = ${id}`,
  )
  return row && BigInt(row.amount)
}

export type ChannelHold = { readonly id: string; readonly account: string }

/** Lists the holds of channels after this id which have no claim: of refunds and takeovers; a hundred at most. */
export function listChannelHolds(database: Queryable, after: string): Promise<ChannelHold[]> {
  return database.query(
    sql`SELECT id, account FROM ${holds} WHERE id ~ '^(channel|takeover)_' AND id > ${after} ORDER BY id LIMIT 100`,
  )
}

/** Prints the query of the ids of channels of which a refund is under way. */
export function printRefunding(): SqlStatement {
  return sql`SELECT substr(account, ${'channel:'.length + 1}::int4) FROM ${holds} WHERE id ~ '^channel_'`
}

export async function deleteHold(database: Queryable, id: string): Promise<void> {
  await database.execute(sql`DELETE FROM ${holds} WHERE id = ${id}`)
}

/**
 * Drops the platform's share that was held on sellers' accounts, of direct payments that came, never came, or
 * became a balance.
 */
export async function dropFees(database: Queryable): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${holds} AS hold USING operations.claim AS claim
    WHERE claim.id = hold.id AND (hold.account LIKE 'app:%' AND claim.state IN ('delivered', 'void')
      OR hold.account = 'app:' || claim.app AND claim.state = 'deposited' AND claim.identity NOT LIKE 'balance/%')`)
}

/** Prints the statement that ends the holds of the rows of `from`, which has the column id. */
export function printHoldDeletion(from: SqlStatement): SqlStatement {
  return sql`DELETE FROM ${holds} WHERE id IN (SELECT id FROM ${from})`
}
