import { assert } from '../base/assert.ts'
import { encodeTextArray } from '../database/binary-array.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { isChannelEntry, writeChannelBooks } from './channel-books.ts'
import { buildChannelMoveTable, channelMoveTableName, writeChannelMoves } from './channel-moves.ts'
import { buildChannelTables, type ChannelRow, channelTableNames } from './channel-tables.ts'
import { filterCounted, isDeposit, isSale } from './count-entries-once.ts'
import type { Booking } from './ledger-entry.ts'
import {
  type BookedTransfer,
  buildTransferTable,
  findBookedTransfer,
  writeTransfers,
} from './ledger-transfers.ts'
import { buildMeterTables, meterTableNames, writePasses, writeUses } from './metered-use.ts'
import type { EntryRun, Projection } from './projection.ts'
import { findChannel } from './read-channels.ts'
import { buildRefundTables, writeRefunds } from './refunds.ts'
import { buildReversalTable, writeReversals } from './reversals.ts'
import { buildSalesTables, salesTableNames, writeSold } from './sales.ts'
import { buildSpendingTable, sumSpending, writeSpending } from './spending.ts'
import { buildStorageFeeTables, writeStorageFees } from './storage-fees.ts'

/** Movements on the accounts of applications that statements list beside the sales. */
export const otherThanSales = sql`kind <> 'sale' AND account LIKE 'app:%'`

const movementColumns = sql`leaf, line, amount, balance_after, kind, reference, time_ms, height, sequence`

/** The lines of an account are found by their key. */
export function buildPostingKey(): SqlStatement[] {
  return [
    sql`DROP INDEX IF EXISTS system.posting_account`,
    sql`ALTER TABLE IF EXISTS system.posting DROP CONSTRAINT posting_pkey,
      ADD CONSTRAINT posting_pkey PRIMARY KEY (account, leaf, line)`,
  ]
}

export type Balance = { readonly balance: bigint; readonly earned: bigint }

/**
 * The ledger's tables: movements, balances, settled payments, sales and transfers of ours. An entry counts once,
 * however often it is appended; all others change nothing (count-entries-once.ts). So an append of unknown outcome may
 * be repeated, and neither charges twice nor stops the applier; being a function of the entries alone, audit and
 * rebuild agree.
 */
export class Ledger implements Projection {
  readonly types = ['ledger'] as const
  #channelNews = 0

  /** Counts the times that the tables came to know anything of channels beside sales. */
  get channelNews(): number {
    return this.#channelNews
  }

  tables(schema: string): SqlStatement[] {
    return [
      sql`CREATE TABLE ${sql.id(schema, 'account')} (
        account text NOT NULL, balance numeric NOT NULL, earned numeric NOT NULL,
        CONSTRAINT account_pkey PRIMARY KEY (account))`,
      sql`CREATE TABLE ${sql.id(schema, 'posting')} (
        leaf int8 NOT NULL, line int4 NOT NULL, account text NOT NULL, amount numeric NOT NULL,
        balance_after numeric NOT NULL, kind text NOT NULL, reference text NOT NULL,
        time_ms int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL,
        CONSTRAINT posting_pkey PRIMARY KEY (account, leaf, line))`,
      sql`CREATE INDEX posting_other ON ${sql.id(schema, 'posting')} (account, time_ms) WHERE ${otherThanSales}`,
      sql`CREATE TABLE ${sql.id(schema, 'settled_payment')} (
        identity text NOT NULL, payment_id text NOT NULL, transaction text NOT NULL, leaf int8 NOT NULL,
        CONSTRAINT settled_payment_pkey PRIMARY KEY (identity))`,
      sql`CREATE TABLE ${sql.id(schema, 'sale')} (
        payment_id text NOT NULL, identity text NOT NULL, leaf int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL,
        body text NOT NULL, CONSTRAINT sale_pkey PRIMARY KEY (payment_id))`,
      sql`CREATE UNIQUE INDEX sale_identity ON ${sql.id(schema, 'sale')} (identity)`,
      buildTransferTable(schema),
      buildSpendingTable(schema),
      ...buildSalesTables(schema),
      ...buildMeterTables(schema),
      ...buildRefundTables(schema),
      ...buildStorageFeeTables(schema),
      buildReversalTable(schema),
      ...buildChannelTables(schema),
      ...buildChannelMoveTable(schema),
    ]
  }

  tableNames(): string[] {
    return [
      'account',
      'posting',
      'settled_payment',
      'sale',
      'transfer',
      'spending',
      ...salesTableNames,
      ...meterTableNames,
      'refund',
      'storage_fee',
      'reversal',
      ...channelTableNames,
      channelMoveTableName,
    ]
  }

  async load(): Promise<void> {}

