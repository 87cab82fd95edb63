import {
  listStatementLines,
  type StatementLine,
  sumOther,
  sumSales,
} from '../../projections/read-sales.ts'
import { parseItemKey } from '../../projections/sales.ts'
import {
  anyText,
  encodePlace,
  isCsvAsked,
  makeCsvReply,
  pageSizeDefault,
  parsePlace,
  splitPage,
  wholeNumber,
} from '../../services/listing/pages.ts'
import { currency, toUsd } from '../../services/payments/currency.ts'
import { openPeriod, parseMonth } from '../../services/sales/period.ts'
import type { Operation } from '../operation.ts'
import { formatMoney } from './sums.ts'

export const getBillingStatement: Operation<
  'getBillingStatement',
  'database' | 'tenants' | 'world'
> = async ({ service, requestInfo }, { params, query }) => {
  const { database } = service
  const { cursor, limit = pageSizeDefault } = query
  const period = await openPeriod(service, params.app, parseMonth(query, service.world.now()))
  const place = parsePlace(cursor, [wholeNumber, anyText, anyText, anyText])
  const [startMs = '', kind = '', key = '', operation = ''] = place ?? []
  const after = place && { startMs: Number(startMs), kind, key, operation }
  const before = { ...period, fromMs: 0, toMs: period.fromMs }
  const [rows, sold, other, soldBefore, otherBefore] = await Promise.all([
    listStatementLines(database, period, { after, limit: limit + 1 }),
    sumSales(database, period),
    sumOther(database, period),
    sumSales(database, before),
    sumOther(database, before),
  ])
  const { page, next } = splitPage(rows, limit, (last) =>
    encodePlace(last.start_ms, last.kind, last.key, last.operation),
  )
  const lines = page.map(describeLine)
  if (isCsvAsked(requestInfo, query.format)) return formatLines(lines, next)
  const opening = BigInt(formatMoney(soldBefore).net) + otherBefore
  const amounts = {
    opening_balance: String(opening),
    gross: sold.gross,
    fees: sold.fee,
    other: String(other),
    closing_balance: String(opening + BigInt(formatMoney(sold).net) + other),
  }
  return {
    app_id: params.app,
    from: new Date(period.fromMs).toISOString(),
    to: new Date(period.toMs).toISOString(),
    ...currency,
    ...amounts,
    usd: toUsd(amounts),
    lines,
    next_cursor: next,
  }
}

function describeLine(line: StatementLine) {
  const isSale = line.kind === 'sale'
  return {
    date: new Date(Number(line.start_ms)).toISOString().slice(0, 10),
    kind: line.kind,
    item: isSale ? parseItemKey(line.key) : null,
    operation: isSale ? line.operation : null,
    count: Number(line.count),
    quantity: Number(line.quantity),
    ...formatMoney(line),
  }
}

function formatLines(lines: readonly ReturnType<typeof describeLine>[], next: string | null) {
  const columns = ['date', 'kind', 'item_kind', 'item', 'operation', 'count', 'quantity']
  return makeCsvReply([...columns, 'gross', 'fee', 'net'], lines, {
    next,
    toCells: (line) => [
      ...[line.date, line.kind, line.item?.kind ?? null, line.item?.name ?? null, line.operation],
      ...[line.count, line.quantity, line.gross, line.fee, line.net],
    ],
  })
}
