import { limits } from '@tollbase/contract/limits'
import { assert } from '../../base/assert.ts'
import { Fault, invalid } from '../../base/fault.ts'
import type { Turn } from '../../base/slots.ts'
import { HttpReply } from '../../http/reply.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import type { Call } from '../call.ts'
import { applicationAccount } from '../payments/entries.ts'
import type { PartPrice } from '../payments/offer.ts'
import { free, type Price } from '../tenancy/policy.ts'
import { costOf, isFree } from '../tenancy/price.ts'
import { type Charge, chargesOf, isCharged, meaningOfSources } from './query-price.ts'
import { runQuery } from './run-query.ts'
import { derivationDenied, type JudgedSource } from './sources.ts'
import { freeTurn, paidTurn } from './turn.ts'

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
}

/** The reply's text, and the position that it was read at. */
export type FreeAnswer = { readonly text: string } & Pick<ListRow, 'height' | 'sequence'>

/** A query that the caller may ask, whatever it was written in. */
export type Question = {
  readonly operation: 'list' | 'sql' | 'query'
  readonly sources: readonly JudgedSource[]
  /** What the answer costs, where that is not the sum of its sources. */
  readonly charges?: readonly Charge[]
  /** What is asked, where the request only names it; JSON. */
  readonly definition?: unknown
  readonly limit: number | undefined
  readonly offset: number
  readonly maxKb: number | undefined
  /** What is said where rows have a price and there is no limit. */
  readonly limitMissing: { readonly pointer: string; readonly problem: string }
  /** It may take long, so it waits for its turn. */
  readonly isHeavy: boolean
  /** Rows of its sources are given one by one. */
  readonly isRows: boolean
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
  if (chargesIn(question).some(isCharged)) return sell(call, question)
  const make = () => freeAnswer(call, question)
  const { contentType, recall } = question
  const text = recall === undefined ? (await make()).text : await recall(make)
  return new HttpReply(text, { ...(contentType && { contentType }) })
}

async function freeAnswer(call: Call, question: Question): Promise<FreeAnswer> {
  const size = { limit: question.limit, bytesMax: limits.resultBytesMax, total: true }
  const turn = freeTurn(call, readBy(question))
  const row = await run(call, question, { ...size, turn })
  const { records } = row
  if (records === null) throw tooLarge(row)
  const { height, sequence, total, count } = row
  const text = question.reply({ row, records }, total ?? count)
  return { text, height, sequence }
}

/** The application that is read, the first of several. */
function readBy({ sources }: Question): string {
  return sources[0]?.tenant.application.app_id ?? ''
}

function chargesIn({ charges, sources }: Question): readonly Charge[] {
  return charges ?? chargesOf(sources)
}

/** What the caller would be asked for at most by today's prices, and of what it is made up; all 0 where it is free. */
export function quoteQuestion(question: Question): {
  readonly cap: bigint
  readonly breakdown: Breakdown
} {
  const charges = chargesIn(question)
  const prices = pricesOf(charges)
  return {
    cap: capOf(question, { charges, prices }),
    breakdown: breakdownOf(question, { charges, prices }),
  }
}

/** Who charges, and how much each: the prices are those of the charges, in their order. */
type Priced = { readonly charges: readonly Charge[]; readonly prices: readonly PartPrice[] }

/** Sells a page. The price is a function of the request: its sources, its limit, and what it says of bytes. */
function sell(call: Call, question: Question): Promise<HttpReply> {
  const charges = chargesIn(question)
  const [first] = charges
  assert(first !== undefined, 'what is sold has a price')
  const turn = paidTurn(call, appOf(charges.find(isCharged) ?? first))
  return call.service.payments.sell(call, {
    tenant: first.tenant,
    operation: question.operation,
    description: `Records of ${[...new Set(charges.filter(isCharged).map(({ name }) => name))].join(', ')}`,
    meaning: [meaningOfSources(question.sources), question.definition ?? null, charges.map(nameOf)],
    payees: charges.map((charge) => ({
      account: applicationAccount(appOf(charge)),
      platformBasisPoints: 0,
    })),
    pricedBy: [...new Set([...question.sources, ...charges].map(({ tenant }) => tenant))],
    pricesNow: () => pricesOf(charges),
    capUnder: (prices) => capOf(question, { charges, prices }),
    sellerUnder: (prices) => appOf(charges.find((_, at) => !isFree(prices[at] ?? free)) ?? first),
    breakdownUnder: (prices) => breakdownOf(question, { charges, prices }),
    admit: () => {
      if (question.isHeavy) call.service.querySlots.refuseFull(turn)
    },
    deliver: async (prices) => {
      const { bytes: bytesMax } = mostOf(question, rowsPriceOf({ charges, prices }))
      const page = await boughtPage(call, question, { bytesMax, turn })
      // A count of matches is an aggregate, which is not what was sold: the total tells only what was delivered.
      const { count, height, sequence } = page.row
      const total = question.offset + count
      return {
        status: 200,
        body: Buffer.from(question.reply(page, total)),
        contentType: question.contentType,
        due: dueOf(prices, page.row),
        rows: count,
        asOf: { block_height: Number(height), sequence },
      }
    },
  })
}

