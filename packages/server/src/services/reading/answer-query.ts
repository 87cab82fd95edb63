import { limits } from '@tollbase/contract/limits'
import type { SoldItem } from '@tollbase/verify/sale-details'
import { assert } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { Turn } from '../../base/semaphore.ts'
import { HttpReply } from '../../http/reply.ts'
import { computeTotalDue, type Size } from '../../model/compute-cost.ts'
import { isEncrypted, makeNotOnPrivateFault } from '../../model/encrypted-collections.ts'
import { isFree } from '../../model/find-price.ts'
import { makeMeasuredRead } from '../../model/measured-use.ts'
import { freePrice } from '../../model/policy.ts'
import { listSourceNames } from '../../model/source-names.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { ListQuery } from '../../query/list-query.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import type { Call } from '../call.ts'
import type { AuthorizedSource } from './authorize-sources.ts'
import { findFittingLimit } from './find-fitting-limit.ts'
import {
  type Breakdown,
  buildSourcesMeaning,
  computeBreakdown,
  computeBytesMax,
  computeRowsPrice,
  computeSizeMax,
  hasPrice,
  listMost,
  listPricedSources,
  listPrices,
  listSizes,
  type PricedSource,
  type ReadBounds,
  toSize,
} from './priced-sources.ts'
import { makeFreeTurn, makePaidTurn } from './query-turn.ts'
import { type FreeAnswer, readThroughCache } from './read-through-cache.ts'
import { type QueryRunner, runQuery } from './run-query.ts'

/** The parts of the service by which a prepared read is answered or sold. */
export type AnswerParts = 'world' | 'payments' | 'queryRunner' | 'queryStatistics' | 'resultCache'

export type PageSize = {
  readonly limit: number | undefined
  readonly bytesMax: number
  /** True where all matches are counted. */
  readonly total: boolean
}

/** The row beside its records, not copied with them: this is a part of every read, and spreading is slow. */
export type Page = {
  readonly row: Omit<ListRow, 'records'>
  readonly records: string
}

/** A read that the caller may make, whatever language it was written in. */
export type ReadRequest = ReadBounds & {
  readonly operation: 'list' | 'sql' | 'query'
  readonly sources: readonly AuthorizedSource[]
  /** The parts of the answer that may cost money, where they are not its sources. */
  readonly priced?: readonly PricedSource[]
  /** The definition of the query, where the request only names it; JSON. */
  readonly definition?: unknown
  readonly offset: number
  /** True where it may take long, so that it waits for a slot. */
  readonly isHeavy: boolean
  /** True where its best plan is the same for all values. */
  readonly keepsPlan?: boolean
  /** True where rows of its sources are given one by one. */
  readonly isRows: boolean
  /** True where its caller has values computed: the size of the answer can then depend on any value. */
  readonly isComputed?: boolean
  readonly compile: (size: PageSize) => CompiledStatement
  /** Runs it over records that the service opens, instead of the statement. */
  readonly runOpened?:
    | ((runner: QueryRunner, size: PageSize, turn: Turn) => Promise<ListRow>)
    | undefined
  /** Gives the row the position that it counts for, where that is not the present one. */
  readonly setPosition?: ((row: ListRow) => ListRow) | undefined
  /**
   * Makes the reply's text, in whose turn it was read; `total` is the number of matches. A fault where it is too long:
   * nothing is charged then.
   */
  readonly reply: (
    page: Page,
    total: bigint | number,
    turn: Turn,
  ) => string | Promise<string | Buffer>
  /** The content type of the reply; JSON when not given. */
  readonly contentType?: string
  /**
   * Makes the key under which free answers are cached; undefined where this very answer is not. Answers of a read
   * without it are never cached.
   */
  readonly makeCacheKey?: () => string | undefined
  /** The list for whose shape the time of each run is noted. */
  readonly observed?: { readonly collection: string; readonly query: ListQuery } | undefined
}