  async apply(tx: Queryable, schema: string, { entries }: EntryRun): Promise<() => void> {
    const read = entries.map((entry): Booking => ({ entry, body: JSON.parse(entry.body) }))
    const { counted: bookings, books } = await filterCounted(tx, schema, read)
    if (bookings.length === 0) return () => undefined
    const balances = await readBalances(tx, { schema, bookings })
    const lines = bookings.flatMap((booking) => makeLines(booking, balances))
    await writePostings(tx, { schema, lines })
    await writeBalances(tx, { schema, balances })
    await writeDeposits(tx, { schema, bookings: bookings.filter(isDeposit) })
    const sales = bookings.filter(isSale)
    await writeSales(tx, { schema, bookings: sales })
    await writeSold(tx, { schema, bookings: sales })
    await writeSpending(tx, { schema, bookings: sales })
    await writeUses(tx, { schema, bookings: sales })
    await writePasses(tx, { schema, bookings: sales })
    await writeRefunds(tx, { schema, bookings })
    await writeStorageFees(tx, { schema, bookings })
    await writeTransfers(tx, schema, bookings)
    await writeReversals(tx, schema, bookings)
    await writeChannelBooks(tx, schema, books)
    await writeChannelMoves(tx, schema, bookings)
    const hasChannelNews = bookings.some(isChannelEntry)
    return () => {
      if (hasChannelNews) this.#channelNews += 1
    }
  }

  /** Zero where an account never moved. */
  async readBalance(database: Queryable, schema: string, account: string): Promise<Balance> {
    const [row] = await database.query<{ balance: string; earned: string }>(
      sql`SELECT balance, earned FROM ${sql.id(schema, 'account')} WHERE account = ${account}`,
    )
    return { balance: BigInt(row?.balance ?? 0), earned: BigInt(row?.earned ?? 0) }
  }

  /** Movements on an account, newest first, older than the cursor (leaf and line). */
  async listMovements(
    database: Queryable,
    schema: string,
    page: { account: string; before: { leaf: bigint; line: number } | undefined; limit: number },
  ): Promise<Movement[]> {
    const before = page.before ?? { leaf: 2n ** 62n, line: 0 }
    return database.query<Movement>(sql`
      SELECT ${movementColumns} FROM ${sql.id(schema, 'posting')}
      WHERE account = ${page.account} AND (leaf, line) < (${before.leaf}::int8, ${before.line}::int4)
      ORDER BY leaf DESC, line DESC LIMIT ${page.limit}`)
  }

  /** The movement on an account by the entry at this leaf. */
  async findMovement(
    database: Queryable,
    schema: string,
    place: { readonly leaf: bigint; readonly account: string },
  ): Promise<Movement | undefined> {
    const [row] = await database.query<Movement>(sql`
      SELECT ${movementColumns} FROM ${sql.id(schema, 'posting')}
      WHERE leaf = ${place.leaf}::int8 AND account = ${place.account} ORDER BY line LIMIT 1`)
    return row
  }

  /** The sale that a payment bought, with the place of its entry. */
  async findSale(
    database: Queryable,
    schema: string,
    paymentId: string,
  ): Promise<Sale | undefined> {
    const [row] = await database.query<Sale>(
      sql`SELECT leaf, height, sequence, body FROM ${sql.id(schema, 'sale')} WHERE payment_id = ${paymentId}`,
    )
    return row
  }

  /** The deposit of a settled payment. */
  async findDeposit(
    database: Queryable,
    schema: string,
    identity: string,
  ): Promise<Deposit | undefined> {
    const [row] = await database.query<Deposit>(
      sql`SELECT payment_id, transaction, leaf FROM ${sql.id(schema, 'settled_payment')} WHERE identity = ${identity}`,
    )
    return row
  }

  /** Sums what was charged to budgets of keys and authorizations. */
  sumSpent(
    database: Queryable,
    schema: string,
    budgets: readonly string[],
  ): Promise<Map<string, bigint>> {
    return sumSpending(database, schema, budgets)
  }

  /** Finds a payment channel as the log tells it. */
  findChannel(database: Queryable, schema: string, id: string): Promise<ChannelRow | undefined> {
    return findChannel(database, schema, id)
  }

  /** Finds what is booked of a transfer of ours. */
  findTransfer(
    database: Queryable,
    schema: string,
    id: string,
  ): Promise<BookedTransfer | undefined> {
    return findBookedTransfer(database, schema, id)
  }
}

export type Movement = {
  readonly leaf: bigint
  readonly line: number
  readonly amount: string
  readonly balance_after: string
  readonly kind: string
  readonly reference: string
  readonly time_ms: bigint
  readonly height: bigint
  readonly sequence: number
}

export type Sale = {
  readonly leaf: bigint
  readonly height: bigint
  readonly sequence: number
  readonly body: string
}

export type Deposit = {
  readonly payment_id: string
  readonly transaction: string
  readonly leaf: bigint
}

