import { dayMs } from '../base/durations.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { otherThanSales } from './ledger.ts'
import { recordWrites, type TotalBy } from './sales.ts'

/** An application's period: from its first millisecond until the last one before `toMs`. */
export type SalesPeriod = {
  readonly schema: string
  readonly app: string
  readonly fromMs: number
  readonly toMs: number
}

export type Sold = {
  readonly leaf: bigint
  readonly line: number
  readonly time_ms: bigint
  readonly operation: string
  readonly item_kind: string
  readonly item: string
  readonly buyer: string
  readonly quantity: bigint
  readonly gross: string
  readonly fee: string
  readonly payment_id: string
  /** The amount that the application gave back for the whole sale. */
  readonly refunded: string
}

/** A place in a list of sales. */
export type SoldPlace = { readonly timeMs: number; readonly leaf: bigint; readonly line: number }

/** Lists what was sold, newest first, before the cursor. */
export function listSold(
  database: Queryable,
  { schema, app, fromMs, toMs }: SalesPeriod,
  page: { readonly before: SoldPlace | undefined; readonly limit: number },
): Promise<Sold[]> {
  const before = page.before ?? { timeMs: toMs, leaf: 0n, line: 0 }
  return database.query<Sold>(sql`
    SELECT leaf, line, time_ms, operation, item_kind, item, buyer, quantity, gross::text, fee::text, payment_id,
      coalesce((SELECT refund.amount FROM ${sql.id(schema, 'refund')} AS refund
        WHERE refund.id = 'refund_' || substr(sold.payment_id, 5) || '_' || sold.app), 0)::text AS refunded
    FROM ${sql.id(schema, 'sold')} AS sold
    WHERE app = ${app} AND time_ms >= ${fromMs}::int8
      AND (time_ms, leaf, line) < (${before.timeMs}::int8, ${before.leaf}::int8, ${before.line}::int4)
    ORDER BY time_ms DESC, leaf DESC, line DESC LIMIT ${page.limit}`)
}

/** Sums of sales; amounts and counts as texts. */
export type SalesSums = {
  readonly sales: string
  readonly writes: string
  readonly quantity: string
  readonly written: string
  readonly gross: string
  readonly fee: string
  readonly written_gross: string
  readonly written_fee: string
}

const isWrite = sql`operation = ANY(${recordWrites}::text[])`

const sums = sql`
  coalesce(sum(sales), 0)::text AS sales, coalesce(sum(sales) FILTER (WHERE ${isWrite}), 0)::text AS writes,
  coalesce(sum(quantity), 0)::text AS quantity, coalesce(sum(quantity) FILTER (WHERE ${isWrite}), 0)::text AS written,
  coalesce(sum(gross), 0)::text AS gross, coalesce(sum(fee), 0)::text AS fee,
  coalesce(sum(gross) FILTER (WHERE ${isWrite}), 0)::text AS written_gross,
  coalesce(sum(fee) FILTER (WHERE ${isWrite}), 0)::text AS written_fee`

/** Sums all sales of the period, which begins and ends at whole hours, as all sums do. */
export async function sumSales(database: Queryable, period: SalesPeriod): Promise<SalesSums> {
  const [row] = await database.query<SalesSums>(sql`SELECT ${sums} FROM ${totals(period, 'hour')}`)
  return row ?? noSums
}

const noSums: SalesSums = {
  ...{ sales: '0', writes: '0', quantity: '0', written: '0' },
  ...{ gross: '0', fee: '0', written_gross: '0', written_fee: '0' },
}

/** Sums the sales of each span of the period, newest first. */
export function listSpans(
  database: Queryable,
  period: SalesPeriod,
  page: { readonly spanMs: number; readonly limit: number },
): Promise<(SalesSums & { readonly start_ms: bigint })[]> {
  return database.query(sql`
    SELECT start_ms - start_ms % ${page.spanMs}::int8 AS start_ms, ${sums} FROM ${totals(period, 'hour')}
    GROUP BY 1 ORDER BY 1 DESC LIMIT ${page.limit}`)
}

/** A place in a list of the largest sums. */
export type KeyPlace = { readonly gross: string; readonly key: string }