/** Answers a read free of charge where it has no price for the caller, and sells it otherwise. */
export async function answerQuery(
  call: Call<AnswerParts>,
  request: ReadRequest,
): Promise<HttpReply> {
  if (getPricedSources(request).some(hasPrice)) return sellRead(call, request)
  const make = () => makeFreeAnswer(call, request)
  const { contentType, makeCacheKey: makeKey, sources } = request
  const text =
    makeKey === undefined
      ? (await make()).text
      : await readThroughCache(call.service.resultCache, { makeKey, sources }, make)
  return new HttpReply(text, { ...(contentType && { contentType }) })
}

async function makeFreeAnswer(
  call: Call<'world' | 'queryRunner' | 'queryStatistics'>,
  request: ReadRequest,
): Promise<FreeAnswer> {
  const size = { limit: request.limit, bytesMax: limits.resultBytesMax, total: true }
  const turn = makeFreeTurn(call, getReadApp(request))
  const row = await run(call, request, { ...size, turn })
  const { records } = row
  if (records === null) throw makeTooLargeFault(row)
  const { height, sequence, total, count } = row
  const text = await request.reply({ row, records }, total ?? count, turn)
  return { text, height, sequence }
}

/** Returns the application that is read, the first of several. */
function getReadApp({ sources }: ReadRequest): string {
  return sources[0]?.tenant.application.app_id ?? ''
}

/** An answer that is bought is kept as it is, for its retry: plaintext of an encrypted collection must not be in it. */
function getPricedSources({ priced, sources }: ReadRequest): readonly PricedSource[] {
  const parts = priced ?? listPricedSources(sources)
  const sealed = sources.find(({ readable }) => isEncrypted(readable))
  if (sealed !== undefined && parts.some(hasPrice))
    throw makeNotOnPrivateFault(sealed.readable.name, 'an answer that is bought', {
      remedy: 'ask for the priced part by itself',
    })
  return parts
}

/**
 * Measures the answer where every owner lets its size make the quote; undefined where the request alone does, as where
 * the size would tell more than how many records match, and how large they are. 413 where it is more than can be
 * bought.
 */
export async function findQuotedSize(
  call: Call<'world' | 'queryRunner' | 'queryStatistics'>,
  request: ReadRequest,
): Promise<Size | undefined> {
  if (request.isComputed === true) return undefined
  const charged = getPricedSources(request).filter(hasPrice)
  if (charged.length === 0 || charged.some((one) => !one.isQuotedByResult)) return undefined
  const turn = makeFreeTurn(call, getReadApp(request))
  const bytesMax = computeBytesMax(request)
  const { row } = await readBoughtPage(call, request, { bytesMax, turn, tellsSize: true })
  return toSize(row)
}

/**
 * Computes the most that the caller would be asked for by today's prices, and its parts; all 0 where it is free. `size`
 * is that of the answer where it makes the quote.
 */
export function quoteRead(
  request: ReadRequest,
  size?: Size,
): {
  readonly cap: bigint
  readonly breakdown: Breakdown
} {
  const priced = getPricedSources(request)
  const prices = listPrices(priced)
  return {
    cap: computeTotalDue(prices, listMost(request, { priced, prices, size })),
    breakdown: computeBreakdown(request, { priced, prices, size }),
  }
}

/**
 * Sells a page. The price is a function of the request: its sources, its limit and its limit of bytes; or of the
 * answer, where all owners chose that.
 */
