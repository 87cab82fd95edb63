import type { Database, Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import { isOpen } from '../transfers/transfer-store.ts'

const locks = sql.id('operations', 'account_lock')
const transfers = sql.id('operations', 'outgoing_transfer')
const holds = sql.id('operations', 'account_hold')
const accounts = sql.id('system', 'account')
const booked = sql.id('system', 'transfer')
const sales = sql.id('system', 'sale')
const channels = sql.id('system', 'channel')

export function buildAccountTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${locks} (account text NOT NULL, CONSTRAINT account_lock_pkey PRIMARY KEY (account))`,
  ]
}

/**
 * Runs the work while nobody else, in any process, can take anything from this account of the ledger. `available` is
 * what the work may take, by a row of its own that it writes in this transaction (a hold, a transfer): a row counts as
 * taken until the ledger's tables have its entry, so nothing is ever promised twice.
 */
export function takeFromAccount<T>(
  database: Database,
  account: string,
  work: (tx: Queryable, available: bigint) => Promise<T>,
): Promise<T> {
  return database.transaction(async (tx) => {
    // None waits for the one before it: the three travel together.
    const [, available] = await Promise.all([lockName(tx, account), readAvailable(tx, account)])
    return work(tx, available)
  })
}

/** Locks a name until the end of the transaction, as an account is. */
export async function lockName(tx: Queryable, name: string): Promise<void> {
  await Promise.all([
    tx.execute(
      sql`INSERT INTO ${locks} (account) VALUES (${name}) ON CONFLICT (account) DO NOTHING`,
    ),
    tx.query(sql`SELECT account FROM ${locks} WHERE account = ${name} FOR UPDATE`),
  ])
}

/**
 * Reads what an account has beside all that is taken from it, and what of it is on its way, to others or out: one
 * statement, so one snapshot. The deposit that a hold is of may be yet to come, so less than nothing is nothing.
 */
export async function readFunds(
  database: Queryable,
  account: string,
): Promise<{ readonly available: bigint; readonly pending: bigint }> {
  const [row] = await database.query<{ available: string; pending: string }>(sql`
    SELECT greatest(${sumAvailable(account)}, 0)::text AS available, (coalesce((SELECT sum(amount) FROM ${transfers}
      WHERE account = ${account} AND ${isOpen}), 0) + ${sumHeld(account)})::text AS pending`)
  return { available: BigInt(row?.available ?? 0), pending: BigInt(row?.pending ?? 0) }
}

/** Reads what an account has beside all that is taken from it: one statement, so one snapshot. */
export async function readAvailable(database: Queryable, account: string): Promise<bigint> {
  const [row] = await database.query<{ available: string }>(
    sql`SELECT (${sumAvailable(account)})::text AS available`,
  )
  return BigInt(row?.available ?? 0)
}

function sumAvailable(account: string): SqlStatement {
  // A channel has what its payer has deposited on the chain and cannot take back unseen.
  if (account.startsWith('channel:'))
    return sql`coalesce((SELECT balance - withdrawing - charged FROM ${channels}
      WHERE id = ${account.slice('channel:'.length)}), 0) - ${sumHeld(account)}`
  return sql`coalesce((SELECT balance FROM ${accounts} WHERE account = ${account}), 0)
    - coalesce((SELECT sum(one.amount) FROM ${transfers} AS one
      WHERE one.account = ${account} AND one.state = 'asked'
        AND NOT EXISTS (SELECT 1 FROM ${booked} AS entry WHERE entry.id = one.id)), 0)
    - ${sumHeld(account)}`
}

function sumHeld(account: string): SqlStatement {
  return sql`coalesce((SELECT sum(hold.amount) FROM ${holds} AS hold
      WHERE hold.account = ${account}
        AND NOT EXISTS (SELECT 1 FROM ${sales} AS sale WHERE sale.payment_id = hold.id)), 0)`
}
