import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { noDebt, type StorageDebt } from '../model/storage-fee.ts'
import { printOnce } from './channel-tables.ts'
import { isStorageFee } from './count-entries-once.ts'
import type { Booking } from './ledger-entry.ts'

/** One row for each application and day: the application pays for a day once. */
export function buildStorageFeeTables(schema: string): SqlStatement[] {
  return [
    sql`CREATE TABLE ${sql.id(schema, 'storage_fee')} (
      id text NOT NULL, app text NOT NULL, day text NOT NULL, bytes numeric NOT NULL, price numeric NOT NULL,
      amount numeric NOT NULL, paid numeric NOT NULL, owed numeric NOT NULL, carried numeric NOT NULL,
      time_ms int8 NOT NULL, leaf int8 NOT NULL, CONSTRAINT storage_fee_pkey PRIMARY KEY (app, day))`,
    sql`CREATE INDEX storage_fee_app ON ${sql.id(schema, 'storage_fee')} (app, leaf)`,
  ]
}

/** The same for a service's chain from before there were any. */
export function buildMissingStorageFeeTables(): SqlStatement[] {
  return [
    printOnce(
      sql`to_regclass('system.watermark') IS NOT NULL AND to_regclass('system.storage_fee') IS NULL`,
      buildStorageFeeTables('system'),
    ),
  ]
}

export async function writeStorageFees(
  tx: Queryable,
  { schema, bookings }: { readonly schema: string; readonly bookings: readonly Booking[] },
): Promise<void> {
  const fees = bookings.filter(isStorageFee)
  if (fees.length === 0) return
  const read = (name: string) => fees.map(({ body }) => String(body[name]))
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'storage_fee')} (id, app, day, bytes, price, amount, paid, owed, carried, time_ms, leaf)
    SELECT * FROM unnest(
      ${read('payment_id')}::text[], ${read('app')}::text[], ${read('day')}::text[], ${read('bytes')}::numeric[],
      ${read('price')}::numeric[], ${read('amount')}::numeric[], ${read('paid')}::numeric[], ${read('owed')}::numeric[],
      ${read('carried')}::numeric[],
      ${fees.map(({ entry }) => entry.time)}::int8[], ${fees.map(({ entry }) => entry.leafIndex)}::int8[])`)
}

/** Returns true once the fee of this application for this day is booked. */
export async function hasStorageFee(
  database: Queryable,
  schema: string,
  { app, day }: { readonly app: string; readonly day: string },
): Promise<boolean> {
  const rows = await database.query(
    sql`SELECT day FROM ${sql.id(schema, 'storage_fee')} WHERE app = ${app} AND day = ${day}`,
  )
  return rows.length > 0
}

/** Reads what the last booked fee of an application left open. */
export async function readStorageDebt(
  database: Queryable,
  schema: string,
  app: string,
): Promise<StorageDebt> {
  const [row] = await database.query<{ owed: string; carried: string }>(sql`
    SELECT owed::text, carried::text FROM ${sql.id(schema, 'storage_fee')} WHERE app = ${app} ORDER BY leaf DESC LIMIT 1`)
  return row === undefined ? noDebt : { owed: BigInt(row.owed), carried: BigInt(row.carried) }
}

/** Lists the applications whose last booked fee left something open. */
export async function listStorageDebtors(
  database: Queryable,
  schema: string,
): Promise<ReadonlySet<string>> {
  const fees = sql.id(schema, 'storage_fee')
  const rows = await database.query<{ app: string }>(sql`
    SELECT fee.app FROM ${fees} AS fee WHERE fee.owed > 0
      AND NOT EXISTS (SELECT 1 FROM ${fees} AS later WHERE later.app = fee.app AND later.leaf > fee.leaf)`)
  return new Set(rows.map(({ app }) => app))
}

/** Sums the fees that were booked in a period, and what was paid of fees in it, in atomic units. */
export async function sumStorageFees(
  database: Queryable,
  period: {
    readonly schema: string
    readonly app: string
    readonly fromMs: number
    readonly toMs: number
  },
): Promise<{ readonly amount: string; readonly paid: string }> {
  const { schema, app, fromMs, toMs } = period
  const [row] = await database.query<{ amount: string; paid: string }>(sql`
    SELECT coalesce(sum(amount), 0)::text AS amount, coalesce(sum(paid), 0)::text AS paid
    FROM ${sql.id(schema, 'storage_fee')} WHERE app = ${app} AND time_ms >= ${fromMs}::int8 AND time_ms < ${toMs}::int8`)
  return row ?? { amount: '0', paid: '0' }
}