async function sellRead(
  call: Call<'world' | 'payments' | 'queryRunner' | 'queryStatistics'>,
  request: ReadRequest,
): Promise<HttpReply> {
  const priced = getPricedSources(request)
  const [first] = priced
  assert(first !== undefined, 'what is sold has a price')
  const turn = makePaidTurn(call.requestInfo, getApp(priced.find(hasPrice) ?? first))
  const size = await findQuotedSize(call, request)
  const holds = size === undefined ? '' : ` (the answer holds ${size.rows} in ${size.bytes} bytes)`
  return call.service.payments.sell(call, {
    tenant: first.tenant,
    operation: request.operation,
    description: `Records of ${[...new Set(priced.filter(hasPrice).map(({ name }) => name))].join(', ')}${holds}`,
    meaning: [
      buildSourcesMeaning(request.sources),
      request.definition ?? null,
      priced.map(listNameParts),
      // A quote by result is for less than the request may give once its owner does not quote so any more.
      ...(size === undefined ? [] : ['by_result']),
    ],
    payees: priced.map((one) => ({
      account: toApplicationAccount(getApp(one)),
      platformBasisPoints: 0,
      item: nameSoldItem(one),
    })),
    pricedBy: [...new Set([...request.sources, ...priced].map(({ tenant }) => tenant))],
    pricesNow: () => listPrices(priced),
    ...(size && { isByResult: true }),
    mostUnder: (prices) => listMost(request, { priced, prices, size }),
    sellerUnder: (prices) =>
      getApp(priced.find((_, at) => !isFree(prices[at] ?? freePrice)) ?? first),
    breakdownUnder: (prices) => computeBreakdown(request, { priced, prices, size }),
    refuseUndeliverable: () => {
      if (request.isHeavy) call.service.queryRunner.semaphore.refuseFull(turn)
    },
    deliver: async (prices) => {
      const most = computeSizeMax(request, computeRowsPrice({ priced, prices }))
      const bytesMax = size === undefined ? most.bytes : computeBytesMax(request)
      const tellsSize = size !== undefined || request.isComputed !== true
      const page = await readBoughtPage(call, request, { bytesMax, turn, tellsSize })
      // It was measured a moment ago, and nobody pays for more than that.
      const came = toSize(page.row)
      if (size !== undefined && (came.rows > size.rows || came.bytes > size.bytes))
        throw new Fault('OFFER_CHANGED')
      // A count of matches is an aggregate, which was not sold: the total tells only the rows that were delivered.
      const { count, height, sequence } = page.row
      const total = request.offset + count
      const text = await request.reply(page, total, turn)
      const sizes = listSizes(prices, came)
      return {
        status: 200,
        body: typeof text === 'string' ? Buffer.from(text) : text,
        contentType: request.contentType,
        sizes,
        measured: priced.map(({ measuredBy: by, version }, at) =>
          makeMeasuredRead(prices[at] ?? freePrice, sizes[at] ?? null, { by, version }),
        ),
        sources: listSourceNames(request.sources),
        rows: count,
        asOf: { block_height: Number(height), sequence },
      }
    },
  })
}

/**
 * Reads the whole page; 413 where it has more bytes than were bought: a part of an answer would look like all of
 * it. `tellsSize` is false where the size tells more than how many records match, and how large they are.
 */
async function readBoughtPage(
  call: Call<'world' | 'queryRunner' | 'queryStatistics'>,
  request: ReadRequest,
  { bytesMax, turn, tellsSize }: { bytesMax: number; turn: Turn; tellsSize: boolean },
): Promise<Page> {
  const { limit } = request
  const size = { limit, bytesMax, total: false, turn }
  const row = await run(call, request, size).catch((error: unknown) => {
    throw tellsSize || !isOfRecords(error) ? error : makeUnsoldFault(size, error)
  })
  const { records } = row
  if (records !== null) return { row, records }
  if (!tellsSize) throw makeUnsoldFault(size)
  throw row.fan_out === true ? makeTooLargeFault(row) : makeNotBoughtFault(row, bytesMax)
}

/** Returns whether it depends on the records that a statement is refused once it runs. */
function isOfRecords(error: unknown): boolean {
  return error instanceof Fault && ['QUERY_TOO_EXPENSIVE', 'VALIDATION_FAILED'].includes(error.code)
}

async function run(
  call: Call<'world' | 'queryRunner' | 'queryStatistics'>,
  request: ReadRequest,
  { turn, ...size }: PageSize & { readonly turn: Turn },
): Promise<ListRow> {
  const { world, queryRunner, queryStatistics } = call.service
  const startedMs = world.now()
  const { isHeavy, keepsPlan = false, observed, runOpened } = request
  const row =
    runOpened === undefined
      ? await runQuery(queryRunner, request.compile(size), { isHeavy, keepsPlan, turn })
      : await runOpened(queryRunner, size, turn)
  if (observed !== undefined)
    queryStatistics.note(observed.collection, observed.query, {
      ms: world.now() - startedMs,
      rows: row.count,
    })
  return request.setPosition?.(row) ?? row
}

