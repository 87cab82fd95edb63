import type { Shelf } from './letter-rules.ts'
import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { attempt, misuse, persist } from './orders.ts'
import { makeSampleStoreRequest } from './requests.ts'
import type { Acknowledged } from './sellers.ts'
import { makeGalleryCreation } from './surveys.ts'

/** The calm that comes by then lets it through. */
const openTriesMax = 100

/** Buyers write letters and read samples. */
export function buyByCount(market: Market, orders: Order[]): Promise<void> {
  const count = market.chance.between('buyers by count', 1, 2)
  const shelves = ['letters', 'samples', 'samples'] as const
  return buyFromShelves(market, orders, { initial: 'c', count, shelves })
}

/** Buyers write parcels, whose records say what they cost, while the seller changes the field that says it. */
export function buyByField(market: Market, orders: Order[]): Promise<void> {
  const count = market.chance.between('buyers by field', 1, 2)
  return buyFromShelves(market, orders, { initial: 'f', count, shelves: ['parcels'] })
}

/** Buyers read samples by a predefined query, and in a view that the shop creates meanwhile. */
export async function buyByResult(market: Market, orders: Order[]): Promise<void> {
  const count = market.chance.between('buyers by result', 1, 2)
  const shelves: Shelf[] = ['surveys']
  const opening = openGallery(market).then(() => void shelves.push('galleries', 'galleries'))
  await buyFromShelves(market, orders, { initial: 'r', count, shelves })
  await opening
}

/** Creates the view of the samples, and waits until it is there. */
async function openGallery(market: Market): Promise<void> {
  const { chance, scheduler } = market
  const headers = { 'x-app-key': market.keys.appKey }
  for (let n = 0; n < openTriesMax; n++) {
    const answer = await market.send('gallerist', makeGalleryCreation(), { headers })
    if (answer?.code === 'VIEW_EXISTS' || (answer !== undefined && answer.status < 300)) return
    if (answer !== undefined && answer.status < 500)
      market.wrong(`the gallery was answered ${answer.status} ${answer.code} ${answer.text}`)
    await scheduler.sleep(chance.between('gallerist pauses', 500, 5_000))
  }
}

async function buyFromShelves(
  market: Market,
  orders: Order[],
  of: {
    /** The letter that the names of these buyers begin with. */
    readonly initial: string
    readonly count: number
    readonly shelves: readonly Shelf[]
  },
): Promise<void> {
  const { chance, scheduler } = market
  const running = Array.from({ length: of.count }, async (_, at) => {
    const who = `${of.initial}${at + 1}`
    const times = chance.between(`${who} buys`, 1, 4)
    for (let n = 0; n < times; n++) {
      await scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
      const shelf = chance.pick(`${who} shelf`, of.shelves)
      const order = await requestOrder(market, who, { n, shelf })
      if (order === undefined) continue
      orders.push(order)
      if (chance.happens(`${who} thinks it over`, 400))
        await scheduler.sleep(chance.between(`${who} thinks over`, 0, 20_000))
      const tries = [0, ...(chance.happens(`${who} sends twice`, 350) ? [1] : [])]
      await Promise.all(tries.map(() => persist(market, order)))
      if (chance.happens(`${who} re-aims`, 300)) await misuse(market, order)
      if (chance.happens(`${who} asks again`, 500)) await attempt(market, order)
    }
  })
  await Promise.all(running)
}

/** The seller adds samples, so that answers grow after they were quoted. */
export async function addSamples(
  market: Market,
  acknowledged: Acknowledged[],
  isOver: () => boolean,
): Promise<void> {
  const { chance, scheduler } = market
  const headers = { 'x-app-key': market.keys.appKey }
  for (let n = 0; !isOver(); n++) {
    await scheduler.sleep(chance.between('samples wait', 2_000, 12_000))
    const mark = `sample ${n}`
    market.samples.most += 1
    const asked = makeSampleStoreRequest([{ mark, sample: mark }])
    const answer = await market.send('sampler', asked, { headers })
    if (answer === undefined || answer.status >= 300) continue
    market.samples.told.push(market.step())
    acknowledged.push({ collection: 'samples', mark })
  }
}
