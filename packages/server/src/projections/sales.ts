import type { SoldPart } from '@tollbase/verify/sale-details'
import { hourMs } from '../base/durations.ts'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { printOnce } from './channel-tables.ts'
import { getBuyer } from './ledger-entry.ts'

/** The operations that sell the right to bring records in. Sums of sales count the others as reads. */
export const recordWrites: readonly string[] = ['store', 'batch', 'upload']

/**
 * Sums are kept for each hour: by hour alone, by what was sold, and by who bought; and of what the application's own keys
 * bought, anywhere.
 */
export type TotalBy = 'hour' | 'item' | 'buyer' | 'bought'

export const salesTableNames = ['sold', 'sold_total'] as const

type SaleBooking = {
  readonly entry: AppliedEntry
  readonly body: {
    readonly payment_id: string
    readonly sold?: readonly SoldPart[]
    readonly buyer?: string
    readonly [field: string]: unknown
  }
}

/**
 * One row for each part of a sale that an application earned, and sums of these rows, so that no question about a
 * year reads every sale of it.
 */
export function buildSalesTables(schema: string): SqlStatement[] {
  return [
    sql`CREATE TABLE ${sql.id(schema, 'sold')} (
      leaf int8 NOT NULL, line int4 NOT NULL, app text NOT NULL, time_ms int8 NOT NULL, operation text NOT NULL,
      item_kind text NOT NULL, item text NOT NULL, buyer text NOT NULL, quantity int8 NOT NULL,
      gross numeric NOT NULL, fee numeric NOT NULL, payment_id text NOT NULL,
      CONSTRAINT sold_pkey PRIMARY KEY (leaf, line))`,
    sql`CREATE INDEX sold_app ON ${sql.id(schema, 'sold')} (app, time_ms, leaf, line)`,
    sql`CREATE TABLE ${sql.id(schema, 'sold_total')} (
      app text NOT NULL, total_by text NOT NULL, start_ms int8 NOT NULL, operation text NOT NULL, key text NOT NULL,
      sales int8 NOT NULL, quantity int8 NOT NULL, gross numeric NOT NULL, fee numeric NOT NULL,
      CONSTRAINT sold_total_pkey PRIMARY KEY (app, total_by, start_ms, operation, key))`,
    sql`CREATE INDEX sold_total_buyer ON ${sql.id(schema, 'sold_total')} (app, key) WHERE total_by = 'buyer'`,
  ]
}

type SoldRow = {
  readonly leaf: number
  readonly line: number
  readonly app: string
  readonly timeMs: number
  readonly operation: string
  readonly kind: string
  readonly name: string
  readonly buyer: string
  readonly quantity: number
  readonly gross: bigint
  readonly fee: bigint
  readonly paymentId: string
  /** The first part of its sale that this application earned: the others are of the same sale. */
  readonly isFirst: boolean
  /** The first part of its sale for this thing. */
  readonly isFirstOfItem: boolean
}

/** Sums what the keys of applications have bought so far, for a service from before these sums. */
export function buildBoughtTotals(): SqlStatement[] {
  return [
    printOnce(sql`to_regclass('system.sold_total') IS NOT NULL`, [
      sql`INSERT INTO system.sold_total (app, total_by, start_ms, operation, key, sales, quantity, gross, fee)
        SELECT substr(line.account, 5), 'bought', line.time_ms - line.time_ms % 3600000, sale.body::jsonb ->> 'operation', '',
          count(*), sum((sale.body::jsonb ->> 'row_count')::int8), -sum(line.amount), 0
        FROM system.posting AS line JOIN system.sale AS sale ON sale.leaf = line.leaf
        WHERE line.account LIKE 'app:%' AND line.kind = 'sale' AND line.amount < 0
          AND NOT EXISTS (SELECT 1 FROM system.sold_total WHERE total_by = 'bought') GROUP BY 1, 3, 4`,
    ]),
  ]
}

/** Writes what these sales sold, and what applications bought by them. */
export async function writeSold(
  tx: Queryable,
  { schema, bookings }: { schema: string; bookings: readonly SaleBooking[] },
): Promise<void> {
  const rows = bookings.flatMap(listRows)
  if (rows.length > 0) await writeRows(tx, schema, rows)
  const totals = [...sumRows(rows), ...sumBought(bookings)]
  if (totals.length > 0) await addTotals(tx, schema, totals)
}