type Line = Omit<Movement, 'amount' | 'balance_after' | 'leaf' | 'time_ms' | 'height'> & {
  readonly account: string
  readonly amount: bigint
  readonly balanceAfter: bigint
  readonly leaf: number
  readonly time_ms: number
  readonly height: number
}

type Balances = Map<string, { balance: bigint; earned: bigint }>

function makeLines({ entry, body }: Booking, balances: Balances): Line[] {
  const sum = body.postings.reduce((total, { amount }) => total + BigInt(amount), 0n)
  assert(sum === 0n, `postings of entry ${entry.height}.${entry.sequence} sum to zero`)
  return body.postings.map((posting, line) => {
    const amount = BigInt(posting.amount)
    const before = balances.get(posting.account) ?? { balance: 0n, earned: 0n }
    const earned =
      body.kind === 'sale' && posting.account.startsWith('app:') && amount > 0n ? amount : 0n
    const after = { balance: before.balance + amount, earned: before.earned + earned }
    balances.set(posting.account, after)
    return {
      leaf: entry.leafIndex,
      line,
      account: posting.account,
      amount,
      balanceAfter: after.balance,
      kind: posting.kind ?? body.kind,
      reference: body.payment_id,
      time_ms: entry.time,
      height: entry.height,
      sequence: entry.sequence,
    }
  })
}

async function readBalances(
  tx: Queryable,
  read: { schema: string; bookings: readonly Booking[] },
): Promise<Balances> {
  const accounts = [
    ...new Set(read.bookings.flatMap(({ body }) => body.postings.map(({ account }) => account))),
  ]
  const rows = await tx.query<{ account: string; balance: string; earned: string }>(
    sql`SELECT account, balance, earned FROM ${sql.id(read.schema, 'account')} WHERE account = ANY(${accounts}::text[])`,
  )
  return new Map(
    rows.map((row) => [row.account, { balance: BigInt(row.balance), earned: BigInt(row.earned) }]),
  )
}

async function writePostings(
  tx: Queryable,
  write: { schema: string; lines: readonly Line[] },
): Promise<void> {
  const { lines } = write
  await tx.execute(sql`
    INSERT INTO ${sql.id(write.schema, 'posting')}
      (leaf, line, account, amount, balance_after, kind, reference, time_ms, height, sequence)
    SELECT * FROM unnest(
      ${lines.map((one) => one.leaf)}::int8[], ${lines.map((one) => one.line)}::int4[],
      ${lines.map((one) => one.account)}::text[], ${lines.map((one) => String(one.amount))}::numeric[],
      ${lines.map((one) => String(one.balanceAfter))}::numeric[], ${lines.map((one) => one.kind)}::text[],
      ${lines.map((one) => one.reference)}::text[], ${lines.map((one) => one.time_ms)}::int8[],
      ${lines.map((one) => one.height)}::int8[], ${lines.map((one) => one.sequence)}::int4[])`)
}

async function writeBalances(
  tx: Queryable,
  write: { schema: string; balances: Balances },
): Promise<void> {
  const rows = [...write.balances]
  await tx.execute(sql`
    INSERT INTO ${sql.id(write.schema, 'account')} (account, balance, earned)
    SELECT account, balance, earned FROM unnest(
      ${rows.map(([account]) => account)}::text[],
      ${rows.map(([, one]) => String(one.balance))}::numeric[],
      ${rows.map(([, one]) => String(one.earned))}::numeric[]) AS fresh (account, balance, earned)
    ON CONFLICT (account) DO UPDATE SET balance = excluded.balance, earned = excluded.earned`)
}

async function writeDeposits(
  tx: Queryable,
  { schema, bookings }: { schema: string; bookings: readonly Booking[] },
): Promise<void> {
  if (bookings.length === 0) return
  const bodies = bookings.map(({ body }) => body)
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'settled_payment')} (identity, payment_id, transaction, leaf)
    SELECT * FROM unnest(
      ${bodies.map((body) => body.identity)}::text[], ${bodies.map((body) => body.payment_id)}::text[],
      ${bodies.map((body) => String(body.transaction))}::text[],
      ${bookings.map(({ entry }) => entry.leafIndex)}::int8[])`)
}

async function writeSales(
  tx: Queryable,
  { schema, bookings }: { schema: string; bookings: readonly Booking[] },
): Promise<void> {
  if (bookings.length === 0) return
  const entries = bookings.map(({ entry }) => entry)
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'sale')} (payment_id, identity, leaf, height, sequence, body)
    SELECT * FROM unnest(
      ${bookings.map(({ body }) => body.payment_id)}::text[], ${bookings.map(({ body }) => body.identity)}::text[],
      ${entries.map((entry) => entry.leafIndex)}::int8[],
      ${entries.map((entry) => entry.height)}::int8[], ${entries.map((entry) => entry.sequence)}::int4[],
      ${encodeTextArray(entries.map((entry) => entry.body))}::text[])`)
}