function appOf({ tenant }: Charge): string {
  return tenant.application.app_id
}

function nameOf({ kind, name }: Charge): readonly string[] {
  return [kind, name]
}

function pricesOf(charges: readonly Charge[]): readonly PartPrice[] {
  return charges.map(({ price, name, emptyAnswerFree: emptyFree }) => {
    if (price === undefined) throw derivationDenied(name)
    return { ...price, emptyFree }
  })
}

type Breakdown = {
  readonly per_access: number
  readonly per_row: number
  readonly per_kb: number
  readonly derive?: number
}

function breakdownOf(question: Question, priced: Priced): Breakdown {
  const rows = rowsPriceOf(priced)
  const most = mostOf(question, rows)
  const derive = sumOf(pricesOfKind(priced, 'derived'), ({ perAccess }) => perAccess)
  return {
    per_access: Number(rows.perAccess),
    per_row: Number(rows.perRow) * most.rows,
    per_kb: Number(costOf({ ...free, perKb: rows.perKb }, most)),
    ...(derive > 0n && { derive: Number(derive) }),
  }
}

/** What the request costs at most; 400 where it cannot be bought by these prices. */
function capOf(question: Question, priced: Priced): bigint {
  const rows = rowsPriceOf(priced)
  if (rows.perRow > 0n && question.limit === undefined) {
    const { pointer, problem } = question.limitMissing
    throw invalid(pointer, `${problem}, because every row of this collection has a price`)
  }
  const most = mostOf(question, rows)
  return sumOf(priced.prices, (price) => costOf(price, most))
}

/** What the answer truly costs, part by part, to the atomic unit. */
function dueOf(
  prices: readonly PartPrice[],
  { count, bytes }: Pick<Page['row'], 'count' | 'bytes'>,
): readonly bigint[] {
  const isEmpty = count === 0
  const size = { rows: count, bytes: isEmpty ? 0 : Number(bytes) }
  return prices.map((price) => (isEmpty && price.emptyFree ? 0n : costOf(price, size)))
}

/** Of the rows that are given; what is derived from costs by access alone. */
function rowsPriceOf(priced: Priced): Price {
  const rows = pricesOfKind(priced, 'rows')
  return {
    perAccess: sumOf(rows, ({ perAccess }) => perAccess),
    perRow: sumOf(rows, ({ perRow }) => perRow),
    perKb: sumOf(rows, ({ perKb }) => perKb),
  }
}

function pricesOfKind({ charges, prices }: Priced, kind: Charge['kind']): readonly PartPrice[] {
  return prices.filter((_, at) => charges[at]?.kind === kind)
}

/** What is not priced by the KB is bounded by the service alone; it may have been when the quote was made. */
function mostOf({ limit, maxKb }: Question, { perKb }: Price): { rows: number; bytes: number } {
  const isByKb = perKb > 0n || maxKb !== undefined
  const bytes = isByKb ? (maxKb ?? maxKbDefault) * 1024 : limits.paidResultBytesMax
  return { rows: limit ?? 0, bytes }
}

/** The whole page; 413 where it has more bytes than were bought: a part of an answer would look like all of it. */
async function boughtPage(
  call: Call,
  question: Question,
  { bytesMax, turn }: { bytesMax: number; turn: Turn },
): Promise<Page> {
  const { limit } = question
  const row = await run(call, question, { limit, bytesMax, total: false, turn })
  const { records } = row
  if (records === null) throw row.fan_out === true ? tooLarge(row) : notBought(row, bytesMax)
  return { row, records }
}

async function run(
  call: Call,
  question: Question,
  { turn, ...size }: PageSize & { readonly turn: Turn },
): Promise<ListRow> {
  const { world } = call.service
  const startedMs = world.now()
  const { isHeavy } = question
  const row = await runQuery(call.service, question.compile(size), { isHeavy, turn })
  question.note?.({ ms: world.now() - startedMs, rows: row.count })
  return question.place?.(row) ?? row
}

/**
 * Says what to ask for instead, in powers of two: nothing is charged for this, so it tells no more of the data than its
 * order of magnitude.
 */
function notBought({ count, bytes }: ListRow, bytesMax: number): Fault {
  const largestKb = limits.paidResultBytesMax / 1024
  const kb = Math.min(2 ** Math.ceil(Math.log2(Number(bytes) / 1024)), largestKb)
  const fitting = Math.min((count * bytesMax) / Number(bytes), limits.rowsMax)
  const limit = fitting >= 1 ? 2 ** Math.floor(Math.log2(fitting)) : undefined
  const isWithin = count <= limits.rowsMax && Number(bytes) <= limits.paidResultBytesMax
  const ways = [...(isWithin ? [`max_kb ${kb}`] : []), ...(limit ? [`limit ${limit}`] : [])]
  if (ways.length === 0)
    ways.push('fewer fields: its first record alone is more than an answer may have')
  return new Fault('RESULT_TOO_LARGE', {
    message: `The answer is larger than the ${Math.floor(bytesMax / 1024)} KB that were bought, and nothing is charged for that; ask with ${ways.join(', or with ')}`,
    details: { ...(isWithin && { max_kb: kb }), ...(limit && { limit }) },
  })
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
