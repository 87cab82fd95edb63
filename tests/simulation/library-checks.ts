import type { Body, Books } from './books.ts'
import type { ChannelOrder } from './channel-order.ts'
import type { Meter } from './exhibits.ts'
import {
  computeScanCost,
  library,
  mapPrice,
  maps,
  meters,
  pages,
  passAmount,
  scans,
} from './library.ts'
import { type Order, readRows } from './order.ts'
import { getPlate } from './plates.ts'

/** The part of a purchase that matters here; the answer of one by a channel may be lost. */
export type Buying = Pick<
  Order,
  'name' | 'libraryItem' | 'rows' | 'delivered' | 'deliveredStep' | 'signedStep'
> &
  Partial<Pick<Order, 'isUpto'> & Pick<ChannelOrder, 'channel'>>

type Sold = { readonly order: Buying; readonly sale: Body; readonly charge: bigint }

/** A purchase that was begun, perhaps, and never sold: until it is given up its answer may wait for its money. */
export type Unsold = Buying & Pick<Order, 'payer'>

/**
 * Checks what the library sold: each answer is what was asked for; scans cost what their bytes do; and the pages of each
 * buyer, and the exhibits that he saw, cost, all in all, what his tiers, his quotas and his passes make of them, by the
 * books in their order.
 */
export function checkLibrary(
  byId: ReadonlyMap<string, Buying>,
  { books, unsold }: { readonly books: Books; readonly unsold: readonly Unsold[] },
): string[] {
  const sold: Sold[] = [...books.sales].flatMap(([id, sale]) => {
    const order = byId.get(id)
    const isTheirs = sale.app === library && order?.libraryItem !== undefined
    return isTheirs ? [{ order, sale, charge: BigInt(sale.amount) }] : []
  })
  const buyers = new Map<string, Sold[]>()
  for (const one of sold) {
    const buyer = findBuyer(one.order, one.sale.payer)
    buyers.set(buyer, [...(buyers.get(buyer) ?? []), one])
  }
  const counted = [...buyers].flatMap(([buyer, own]) =>
    Object.entries(meters).flatMap(([item, meter]) => {
      const open = unsold.filter(
        (one) => findBuyer(one, one.payer) === buyer && one.libraryItem === item,
      )
      return checkCounted(own, { buyer, item, meter, open })
    }),
  )
  return [...sold.flatMap(checkSold), ...counted]
}

/** Finds the holder of tiers, quotas and passes: a channel of its own where another key than its payer's signs the vouchers. */
function findBuyer({ channel }: Buying, payer: string): string {
  if (channel === undefined) return payer
  const { payer: opener, payerAuthorizer } = channel.config
  return opener === payerAuthorizer ? payer : `channel:${channel.id}`
}

function checkSold({ order, sale, charge }: Sold): string[] {
  const { name, libraryItem, rows, delivered } = order
  const buyer = findBuyer(order, sale.payer)
  if ((sale.buyer ?? sale.payer) !== buyer)
    return [`${name} was bought by ${buyer}, not ${sale.buyer ?? sale.payer}`]
  if (libraryItem === 'pass')
    return charge === passAmount ? [] : [`${name}, a pass, cost ${charge}`]
  if (libraryItem === 'plates') {
    const isRight = delivered === undefined || delivered.text === String(getPlate(rows).bytes)
    return isRight ? [] : [`${name} was sold another plate: ${delivered.text}`]
  }
  const shelves = { pages, scans, maps, extracts: pages, digests: pages }
  const expected = JSON.stringify(shelves[libraryItem ?? 'pages'].slice(0, rows))
  const found = delivered && JSON.stringify(readRows(delivered.text))
  if (found !== undefined && found !== expected)
    return [`${name} was sold ${found}, and not ${expected}`]
  // The brackets are no part of the records.
  const cost = computeScanCost(Buffer.byteLength(expected) - 2)
  if (libraryItem === 'maps') return charge === mapPrice ? [] : [`${name}, a map, cost ${charge}`]
  const isRight = libraryItem !== 'scans' || charge === cost
  return isRight ? [] : [`${name}, ${rows} scans, cost ${charge}, and not ${cost}`]
}

/** The purchases of a buyer beside another one, by the books. */
type Beside = {
  readonly earlier: readonly Buying[]
  readonly later: readonly Buying[]
  readonly hasPaid: boolean
  /** Uses of the quota of its period. */
  readonly free: number
}

type Counted = {
  readonly buyer: string
  readonly item: string
  readonly meter: Meter
  /** Purchases of it that the buyer began, and that were not sold. */
  readonly open: readonly Unsold[]
}