/** Sums the sales of each item or buyer in the period, largest first, after the cursor. */
export function listKeys(
  database: Queryable,
  period: SalesPeriod,
  page: {
    readonly by: 'item' | 'buyer'
    readonly after: KeyPlace | undefined
    readonly limit: number
  },
): Promise<(SalesSums & { readonly key: string })[]> {
  const { by, after, limit } = page
  const rest =
    after === undefined
      ? sql.empty
      : sql`HAVING sum(gross) < ${after.gross}::numeric OR (sum(gross) = ${after.gross}::numeric AND key > ${after.key}::text)`
  return database.query(sql`
    SELECT key, ${sums} FROM ${totals(period, by)}
    GROUP BY key ${rest} ORDER BY sum(gross) DESC, key LIMIT ${limit}`)
}

function totals({ schema, app, fromMs, toMs }: SalesPeriod, by: TotalBy): SqlStatement {
  return sql`(SELECT start_ms, operation, key, sales, quantity, gross, fee FROM ${sql.id(schema, 'sold_total')}
    WHERE app = ${app} AND total_by = ${by} AND start_ms >= ${fromMs}::int8 AND start_ms < ${toMs}::int8) AS part`
}

/** One line of a statement: a day's sales of one thing by one operation, or its other movements of one kind. */
export type StatementLine = {
  readonly start_ms: bigint
  readonly kind: string
  readonly key: string
  readonly operation: string
  readonly count: string
  readonly quantity: string
  readonly gross: string
  readonly fee: string
}

export type StatementPlace = {
  readonly startMs: number
  readonly kind: string
  readonly key: string
  readonly operation: string
}

/** Lists the lines of a statement, oldest first, after the cursor. */
export function listStatementLines(
  database: Queryable,
  period: SalesPeriod,
  page: { readonly after: StatementPlace | undefined; readonly limit: number },
): Promise<StatementLine[]> {
  const after = page.after ?? { startMs: -1, kind: '', key: '', operation: '' }
  // Days before the cursor need not be summed again.
  const fromMs = Math.max(period.fromMs, after.startMs)
  return database.query<StatementLine>(sql`
    SELECT start_ms, kind, key, operation, count, quantity, gross, fee FROM (
      SELECT start_ms - start_ms % ${dayMs}::int8 AS start_ms, 'sale' AS kind, key, operation,
        sum(sales)::text AS count, sum(quantity)::text AS quantity, sum(gross)::text AS gross, sum(fee)::text AS fee
      FROM ${totals({ ...period, fromMs }, 'item')} GROUP BY 1, 3, 4
      UNION ALL
      SELECT time_ms - time_ms % ${dayMs}::int8, kind, '', '', count(*)::text, '0', sum(amount)::text, '0'
      FROM ${otherMovements({ ...period, fromMs })} GROUP BY 1, 2
      UNION ALL
      SELECT start_ms - start_ms % ${dayMs}::int8, 'purchase', '', '', sum(sales)::text, sum(quantity)::text, (-sum(gross))::text, '0'
      FROM ${totals({ ...period, fromMs }, 'bought')} GROUP BY 1) AS line
    WHERE (start_ms, kind, key, operation) > (${after.startMs}::int8, ${after.kind}::text, ${after.key}::text, ${after.operation}::text)
    ORDER BY start_ms, kind, key, operation LIMIT ${page.limit}`)
}

/** Sums the movements of an application's account that are no sales of its own. */
export async function sumOther(database: Queryable, period: SalesPeriod): Promise<bigint> {
  const [row] = await database.query<{ total: string }>(sql`
    SELECT (coalesce((SELECT sum(amount) FROM ${otherMovements(period)}), 0)
      - coalesce((SELECT sum(gross) FROM ${totals(period, 'bought')}), 0))::text AS total`)
  return BigInt(row?.total ?? 0)
}

/** Sums what buyers have paid directly to the wallet of an application. */
export async function sumDirect(
  database: Queryable,
  { schema, account }: { readonly schema: string; readonly account: string },
): Promise<bigint> {
  const [row] = await database.query<{ total: string }>(sql`
    SELECT coalesce(-sum(amount), 0)::text AS total FROM ${sql.id(schema, 'posting')}
    WHERE account = ${account} AND ${otherThanSales} AND kind = 'direct'`)
  return BigInt(row?.total ?? 0)
}

function otherMovements({ schema, app, fromMs, toMs }: SalesPeriod): SqlStatement {
  return sql`(SELECT time_ms, kind, amount FROM ${sql.id(schema, 'posting')}
    WHERE account = ${`app:${app}`} AND ${otherThanSales} AND time_ms >= ${fromMs}::int8 AND time_ms < ${toMs}::int8) AS other`
}
