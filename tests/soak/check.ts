import { verifyDocument } from '@tollbase/verify/verify'
import { type Place, readBooks } from '../faults/place.ts'
import { type Buyer, readBalance } from '../support/buyer.ts'
import { type Market, readEarnings } from '../support/market.ts'
import type { Json } from '../support/service.ts'
import type { Random } from './random.ts'
import { funds } from './scene.ts'
import type { Purchase, Tally } from './tally.ts'

const sampleSize = 20
/** The divisor of the split: sellers get 80 of 100. */
const sellersPercent = 80n

/** Checks after a kill that a sample of the acknowledged records is there and proven. */
export async function checkSample(
  place: Place,
  tally: Tally,
  from: { markets: readonly Market[]; random: Random },
): Promise<void> {
  for (const market of from.markets) {
    const known = [...(tally.acknowledged.get(market.appId) ?? [])]
    for (let at = 0; at < Math.min(sampleSize, known.length); at++) {
      const [id, n] = known[from.random.integer(known.length)] ?? ['', 0]
      if (!(await isProven(place, market, { id, n }))) {
        tally.counts.lost += 1
        tally.wrong(`${market.appId}: ${id} was acknowledged and is not there as it was sent`)
      }
    }
  }
}

/** Checks that the proof of a record holds and is for this very record; a passing failure counts as proven. */
async function isProven(
  place: Place,
  market: Market,
  record: { id: string; n: number },
): Promise<boolean> {
  const get = (path: string) =>
    place.service
      .request('GET', `/api/apps/${market.appId}${path}`, { headers: market.headers })
      .catch(() => undefined)
  const head = await get('/chain/checkpoint')
  const reply = await get(`/collections/open/records/${record.id}/proof`)
  if (head?.status !== 200 || reply === undefined || reply.status === 503) return true
  // The tables may still be behind; the end of the run checks missing records.
  if (reply.status === 404) return true
  if (reply.status !== 200 || !verifyDocument(reply.text, { trustedKey: head.body.key }).ok)
    return false
  const entry = Buffer.from(reply.body.entry, 'base64').toString()
  return JSON.parse(entry.slice(entry.indexOf('\n') + 1)).n === record.n
}

/** Checks an idle service: all acknowledged records are there, none is there twice, and the money adds up. */
export async function checkAll(
  place: Place,
  tally: Tally,
  of: { markets: readonly Market[]; buyers: readonly Buyer[] },
): Promise<void> {
  for (const market of of.markets) {
    await checkRecords(place, tally, market)
    await checkOrders(place, tally, market)
    const due = total(tally.purchases.filter(({ app, answer }) => app === market.appId && answer))
    expectEqual(tally, `earnings of ${market.appId}`, {
      expected: (due * sellersPercent) / 100n,
      found: await readEarnings(place.service, market),
    })
  }
  for (const { address } of of.buyers) {
    const own = tally.purchases.filter(({ buyer, answer }) => buyer === address && answer)
    const expected = funds - total(own)
    const onBalance = await readBalance(place.service, address)
    expectEqual(tally, `money of ${address}`, {
      expected,
      found: (await place.onChain(address)) + onBalance,
    })
    // Change is left only where a payment bought something cheaper than it was made for.
    if (tally.passedOn.has(address)) continue
    expectEqual(tally, `balance of ${address}`, { expected: 0n, found: onBalance })
  }
}

/** Checks a stopped service: the audit, and the ledger against the chain. */
export async function checkBooks(place: Place, tally: Tally, received?: bigint): Promise<void> {
  const { report, accounts } = await readBooks(place.dataDir)
  tally.counts.audits += 1
  if (!report.equal) tally.wrong(`audit: ${JSON.stringify(report.difference ?? report.unfinished)}`)
  const sum = [...accounts.values()].reduce((all, one) => all + one, 0n)
  expectEqual(tally, 'sum of all accounts', { expected: 0n, found: sum })
  if (received === undefined) return
  const outside = [...accounts].filter(([name]) => name.startsWith('outside:'))
  const deposited = -outside.reduce((all, [, one]) => all + one, 0n)
  expectEqual(tally, 'deposits of the ledger', { expected: received, found: deposited })
}

async function checkRecords(place: Place, tally: Tally, market: Market): Promise<void> {
  const found = new Map<string, number>()
  for await (const { id, n } of iterateRecords(place, `${market.appId}::open`, {
    market,
    sortBy: 'id',
  }))
    found.set(id, n)
  for (const [id, n] of tally.acknowledged.get(market.appId) ?? []) {
    if (found.get(id) === n) continue
    tally.counts.lost += 1
    tally.wrong(`${market.appId}: ${id} was acknowledged with ${n} and is ${found.get(id)}`)
  }
  const sent = tally.sent.get(market.appId)
  for (const id of found.keys()) if (sent?.has(id) !== true) tally.wrong(`nobody sent ${id}`)
}

async function checkOrders(place: Place, tally: Tally, market: Market): Promise<void> {
  const parts = new Map<string, number>()
  for await (const { marker } of iterateRecords(place, `${market.appId}::orders`, {
    market,
    sortBy: 'marker',
  }))
    parts.set(marker, (parts.get(marker) ?? 0) + 1)
  for (const { app, marker, answer } of tally.purchases) {
    if (app !== market.appId || marker === undefined) continue
    const expected = answer === undefined ? 0 : 2
    const count = parts.get(marker) ?? 0
    if (count === expected) continue
    if (count > expected) tally.counts.double += 1
    else tally.counts.lost += 1
    tally.wrong(`${app}: ${marker} was paid for ${expected} records and has ${count}`)
  }
}

const pageRows = 10_000

async function* iterateRecords(
  place: Place,
  root: string,
  { market, sortBy }: { market: Market; sortBy: string },
): AsyncGenerator<Json> {
  for (let offset = 0; ; offset += pageRows) {
    const { status, body, text } = await place.service.request('POST', '/list', {
      headers: market.headers,
      body: { root, limit: pageRows, offset, sortBy },
    })
    if (status !== 200) throw new Error(`${root} cannot be read: ${text}`)
    yield* body.records
    if (body.records.length < pageRows) return
  }
}

function total(purchases: readonly Purchase[]): bigint {
  return purchases.reduce((sum, { amount }) => sum + amount, 0n)
}

function expectEqual(tally: Tally, what: string, is: { expected: bigint; found: bigint }): void {
  if (is.expected !== is.found) tally.wrong(`${what}: ${is.found} instead of ${is.expected}`)
}