/**
 * Makes the one fault of all answers of a caller's own computing that are refused once they are computed. Nothing is
 * charged for them, so their buyer is not told why, and by how much: who asks for a large text for some values, and for a
 * larger one, or for a number out of range, for others, would read the records for nothing. So it names the most KB that
 * there are, of which those that come are paid, and half of the limit that was asked for.
 */
function makeUnsoldFault({ bytesMax, limit }: PageSize, cause?: unknown): Fault {
  const largestKb = limits.resultBytesMax / 1024
  const details = {
    ...(bytesMax < limits.resultBytesMax && { max_kb: largestKb }),
    ...(limit !== undefined && limit > 1 && { limit: Math.floor(limit / 2) }),
  }
  const ways = Object.entries(details).map(([name, value]) => `${name} ${value}`)
  if (ways.length === 0) ways.push('narrower conditions')
  return new Fault('RESULT_TOO_LARGE', {
    message: `The answer has more than the ${Math.floor(bytesMax / 1024)} KB that were bought, or more than a query may fetch or compute. Nothing is charged, so it is not told which, or how much more; ask with ${ways.join(', or with ')}: what comes is charged, and no more`,
    details,
    ...(cause !== undefined && { cause }),
  })
}

/**
 * Makes the fault that names a smaller request, in powers of two: nothing is charged for it, so it tells no more of
 * the data than its order of magnitude.
 */
function makeNotBoughtFault({ count, bytes }: ListRow, bytesMax: number): Fault {
  const largestKb = limits.resultBytesMax / 1024
  const kb = Math.min(2 ** Math.ceil(Math.log2(Number(bytes) / 1024)), largestKb)
  const limit = findFittingLimit({ count, bytes }, bytesMax)
  const isWithin = count <= limits.rowsMax && Number(bytes) <= limits.resultBytesMax
  const ways = [...(isWithin ? [`max_kb ${kb}`] : []), ...(limit ? [`limit ${limit}`] : [])]
  if (ways.length === 0)
    ways.push('fewer fields: its first record alone is more than an answer may have')
  return new Fault('RESULT_TOO_LARGE', {
    message: `The answer is larger than the ${Math.floor(bytesMax / 1024)} KB that were bought, and nothing is charged for that; ask with ${ways.join(', or with ')}`,
    details: { ...(isWithin && { max_kb: kb }), ...(limit && { limit }) },
  })
}

function makeTooLargeFault({ count, bytes, fan_out: isFanOut }: ListRow): Fault {
  const { rowsMax, resultBytesMax } = limits
  const limit = isFanOut === true ? undefined : findFittingLimit({ count, bytes }, resultBytesMax)
  const remedy = limit === undefined ? 'give a limit' : `give a limit, such as ${limit}`
  const many = `The answer would have ${count} records of ${bytes} bytes or more, past ${rowsMax} records or ${resultBytesMax} bytes; ${remedy}`
  const joined = `Its joins fetch more than ${limits.joinedRowsMax} records, or too many bytes; ${remedy}`
  return new Fault('RESULT_TOO_LARGE', {
    message: isFanOut === true ? joined : many,
    details: { records_max: rowsMax, bytes_max: resultBytesMax, ...(limit && { limit }) },
  })
}

function getApp({ tenant }: PricedSource): string {
  return tenant.application.app_id
}

/** An application's own things have plain names. */
function nameSoldItem(one: PricedSource): SoldItem {
  const { name, soldAs: kind } = one
  const prefix = `${getApp(one)}::`
  return { kind, name: name.startsWith(prefix) ? name.slice(prefix.length) : name }
}

function listNameParts({ kind, name }: PricedSource): readonly string[] {
  return [kind, name]
}
