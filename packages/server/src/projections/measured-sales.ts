import type { MeasuredPart } from '@tollbase/verify/sale-details'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { SalesPeriod } from './read-sales.ts'

export type MeasuredSale = {
  readonly leaf: bigint
  readonly timeMs: number
  readonly buyer: string
  readonly gross: bigint
  /** The use of all parts, as the entry has it in JSON; undefined for a sale from before it was noted. */
  readonly measuredText: string | undefined
}

/** Counts the sales of a period, up to a most. */
export async function countSales(
  database: Queryable,
  { schema, app, fromMs, toMs }: SalesPeriod,
  most: number,
): Promise<number> {
  const [row] = await database.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (
      SELECT DISTINCT time_ms, leaf FROM ${sql.id(schema, 'sold')}
      WHERE app = ${app} AND time_ms >= ${fromMs}::int8 AND time_ms < ${toMs}::int8 LIMIT ${most}) AS sale`)
  return Number(row?.count ?? 0)
}

/** Some sales of a period. */
export type SalesPage = {
  readonly sales: readonly MeasuredSale[]
  /** True where no others follow. */
  readonly isLast: boolean
}

/**
 * Lists the sales of a period, oldest first, after the last one that was listed: at most so many, and no more than some
 * bytes of their entries unless the first alone has more, as a sale may have a thousand parts.
 */
export async function listMeasuredSales(
  database: Queryable,
  { schema, app, fromMs, toMs }: SalesPeriod,
  page: {
    readonly after: Pick<MeasuredSale, 'leaf' | 'timeMs'> | undefined
    readonly limit: number
    readonly bytes: number
  },
): Promise<SalesPage> {
  const after = page.after ?? { timeMs: fromMs, leaf: -1n }
  const rows = await database.query<{
    leaf: bigint
    time_ms: bigint
    buyer: string
    gross: string
    measured: string | null
    found: bigint
  }>(sql`
    SELECT leaf, time_ms, buyer, gross::text, found,
      (SELECT (sale.body::json -> 'measured')::text FROM ${sql.id(schema, 'sale')} AS sale
        WHERE sale.payment_id = line.payment_id) AS measured
    FROM (
      SELECT time_ms, leaf, buyer, payment_id, gross, count(*) OVER () AS found,
        sum(bytes) OVER (ORDER BY time_ms, leaf) - bytes AS before
      FROM (
        SELECT time_ms, leaf, buyer, payment_id, gross,
          (SELECT coalesce(sum(octet_length(sale.body)), 0) FROM ${sql.id(schema, 'sale')} AS sale
            WHERE sale.payment_id = one.payment_id) AS bytes
        FROM (
          SELECT time_ms, leaf, buyer, payment_id, sum(gross) AS gross FROM ${sql.id(schema, 'sold')}
          WHERE app = ${app} AND time_ms < ${toMs}::int8
            AND (time_ms, leaf) > (${after.timeMs}::int8, ${after.leaf}::int8)
          GROUP BY time_ms, leaf, buyer, payment_id ORDER BY time_ms, leaf LIMIT ${page.limit}) AS one) AS sized) AS line
    WHERE before < ${page.bytes}::int8 ORDER BY time_ms, leaf`)
  const sales = rows.map(({ leaf, time_ms, buyer, gross, measured }) => ({
    leaf,
    timeMs: Number(time_ms),
    buyer,
    gross: BigInt(gross),
    measuredText: measured ?? undefined,
  }))
  const found = Number(rows[0]?.found ?? 0)
  return { sales, isLast: found < page.limit && sales.length === found }
}

/** Reads the use of the application's own parts. */
export function readMeasured(
  { measuredText }: Pick<MeasuredSale, 'measuredText'>,
  app: string,
): readonly MeasuredPart[] | undefined {
  if (measuredText === undefined) return undefined
  const parts: readonly MeasuredPart[] = JSON.parse(measuredText)
  return parts.filter(({ account }) => account === `app:${app}`)
}

/** Finds those of the buyers who had paid the application before a whole hour. */
export async function listPaidBuyers(
  database: Queryable,
  { schema, app }: Pick<SalesPeriod, 'schema' | 'app'>,
  asked: { readonly buyers: readonly string[]; readonly beforeMs: number },
): Promise<readonly string[]> {
  const rows = await database.query<{ key: string }>(sql`
    SELECT DISTINCT key FROM ${sql.id(schema, 'sold_total')}
    WHERE app = ${app} AND total_by = 'buyer' AND key = ANY(${asked.buyers}::text[]) AND gross > 0
      AND start_ms < ${asked.beforeMs}::int8`)
  return rows.map(({ key }) => key)
}

export type BoughtPass = {
  readonly buyer: string
  readonly item_kind: string
  readonly item: string
  readonly from_ms: bigint
  readonly until_ms: bigint
}

/** Lists the passes that were bought before a time and end after it. */
export function listPassesAt(
  database: Queryable,
  { schema, app }: Pick<SalesPeriod, 'schema' | 'app'>,
  atMs: number,
): Promise<BoughtPass[]> {
  return database.query<BoughtPass>(sql`
    SELECT pass.buyer, item_kind, pass.item, from_ms, until_ms FROM ${sql.id(schema, 'pass')} AS pass
    WHERE account = ${`app:${app}`} AND until_ms > ${atMs}::int8
      AND EXISTS (SELECT 1 FROM ${sql.id(schema, 'sale')} AS sale JOIN ${sql.id(schema, 'sold')} AS sold ON sold.leaf = sale.leaf
        WHERE sale.payment_id = pass.payment_id AND sold.time_ms < ${atMs}::int8)
    ORDER BY from_ms, pass.payment_id`)
}
