import type { Body, Books } from './books.ts'
import {
  computeScanCost,
  freePages,
  library,
  mapPrice,
  maps,
  pages,
  pageTiers,
  passAmount,
  scans,
} from './library.ts'
import type { Order } from './order.ts'

/** The part of a purchase that matters here; the answer of one by a channel may be lost. */
export type Buying = Pick<
  Order,
  'name' | 'libraryItem' | 'rows' | 'delivered' | 'deliveredStep' | 'signedStep'
>

type Sold = { readonly order: Buying; readonly sale: Body; readonly charge: bigint }

/**
 * Checks what the library sold: each answer is what was asked for; scans cost what their bytes do; and the pages of each
 * buyer cost, all in all, what his tiers, his quota and his passes make of them, by the books in their order.
 */
export function checkLibrary(byId: ReadonlyMap<string, Buying>, books: Books): string[] {
  const sold: Sold[] = [...books.sales].flatMap(([id, sale]) => {
    const order = byId.get(id)
    const isTheirs = sale.app === library && order?.libraryItem !== undefined
    return isTheirs ? [{ order, sale, charge: BigInt(sale.amount) }] : []
  })
  const buyers = new Map<string, Sold[]>()
  for (const one of sold) buyers.set(one.sale.payer, [...(buyers.get(one.sale.payer) ?? []), one])
  return [...sold.flatMap(checkSold), ...[...buyers.values()].flatMap(checkPages)]
}

function checkSold({ order, charge }: Sold): string[] {
  const { name, libraryItem, rows, delivered } = order
  if (libraryItem === 'pass')
    return charge === passAmount ? [] : [`${name}, a pass, cost ${charge}`]
  const shelves = { pages, scans, maps }
  const expected = JSON.stringify(shelves[libraryItem ?? 'pages'].slice(0, rows))
  const found = delivered && JSON.stringify(JSON.parse(delivered.text).records)
  if (found !== undefined && found !== expected)
    return [`${name} was sold ${found}, and not ${expected}`]
  // The brackets are no part of the records.
  const cost = computeScanCost(Buffer.byteLength(expected) - 2)
  if (libraryItem === 'maps') return charge === mapPrice ? [] : [`${name}, a map, cost ${charge}`]
  const isRight = libraryItem === 'pages' || charge === cost
  return isRight ? [] : [`${name}, ${rows} scans, cost ${charge}, and not ${cost}`]
}

/** The purchases of a buyer before another one, by the books. */
type Before = {
  readonly earlier: readonly Buying[]
  readonly hasPaid: boolean
  /** Pages that were free. */
  readonly free: number
}

/** Checks the pages of one buyer: each purchase after those before it, and all together. */
function checkPages(sold: readonly Sold[]): string[] {
  const isOfPages = ({ order }: Sold) => order.libraryItem === 'pages'
  const single = sold.flatMap((one, at) => {
    const before = sold.slice(0, at)
    return !isOfPages(one)
      ? []
      : checkPurchase(one, {
          earlier: before.map(({ order }) => order),
          hasPaid: before.some(({ charge }) => charge > 0n),
          free: sumUses(before.filter(isOfPages), 'free_row'),
        })
  })
  const ofPages = sold.filter(isOfPages)
  const [free, paid] = [sumUses(ofPages, 'free_row'), sumUses(ofPages, 'row')]
  const spent = ofPages.reduce((sum, { charge }) => sum + charge, 0n)
  const due = sumTiers(paid)
  const buyer = sold[0]?.sale.payer
  return [
    ...single,
    ...(free > freePages ? [`${buyer} had ${free} pages free`] : []),
    ...(spent === due ? [] : [`${buyer} paid ${spent} for ${paid} pages, and not ${due}`]),
  ]
}

/** Checks that pages are free for who may have them so, and for who must. */
function checkPurchase(one: Sold, { earlier, hasPaid, free }: Before): string[] {
  const { order, sale, charge } = one
  const { name, rows } = order
  const isOver = ({ deliveredStep = Number.POSITIVE_INFINITY }: Buying) =>
    deliveredStep < order.signedStep
  const passes = earlier.filter(({ libraryItem }) => libraryItem === 'pass')
  if (sale.uses === undefined || sale.uses.length === 0) {
    const isCovered = passes.length > 0 && charge === 0n
    return isCovered ? [] : [`${name} cost ${charge} by a pass that nobody bought`]
  }
  const [freeNow, paidNow] = [sumUses([one], 'free_row'), sumUses([one], 'row')]
  // Another purchase that is under way may have kept a part of the quota.
  const least = hasPaid && earlier.every(isOver) ? Math.min(rows, freePages - free) : 0
  return [
    ...(passes.some(isOver) ? [`${name} cost ${charge}, and its buyer had a pass`] : []),
    ...(freeNow + paidNow === rows
      ? []
      : [`${name}: ${freeNow} free pages and ${paidNow} others are not ${rows}`]),
    ...(freeNow > 0 && !hasPaid ? [`${name}: ${freeNow} pages were free for who never paid`] : []),
    ...(freeNow < least ? [`${name}: ${freeNow} pages were free, and ${least} had to be`] : []),
  ]
}

function sumUses(sold: readonly Sold[], member: 'row' | 'free_row'): number {
  const uses = sold.flatMap(({ sale }) => sale.uses ?? [])
  return uses.reduce((sum, use) => sum + Number(use[member]), 0)
}

/** Each page costs what its place among all that were paid for says. */
function sumTiers(count: number): bigint {
  let sum = 0n
  for (let nth = 1; nth <= count; nth++)
    sum += pageTiers.findLast(({ above }) => nth > above)?.amount ?? 0n
  return sum
}
