import { listRecords } from '../../packages/server/src/operations/listing/list-records.ts'
import { buyPass } from '../../packages/server/src/operations/pricing/buy-pass.ts'
import { updatePricing } from '../../packages/server/src/operations/pricing/update-pricing.ts'
import type { Chance } from './chance.ts'
import {
  computeExhibitQuote,
  type Exhibit,
  exhibits,
  isExhibit,
  type Meter,
  makeExhibitRequest,
  makeExhibitRules,
} from './exhibits.ts'
import type { Asked } from './send-request.ts'

/** A seller with every kind of price that a count decides on: tiers, a quota, passes, KB, and bounds. */
export const library = 'library'

/** The thing of the library that an order is for. */
export type LibraryItem = 'pages' | 'scans' | 'pass' | 'maps' | Exhibit

export const pages = Array.from({ length: 9 }, (_, at) => ({ id: `p${at}`, text: `page ${at}` }))
/** Texts that are not one byte a character, of 60 to 300 bytes each. */
export const scans = Array.from({ length: 5 }, (_, at) => ({
  id: `x${at}`,
  ink: 'ä'.repeat(20 + 30 * at),
}))

/** A thing that costs so much that a channel which buys some of it is claimed from at once. */
export const maps = [{ id: 'm0', text: 'map of the whole' }]
export const mapPrice = 1_900_000n

/** The cost of each page from the first on, and of those above each bound, in one month. */
const pageTiers = [
  { above: 0, amount: 400n },
  { above: 8, amount: 300n },
  { above: 20, amount: 150n },
] as const
/** Pages that are free in a month for a buyer who has paid once. */
const freePages = 5
/** The prices that a count decides on: pages and exhibits, each by itself. */
export const meters = {
  ...exhibits,
  pages: { counts: 'row', tiers: pageTiers, free: freePages, period: 'month' },
} as const satisfies Readonly<Record<string, Meter>>
export const passAmount = 3_000n
const passHours = 24
export const scanPrice = { perAccess: 50n, perKb: 700n, minimum: 200n, maximum: 420n } as const
/** The most KB that a request for scans asks for. */
const scanKb = 2

const [first, ...others] = pageTiers
const read = { operation: 'read' } as const
const priced = (collection: string, model: string, amount: bigint) => ({
  ...{ target: { collection }, ...read, model, amount: String(amount) },
})

/** The library's prices, as it sets them when it is founded. */
export function makeLibraryPrices(): Asked {
  const params = { app: library }
  const target = { collection: 'pages' }
  const tiers = others.map(({ above, amount }) => ({ above, amount: String(amount) }))
  const body = {
    set: [
      { ...priced('pages', 'per_row', first.amount), tiers, period: 'month' },
      { target, ...read, model: 'free_quota', unit: 'row', quantity: freePages, period: 'month' },
      { target, ...read, model: 'time_pass', hours: passHours, amount: String(passAmount) },
      priced('scans', 'per_access', scanPrice.perAccess),
      priced('scans', 'per_kb', scanPrice.perKb),
      priced('scans', 'minimum', scanPrice.minimum),
      priced('scans', 'maximum', scanPrice.maximum),
      priced('maps', 'per_access', mapPrice),
      ...makeExhibitRules('extracts'),
      ...makeExhibitRules('plates'),
    ],
  }
  return {
    operationId: 'updatePricing',
    path: `/api/apps/${library}/pricing`,
    params,
    body,
    run: (call, sent) => updatePricing(call, { params, headers: {}, body: sent } as never),
  }
}

export function pickLibraryItem(
  { chance, subjects }: { readonly chance: Chance; readonly subjects: ReadonlySet<string> },
  who: string,
): LibraryItem | undefined {
  if (!subjects.has('library') || !chance.happens(`${who} goes to the library`, 700))
    return undefined
  return chance.pick(`${who} takes`, ['pages', 'pages', 'pages', 'pages', 'scans', 'pass'] as const)
}

/** Makes the request for so many pages or scans, or for a pass. */
export function makeLibraryRequest(item: LibraryItem, limit: number): Asked {
  if (item === 'pass') {
    const params = { app: library }
    return {
      operationId: 'buyPass',
      path: `/api/apps/${library}/passes`,
      params,
      body: { target: { collection: 'pages' }, hours: passHours },
      run: (call, body) => buyPass(call, { params, body: body as never }),
    }
  }
  if (isExhibit(item)) return makeExhibitRequest(item, limit)
  const kb = item === 'scans' ? { max_kb: scanKb } : {}
  return {
    operationId: 'listRecords',
    path: '/list',
    body: { root: `${library}::${item}`, limit, ...kb },
    run: (call, body) => listRecords(call, { body: body as never }),
  }
}

/** The most that a request costs: nobody is known when it is quoted, so nothing is taken off. */
export function computeLibraryQuote(item: LibraryItem, limit: number): bigint {
  if (item === 'pass') return passAmount
  if (item === 'maps') return mapPrice
  if (isExhibit(item)) return computeExhibitQuote(item, limit)
  return item === 'pages' ? first.amount * BigInt(limit) : computeScanCost(scanKb * 1024)
}

export function computeScanCost(bytes: number): bigint {
  const { perAccess, perKb, minimum, maximum } = scanPrice
  const exact = perKb * BigInt(bytes)
  const sum = perAccess + exact / 1024n + (exact % 1024n === 0n ? 0n : 1n)
  if (sum < minimum) return minimum
  return sum > maximum ? maximum : sum
}