async function writeRows(tx: Queryable, schema: string, rows: readonly SoldRow[]): Promise<void> {
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'sold')}
      (leaf, line, app, time_ms, operation, item_kind, item, buyer, quantity, gross, fee, payment_id)
    SELECT * FROM unnest(
      ${rows.map(({ leaf }) => leaf)}::int8[], ${rows.map(({ line }) => line)}::int4[],
      ${rows.map(({ app }) => app)}::text[], ${rows.map(({ timeMs }) => timeMs)}::int8[],
      ${rows.map(({ operation }) => operation)}::text[], ${rows.map(({ kind }) => kind)}::text[],
      ${rows.map(({ name }) => name)}::text[], ${rows.map(({ buyer }) => buyer)}::text[],
      ${rows.map(({ quantity }) => quantity)}::int8[], ${rows.map(({ gross }) => String(gross))}::numeric[],
      ${rows.map(({ fee }) => String(fee))}::numeric[], ${rows.map(({ paymentId }) => paymentId)}::text[])`)
}

const applicationPrefix = 'app:'

/** Lists the parts that applications earned; what is due to a wallet is in no application's books. */
function listRows({ entry, body }: SaleBooking): SoldRow[] {
  const seen = new Set<string>()
  return (body.sold ?? []).flatMap(({ account, kind, name, gross, fee }, line) => {
    if (!account.startsWith(applicationPrefix)) return []
    const ofItem = `${account} ${formatItemKey({ kind, name })}`
    const isFirst = !seen.has(account)
    const isFirstOfItem = !seen.has(ofItem)
    seen.add(account).add(ofItem)
    return [
      {
        leaf: entry.leafIndex,
        line,
        app: account.slice(applicationPrefix.length),
        timeMs: entry.time,
        operation: String(body.operation),
        kind,
        name,
        buyer: getBuyer(body),
        quantity: Number(body.row_count),
        gross: BigInt(gross),
        fee: BigInt(fee),
        paymentId: body.payment_id,
        isFirst,
        isFirstOfItem,
      },
    ]
  })
}

type Total = {
  readonly app: string
  readonly by: TotalBy
  readonly startMs: number
  readonly operation: string
  readonly key: string
  sales: number
  quantity: number
  gross: bigint
  fee: bigint
}

/** Sums rows by hour; a sale counts once by hour and by buyer, and once for each thing that it sold. */
function sumRows(rows: readonly SoldRow[]): Total[] {
  const totals = new Map<string, Total>()
  const add = (row: SoldRow, by: TotalBy, key: string) => {
    const { app, operation, gross, fee } = row
    const startMs = row.timeMs - (row.timeMs % hourMs)
    const name = JSON.stringify([app, by, startMs, operation, key])
    const total = totals.get(name) ?? {
      ...{ app, by, startMs, operation, key },
      ...{ sales: 0, quantity: 0, gross: 0n, fee: 0n },
    }
    totals.set(name, total)
    if (by === 'item' ? row.isFirstOfItem : row.isFirst) {
      total.sales += 1
      total.quantity += row.quantity
    }
    total.gross += gross
    total.fee += fee
  }
  for (const row of rows) {
    add(row, 'hour', '')
    add(row, 'item', formatItemKey(row))
    add(row, 'buyer', row.buyer)
  }
  return [...totals.values()]
}

/** Sums by hour what was charged to the balances of applications. */
function sumBought(bookings: readonly SaleBooking[]): Total[] {
  const totals = new Map<string, Total>()
  for (const { entry, body } of bookings) {
    const payer = String(body.payer)
    const charge = BigInt(String(body.amount))
    if (!payer.startsWith(applicationPrefix) || charge === 0n) continue
    const app = payer.slice(applicationPrefix.length)
    const startMs = entry.time - (entry.time % hourMs)
    const operation = String(body.operation)
    const name = JSON.stringify([app, startMs, operation])
    const total = totals.get(name) ?? {
      ...{ app, by: 'bought', startMs, operation, key: '' },
      ...{ sales: 0, quantity: 0, gross: 0n, fee: 0n },
    }
    totals.set(name, total)
    total.sales += 1
    total.quantity += Number(body.row_count)
    total.gross += charge
  }
  return [...totals.values()]
}

/** Formats the key of an item's sums; no kind has a space in its name. */
function formatItemKey({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind} ${name}`
}

export function parseItemKey(key: string): { kind: string; name: string } {
  const at = key.indexOf(' ')
  return { kind: key.slice(0, at), name: key.slice(at + 1) }
}

async function addTotals(tx: Queryable, schema: string, totals: readonly Total[]): Promise<void> {
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'sold_total')} AS kept
      (app, total_by, start_ms, operation, key, sales, quantity, gross, fee)
    SELECT * FROM unnest(
      ${totals.map(({ app }) => app)}::text[], ${totals.map(({ by }) => by)}::text[],
      ${totals.map(({ startMs }) => startMs)}::int8[], ${totals.map(({ operation }) => operation)}::text[],
      ${totals.map(({ key }) => key)}::text[], ${totals.map(({ sales }) => sales)}::int8[],
      ${totals.map(({ quantity }) => quantity)}::int8[], ${totals.map(({ gross }) => String(gross))}::numeric[],
      ${totals.map(({ fee }) => String(fee))}::numeric[])
    ON CONFLICT (app, total_by, start_ms, operation, key) DO UPDATE SET
      sales = kept.sales + excluded.sales, quantity = kept.quantity + excluded.quantity,
      gross = kept.gross + excluded.gross, fee = kept.fee + excluded.fee`)
}
