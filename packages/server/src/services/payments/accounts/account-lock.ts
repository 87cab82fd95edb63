import type { Database, Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import { printStaying } from '../../../projections/staying-balance.ts'
import { isOpen, transfers } from '../transfers/transfer-store.ts'
import { printHeldSum } from './holds.ts'

const locks = sql.id('operations', 'account_lock')
const accounts = sql.id('system', 'account')
const booked = sql.id('system', 'transfer')
const channels = sql.id('system', 'channel')

export function buildAccountTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${locks} (account text NOT NULL, CONSTRAINT account_lock_pkey PRIMARY KEY (account))`,
  ]
}

/** Each taking from an account counts on, so that who knows what it has finds at the commit whether that is still so. */
export function buildLockVersionColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${locks} ADD COLUMN version int8 NOT NULL DEFAULT 0`]
}

/**
 * Runs the work while nobody else, in any process, can take anything from this account of the ledger. `available` is
 * what the work may take, by a row of its own that it writes in this transaction (a hold, a transfer): a row counts as
 * taken until the ledger's tables have its entry, so nothing is ever promised twice. Purchases take by `HoldDesk`, many
 * in one transaction.
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

/** Counts a taking, after less may be taken from an account: whoever remembers what it had reads it anew. */
export async function noteTaking(database: Database, account: string): Promise<void> {
  await database.transaction((tx) => lockName(tx, account))
}

/** Locks a name until the end of the transaction, as an account is. */
export async function lockName(tx: Queryable, name: string): Promise<void> {
  await lockAccounts(tx, [name], { waits: true })
}

/**
 * Locks these accounts until the end of the transaction, in one order for all. Returns those that are locked: where it
 * does not wait, not those that somebody else has, nor those that nobody ever had. The row of such a one is made by who
 * waits: to make it takes a wait for who makes it at this moment.
 */
export async function lockAccounts(
  tx: Queryable,
  names: readonly string[],
  { waits }: { readonly waits: boolean },
): Promise<ReadonlySet<string>> {
  const sorted = [...new Set(names)].sort()
  const [, rows] = await Promise.all([
    waits
      ? tx.execute(
          sql`INSERT INTO ${locks} (account) SELECT unnest(${sorted}::text[]) ON CONFLICT (account) DO NOTHING`,
        )
      : undefined,
    tx.query<{ account: string }>(sql`
      WITH locked AS MATERIALIZED (
        SELECT account FROM ${locks} WHERE account = ANY(${sorted}::text[]) ORDER BY account
        FOR UPDATE ${waits ? sql.empty : sql`SKIP LOCKED`})
      UPDATE ${locks} AS one SET version = one.version + 1 FROM locked WHERE one.account = locked.account
      RETURNING one.account`),
  ])
  return new Set(rows.map(({ account }) => account))
}

/** Reads how often something was taken from each account, as far as it ever was. */
export async function readVersions(
  database: Queryable,
  names: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await database.query<{ account: string; version: bigint }>(
    sql`SELECT account, version FROM ${locks} WHERE account = ANY(${[...new Set(names)]}::text[])`,
  )
  return new Map(rows.map(({ account, version }) => [account, version]))
}

/** The same of those accounts that nobody has locked at this moment. */
export async function readFreeVersions(
  database: Queryable,
  names: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await database.query<{ account: string; version: bigint }>(
    sql`SELECT account, version FROM ${locks} WHERE account = ANY(${names}::text[]) ORDER BY account FOR UPDATE SKIP LOCKED`,
  )
  return new Map(rows.map(({ account, version }) => [account, version]))
}

/**
 * Prints, as parts of a WITH, what counts a taking from each of these accounts. One that was taken from since its
 * version was read, or that somebody has locked, gets no number, which its column refuses: nobody is waited for.
 */
export function printVersionSteps(versions: ReadonlyMap<string, bigint>): SqlStatement[] {
  const names = [...versions.keys()].sort()
  const known = names.map((name) => String(versions.get(name)))
  return [
    sql`known AS (SELECT account, version FROM unnest(${names}::text[], ${known}::int8[]) AS one (account, version))`,
    sql`free AS MATERIALIZED (SELECT account, version FROM ${locks} WHERE account = ANY(${names}::text[]) ORDER BY account
      FOR UPDATE SKIP LOCKED)`,
    sql`stepped AS (INSERT INTO ${locks} (account, version)
      SELECT known.account, CASE WHEN free.version = known.version THEN known.version + 1 END
      FROM known LEFT JOIN free ON free.account = known.account
      ON CONFLICT (account) DO UPDATE SET version = excluded.version)`,
  ]
}

/**
 * Reads what an account has beside all that is taken from it, and what of it is on its way, to others or out: one
 * statement, so one snapshot. The deposit that a hold is of may be yet to come, so less than nothing is nothing.
 */
export async function readFunds(
  database: Queryable,
  account: string,
): Promise<{ readonly available: bigint; readonly pending: bigint }> {
  const name = sql`${account}::text`
  const [row] = await database.query<{ available: string; pending: string }>(sql`
    SELECT greatest(${sumAvailable(name)}, 0)::text AS available, (coalesce((SELECT sum(amount + fee) FROM ${transfers}
      WHERE account = ${name} AND ${isOpen}), 0) + ${printHeldSum(name)})::text AS pending`)
  return { available: BigInt(row?.available ?? 0), pending: BigInt(row?.pending ?? 0) }
}

/**
 * Reads what may be taken from an account: its balance less all that is taken from it, and less what stays on it. One
 * statement, so one snapshot. Less than nothing where what stays, or what is held of a deposit that is yet to come, is
 * more than there is.
 */
export async function readAvailable(database: Queryable, account: string): Promise<bigint> {
  return (await readAllAvailable(database, [account])).get(account) ?? 0n
}

/** The same of several accounts. */
export async function readAllAvailable(
  database: Queryable,
  names: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await database.query<{ account: string; available: string }>(sql`
    SELECT asked.account, (${sumAvailable(sql`asked.account`)})::text AS available
    FROM unnest(${[...new Set(names)]}::text[]) AS asked (account)`)
  return new Map(rows.map(({ account, available }) => [account, BigInt(available)]))
}

/** Reads an account's balance less all that is taken from it; what stays on it is in this. */
export async function readUntaken(database: Queryable, account: string): Promise<bigint> {
  const [row] = await database.query<{ untaken: string }>(
    sql`SELECT (${sumUntaken(sql`${account}::text`)})::text AS untaken`,
  )
  return BigInt(row?.untaken ?? 0)
}

function sumAvailable(account: SqlStatement): SqlStatement {
  return sql`(${sumUntaken(account)} - ${printStaying(account)})`
}

/** A channel has what its payer has deposited on the chain and cannot take back unseen. */
function sumUntaken(account: SqlStatement): SqlStatement {
  return sql`(CASE WHEN ${account} LIKE 'channel:%'
    THEN coalesce((SELECT known.balance - known.withdrawing - known.charged FROM ${channels} AS known
      WHERE known.id = substr(${account}, ${'channel:'.length + 1}::int4)), 0)
    ELSE coalesce((SELECT known.balance FROM ${accounts} AS known WHERE known.account = ${account}), 0)
      - coalesce((SELECT sum(one.amount + one.fee) FROM ${transfers} AS one
        WHERE one.account = ${account} AND one.state = 'asked'
          AND NOT EXISTS (SELECT 1 FROM ${booked} AS entry WHERE entry.id = one.id)), 0)
    END - ${printHeldSum(account)})`
}
