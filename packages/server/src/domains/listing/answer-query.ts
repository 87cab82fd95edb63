import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import type { Call } from '../call.ts'
import { applicationAccount, type Share } from '../payments/entries.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import { free, type Price } from '../tenancy/policy.ts'
import { costOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { type Charge, chargedSources, isOf, type PricedSource, pricesUnder } from './query-price.ts'
import { runQuery } from './run-query.ts'
import { derivationDenied, type JudgedSource } from './sources.ts'

/** What a read by the KB buys at most when the request does not say. */
const maxKbDefault = 64

export type PageSize = {
  readonly limit: number | undefined
  readonly bytesMax: number
  /** Whether all matches are counted. */
  readonly total: boolean
}

/** The row beside its records, not copied with them: this is a part of every read, and spreading is slow. */
export type Page = {
  readonly row: Omit<ListRow, 'records'>
  readonly records: string
  /** Whether it was cut short of its limit. */
  readonly truncated: boolean
}

/** The reply's text, and the position that it was read at. */
export type FreeAnswer = { readonly text: string } & Pick<ListRow, 'height' | 'sequence'>

/** A query that the caller may ask, whatever it was written in. */
export type Question = {
  readonly operation: 'list' | 'sql' | 'query'
  readonly sources: readonly JudgedSource[]
  /** What the answer costs, where that is not the sum of its sources. */
  readonly charges?: readonly Charge[]
  readonly limit: number | undefined
  readonly offset: number
  readonly maxKb: number | undefined
  /** What is said where rows have a price and there is no limit. */
  readonly limitMissing: { readonly pointer: string; readonly problem: string }
  /** It may take long, so it waits for its turn. */
  readonly isHeavy: boolean
  /** Rows that are given one by one: a beginning of them is an answer too. */
  readonly isCuttable: boolean
  readonly compile: (size: PageSize) => CompiledStatement
  /** What the row counts for, where it is not what is there now. */
  readonly place?: ((row: ListRow) => ListRow) | undefined
  /** The reply's text; `total` is the number of matches. */
  readonly reply: (page: Page, total: bigint | number) => string
  /** Of the reply's text; JSON when not given. */
  readonly contentType?: string
  /** Where its free answers are kept: gives the one that is known, or has it made. */
  readonly recall?: (make: () => Promise<FreeAnswer>) => Promise<string | Buffer>
  /** Told after each run. */
  readonly note?: ((took: { readonly ms: number; readonly rows: number }) => void) | undefined
}

/** Answers for free what has no price for the caller, and sells all else. */
export async function answerQuery(call: Call, question: Question): Promise<HttpReply> {
  const charged = chargesOf(question)
  const [first] = charged
  if (first !== undefined) return sell(call, { question, charged, seller: first.tenant })
  const make = () => freeAnswer(call, question)
  const { contentType, recall } = question
  const text = recall === undefined ? (await make()).text : await recall(make)
  return new HttpReply(text, { ...(contentType && { contentType }) })
}

async function freeAnswer(call: Call, question: Question): Promise<FreeAnswer> {
  const size = { limit: question.limit, bytesMax: limits.resultBytesMax, total: true }
  const row = await run(call, question, size)
  const { records } = row
  if (records === null) throw tooLarge(row)
  const { height, sequence, total, count } = row
  const text = question.reply({ row, records, truncated: false }, total ?? count)
  return { text, height, sequence }
}

function chargesOf({ charges, sources }: Question): readonly Charge[] {
  return charges ?? chargedSources(sources)
}

/** What the caller would be asked for at most by today's prices, and of what it is made up; all 0 where it is free. */
export function quoteQuestion(question: Question): {
  readonly cap: bigint
  readonly breakdown: Breakdown
} {
  const charged = chargesOf(question)
  const [first] = charged
  if (first === undefined) return { cap: 0n, breakdown: breakdownOf(question, []) }
  const prices = pricesUnder(charged, { seller: first.tenant, catalog: first.tenant.data.catalog })
  refuseUnlimited(question, prices)
  return { cap: capOf(question, prices) ?? 0n, breakdown: breakdownOf(question, prices) }
}

type Sale = {
  readonly question: Question
  readonly charged: readonly Charge[]
  /** The application that the payment is made to; others get their shares of it. */
  readonly seller: Tenant
}

/** Sells a page. The price is a function of the request: its sources, its limit, and what it says of bytes. */
function sell(call: Call, sale: Sale): Promise<HttpReply> {
  const { question, charged, seller } = sale
  const under = (catalog: Catalog) => pricesUnder(charged, { seller, catalog })
  const now = under(seller.data.catalog)
  refuseUnlimited(question, now)
  return call.service.payments.sell(call.facts, {
    tenant: seller,
    operation: question.operation,
    description: `Records of ${[...new Set(charged.map(({ name }) => name))].join(', ')}`,
    capUnder: (catalog) => capOf(question, under(catalog)),
    breakdown: breakdownOf(question, now),
    deliver: async (catalog) => {
      const prices = under(catalog)
      const page = await largestThatFits(
        call,
        question,
        mostOf(question, rowsPriceOf(prices)).bytes,
      )
      // A count of matches is an aggregate, which is not what was sold: the total tells only what was delivered.
      const { count, height, sequence } = page.row
      const total = question.offset + count
      return {
        status: 200,
        body: Buffer.from(question.reply(page, total)),
        contentType: question.contentType,
        ...chargeOf(prices, page.row, seller),
        rows: count,
        asOf: { block_height: Number(height), sequence },
      }
    },
  })
}

function refuseUnlimited(question: Question, prices: readonly PricedSource[]): void {
  if (rowsPriceOf(prices).perRow === 0n || question.limit !== undefined) return
  const { pointer, problem } = question.limitMissing
  throw invalid(pointer, `${problem}, because every row of this collection has a price`)
}

type Breakdown = {
  readonly per_access: number
  readonly per_row: number
  readonly per_kb: number
  readonly derive?: number
}

function breakdownOf(question: Question, prices: readonly PricedSource[]): Breakdown {
  const rows = rowsPriceOf(prices)
  const most = mostOf(question, rows)
  const derive = sumOf(prices, ({ source, price }) =>
    source.kind === 'derived' ? (price?.perAccess ?? 0n) : 0n,
  )
  return {
    per_access: Number(rows.perAccess),
    per_row: Number(rows.perRow) * most.rows,
    per_kb: Number(costOf({ ...free, perKb: rows.perKb }, most)),
    ...(derive > 0n && { derive: Number(derive) }),
  }
}

/** What the request costs at most; undefined where it cannot be bought under these prices. */
function capOf(question: Question, prices: readonly PricedSource[]): bigint | undefined {
  if (prices.some(({ price }) => price === undefined)) return undefined
  const rows = rowsPriceOf(prices)
  if (rows.perRow > 0n && question.limit === undefined) return undefined
  const most = mostOf(question, rows)
  return sumOf(prices, ({ price = free }) => costOf(price, most))
}

/**
 * What the answer truly costs, to the atomic unit: the sum over its sources. What is other applications' is a share
 * of their own; the platform's part of each is rounded down.
 */
function chargeOf(
  prices: readonly PricedSource[],
  { count, bytes }: Page['row'],
  seller: Tenant,
): { charge: bigint; shares: Share[]; own: bigint } {
  const isEmpty = count === 0
  const size = { rows: count, bytes: isEmpty ? 0 : Number(bytes) }
  const due = prices.map(({ source, price }) => {
    if (price === undefined) throw derivationDenied(source.name)
    const isFree = isEmpty && source.emptyAnswerFree
    return { source, amount: isFree ? 0n : costOf(price, size) }
  })
  const shares = due.flatMap(({ source, amount }): Share[] => {
    if (isOf(source, seller)) return []
    const account = applicationAccount(source.tenant.application.app_id)
    return [{ amount, platformBasisPoints: 0n, account }]
  })
  const own = due.filter(({ source }) => isOf(source, seller))
  const amountOf = ({ amount }: { amount: bigint }) => amount
  return { charge: sumOf(due, amountOf), shares, own: sumOf(own, amountOf) }
}

/** Of the rows that are given; what is derived from costs by access alone. */
function rowsPriceOf(prices: readonly PricedSource[]): Price {
  const rows = prices.filter(({ source }) => source.kind === 'rows')
  return {
    perAccess: sumOf(rows, ({ price = free }) => price.perAccess),
    perRow: sumOf(rows, ({ price = free }) => price.perRow),
    perKb: sumOf(rows, ({ price = free }) => price.perKb),
  }
}

/** What is not priced by the KB is bounded by the service alone; it may have been when the quote was made. */
function mostOf({ limit, maxKb }: Question, { perKb }: Price): { rows: number; bytes: number } {
  const isByKb = perKb > 0n || maxKb !== undefined
  const bytes = isByKb ? (maxKb ?? maxKbDefault) * 1024 : limits.paidResultBytesMax
  return { rows: limit ?? 0, bytes }
}

/** The page, or, where it has more bytes than were bought, the longest beginning of it by halves. */
async function largestThatFits(call: Call, question: Question, bytesMax: number): Promise<Page> {
  let { limit } = question
  for (;;) {
    const row = await run(call, question, { limit, bytesMax, total: false })
    const { records } = row
    if (records !== null) return { row, records, truncated: limit !== question.limit }
    if (!question.isCuttable) throw tooLarge(row)
    const half = Math.floor(Math.min(limit ?? row.count, row.count) / 2)
    if (half === 0) {
      throw new Fault('RESULT_TOO_LARGE', {
        message: `The first record alone is larger than the ${Math.floor(bytesMax / 1024)} KB that were bought; ask with a larger max_kb`,
      })
    }
    limit = half
  }
}

async function run(call: Call, question: Question, size: PageSize): Promise<ListRow> {
  const { world } = call.service
  const startedMs = world.now()
  const row = await runQuery(call.service, question.compile(size), question.isHeavy)
  question.note?.({ ms: world.now() - startedMs, rows: row.count })
  return question.place?.(row) ?? row
}

function tooLarge({ count, bytes, fan_out: isFanOut }: ListRow): Fault {
  const many = `The answer would have ${count} records of ${bytes} bytes or more, past ${limits.rowsMax} records or ${limits.resultBytesMax} bytes; give a limit`
  const joined = `Its joins fetch more than ${limits.joinedRowsMax} records, or too many bytes; give a limit`
  return new Fault('RESULT_TOO_LARGE', {
    message: isFanOut === true ? joined : many,
    details: { records_max: limits.rowsMax, bytes_max: limits.resultBytesMax },
  })
}

function sumOf<T>(items: readonly T[], amount: (item: T) => bigint): bigint {
  return items.reduce((sum, item) => sum + amount(item), 0n)
}
