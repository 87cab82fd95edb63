import { dayMs, hourMs } from '../../base/durations.ts'
import {
  listKeys,
  listSold,
  listSpans,
  type SalesPeriod,
  type Sold,
} from '../../projections/read-sales.ts'
import { parseItemKey } from '../../projections/sales.ts'
import {
  amount,
  anyText,
  encodePlace,
  isCsvAsked,
  makeCsvReply,
  pageSizeDefault,
  parsePlace,
  splitPage,
  wholeNumber,
} from '../../services/listing/pages.ts'
import { toReceiptId } from '../../services/payments/replies/receipt-id.ts'
import { openPeriod, parsePeriod, parseWholeHours } from '../../services/sales/period.ts'
import type { Operation } from '../operation.ts'
import { formatSums } from './sums.ts'

export const listSales: Operation<'listSales', 'database' | 'tenants'> = async (
  { service, requestInfo },
  { params, query },
) => {
  const { by, cursor, limit = pageSizeDefault } = query
  const parse = by === undefined ? parsePeriod : parseWholeHours
  const period = await openPeriod(service, params.app, parse(query))
  const isCsv = isCsvAsked(requestInfo, query.format)
  const page = { cursor, limit }
  if (by === undefined) {
    const { sales, next } = await readSales(service, period, page)
    return isCsv ? formatSales(sales, next) : { sales, next_cursor: next }
  }
  const { buckets, next } =
    by === 'hour' || by === 'day'
      ? await readSpans(service, period, { ...page, spanMs: by === 'hour' ? hourMs : dayMs })
      : await readKeys(service, period, { ...page, by })
  return isCsv ? formatBuckets(buckets, next) : { buckets, next_cursor: next }
}

type Parts = Parameters<typeof openPeriod>[0] & {
  readonly database: Parameters<typeof listSold>[0]
}
type PageRequest = { readonly cursor: string | undefined; readonly limit: number }

async function readSales({ database }: Parts, period: SalesPeriod, { cursor, limit }: PageRequest) {
  const place = parsePlace(cursor, [wholeNumber, wholeNumber, /^\d{1,9}$/])
  const [timeMs = '', leaf = '', line = ''] = place ?? []
  const before = place && { timeMs: Number(timeMs), leaf: BigInt(leaf), line: Number(line) }
  const rows = await listSold(database, period, { before, limit: limit + 1 })
  const { page, next } = splitPage(rows, limit, (last) =>
    encodePlace(last.time_ms, last.leaf, last.line),
  )
  return { sales: page.map(describeSold), next }
}

function describeSold(row: Sold) {
  return {
    time: new Date(Number(row.time_ms)).toISOString(),
    item: { kind: row.item_kind, name: row.item },
    operation: row.operation,
    buyer: row.buyer,
    quantity: Number(row.quantity),
    gross: row.gross,
    fee: row.fee,
    net: String(BigInt(row.gross) - BigInt(row.fee)),
    refunded: row.refunded,
    payment_id: row.payment_id,
    receipt_id: toReceiptId(row.payment_id),
  }
}

async function readSpans(
  { database }: Parts,
  period: SalesPeriod,
  { cursor, limit, spanMs }: PageRequest & { readonly spanMs: number },
) {
  const [start] = parsePlace(cursor, [wholeNumber]) ?? []
  const toMs = start === undefined ? period.toMs : Math.min(period.toMs, Number(start))
  const rows = await listSpans(database, { ...period, toMs }, { spanMs, limit: limit + 1 })
  const { page, next } = splitPage(rows, limit, (last) => encodePlace(last.start_ms))
  const buckets = page.map((row) => ({
    start: new Date(Number(row.start_ms)).toISOString(),
    ...formatSums(row),
  }))
  return { buckets, next }
}

async function readKeys(
  { database }: Parts,
  period: SalesPeriod,
  { cursor, limit, by }: PageRequest & { readonly by: 'item' | 'buyer' },
) {
  const [gross = '', key = ''] = parsePlace(cursor, [amount, anyText]) ?? []
  const after = cursor === undefined ? undefined : { gross, key }
  const rows = await listKeys(database, period, { by, after, limit: limit + 1 })
  const { page, next } = splitPage(rows, limit, (last) => encodePlace(last.gross, last.key))
  const buckets = page.map((row) => ({
    ...(by === 'item' ? { item: parseItemKey(row.key) } : { buyer: row.key }),
    ...formatSums(row),
  }))
  return { buckets, next }
}

const money = ['gross', 'fee', 'net'] as const

function formatSales(sales: readonly ReturnType<typeof describeSold>[], next: string | null) {
  const columns = ['time', 'item_kind', 'item', 'operation', 'buyer', 'quantity', ...money]
  return makeCsvReply([...columns, 'payment_id', 'receipt_id', 'refunded'], sales, {
    next,
    toCells: (one) => [
      ...[one.time, one.item.kind, one.item.name, one.operation, one.buyer, one.quantity],
      ...money.map((name) => one[name]),
      ...[one.payment_id, one.receipt_id, one.refunded],
    ],
  })
}

type Bucket = ReturnType<typeof formatSums> & {
  readonly start?: string
  readonly item?: { readonly kind: string; readonly name: string }
  readonly buyer?: string
}

function formatBuckets(buckets: readonly Bucket[], next: string | null) {
  const columns = ['start', 'item_kind', 'item', 'buyer', 'sales', 'writes', 'quantity', ...money]
  return makeCsvReply(columns, buckets, {
    next,
    toCells: (one) => [
      ...[one.start ?? null, one.item?.kind ?? null, one.item?.name ?? null, one.buyer ?? null],
      ...[one.sales, one.writes, one.quantity, ...money.map((name) => one[name])],
    ],
  })
}