/** Checks what one buyer had of a thing: each purchase after those before it, and all of a period together. */
function checkCounted(sold: readonly Sold[], counted: Counted): string[] {
  const { buyer, item, meter } = counted
  const isOfItem = ({ order }: Sold) => order.libraryItem === item
  const single = sold.flatMap((one, at) => {
    const before = sold.slice(0, at)
    const alike = before.filter((each) => isOfItem(each) && getPeriod(each) === getPeriod(one))
    return !isOfItem(one)
      ? []
      : checkPurchase(one, counted, {
          earlier: before.map(({ order }) => order),
          later: sold.slice(at + 1).map((each) => each.order),
          hasPaid: before.some(({ charge }) => charge > 0n),
          free: sumUses(alike, `free_${meter.counts}`),
        })
  })
  const periods = new Set(sold.filter(isOfItem).map(getPeriod))
  const all = [...periods].flatMap((period) => {
    const own = sold.filter((one) => isOfItem(one) && getPeriod(one) === period)
    const [free, paid] = [sumUses(own, `free_${meter.counts}`), sumUses(own, meter.counts)]
    const spent = own.reduce((sum, { charge }) => sum + charge, 0n)
    const due = sumTiers(meter, paid)
    const most = isBesideUpto(own) ? sumApart(own, meter) : due
    return [
      ...(free > meter.free ? [`${buyer} had ${free} ${item} free in ${period}`] : []),
      ...(due <= spent && spent <= most
        ? []
        : [`${buyer} paid ${spent} for ${paid} ${item} in ${period}, and not ${due} to ${most}`]),
    ]
  })
  return [...single, ...all]
}

/** Checks that things are free for who may have them so, and for who must. */
function checkPurchase(one: Sold, { item, meter, open }: Counted, beside: Beside): string[] {
  const { order, sale, charge } = one
  const { earlier, later, hasPaid, free } = beside
  const { name } = order
  const countUses = ({ rows }: Buying) => (meter.counts === 'row' ? rows : 1)
  const count = countUses(order)
  const isOver = ({ deliveredStep = Number.POSITIVE_INFINITY }: Buying) =>
    deliveredStep < order.signedStep
  const { deliveredStep: endStep = Number.POSITIVE_INFINITY } = order
  // One whose payment failed keeps its part until that has ended, and by then its buyer is back for nothing more.
  const begun = open.filter(({ signedStep }) => signedStep < endStep)
  const kept = begun.reduce((sum, each) => sum + countUses(each), 0)
  const isAlone = earlier.every(isOver) && later.every(({ signedStep }) => signedStep > endStep)
  const passes = item === 'pages' ? earlier.filter(({ libraryItem }) => libraryItem === 'pass') : []
  if (sale.uses === undefined || sale.uses.length === 0) {
    const isCovered = passes.length > 0 && charge === 0n
    return isCovered ? [] : [`${name} cost ${charge} by a pass that nobody bought`]
  }
  const [freeNow, paidNow] = [sumUses([one], `free_${meter.counts}`), sumUses([one], meter.counts)]
  // Another purchase that is under way may have kept a part of the quota, whichever is booked first.
  const least = hasPaid && isAlone ? Math.min(count, meter.free - free - kept) : 0
  return [
    ...(passes.some(isOver) ? [`${name} cost ${charge}, and its buyer had a pass`] : []),
    ...(freeNow + paidNow === count
      ? []
      : [`${name}: ${freeNow} free ${item} and ${paidNow} others are not ${count}`]),
    ...(freeNow > 0 && !hasPaid
      ? [`${name}: ${freeNow} ${item} were free for who never paid`]
      : []),
    ...(freeNow < least ? [`${name}: ${freeNow} ${item} were free, and ${least} had to be`] : []),
    ...checkPeriod(one, meter),
  ]
}

/** The period is that of the day on which it was sold, or of the day before, where it was held until then. */
function checkPeriod(one: Sold, { period }: Meter): string[] {
  const soldMs = Date.parse(one.sale.delivered_at)
  const days = [soldMs, soldMs - dayMs].map((ms) => new Date(ms).toISOString())
  const found = getPeriod(one)
  return days.some((day) => day.slice(0, period === 'day' ? 10 : 7) === found)
    ? []
    : [`${one.order.name} was sold at ${days[0]}, and counts in ${found}`]
}

const dayMs = 24 * 3_600_000

function getPeriod({ sale }: Sold): string | undefined {
  return sale.uses?.[0]?.period
}

function sumUses(
  sold: readonly Sold[],
  member: 'row' | 'free_row' | 'request' | 'free_request',
): number {
  const uses = sold.flatMap(({ sale }) => sale.uses ?? [])
  return uses.reduce((sum, use) => sum + Number(use[member]), 0)
}

/**
 * Says whether one was bought while a payment by `upto` for another one was under way: that leads to no cheaper tier
 * before its money is there, and its own cost was computed before.
 */
function isBesideUpto(own: readonly Sold[]): boolean {
  const end = ({ deliveredStep = Number.POSITIVE_INFINITY }: Buying) => deliveredStep
  return own.some(
    ({ order: one }) =>
      one.isUpto === true &&
      own.some(
        ({ order: other }) =>
          other !== one && other.signedStep < end(one) && one.signedStep < end(other),
      ),
  )
}

/** The sum that purchases cost where each is the first. */
function sumApart(own: readonly Sold[], meter: Meter): bigint {
  return own.reduce((sum, one) => sum + sumTiers(meter, sumUses([one], meter.counts)), 0n)
}

/** Each one costs what its place among all that were paid for says. */
function sumTiers({ tiers }: Meter, count: number): bigint {
  let sum = 0n
  for (let nth = 1; nth <= count; nth++)
    sum += tiers.findLast(({ above }) => nth > above)?.amount ?? 0n
  return sum
}
