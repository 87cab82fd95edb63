import { type Exhibit, listDigestRequests } from './exhibits.ts'
import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { attempt, misuse, persist } from './orders.ts'

/** The calm that comes by then lets it through. */
const openTriesMax = 100
/** Purchases of one visitor under way at once. */
const widthMax = 3

/** Visitors read extracts, digests and plates of the library, several at once, so that they race for what is free. */
export async function visit(market: Market, orders: Order[]): Promise<void> {
  const { chance, scheduler } = market
  const open: Exhibit[] = ['extracts', 'plates']
  const opening = openDigests(market).then(() => void open.push('digests'))
  const count = chance.between('visitors', 1, 2)
  const running = Array.from({ length: count }, async (_, at) => {
    const who = `e${at + 1}`
    if (chance.happens(`${who} deposits`, 500)) await buy(market, orders, { who, n: 90 })
    const times = chance.between(`${who} comes`, 2, 5)
    for (let n = 0; n < times; n++) {
      await scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
      const width = chance.happens(`${who} hurries`, 400) ? widthMax : 1
      const items = Array.from({ length: width }, () => chance.pick(`${who} sees`, open))
      await Promise.all(
        items.map((item, nth) => buy(market, orders, { who, n: n * widthMax + nth, item })),
      )
    }
  })
  await Promise.all([...running, opening])
}

async function buy(
  market: Market,
  orders: Order[],
  wanted: { readonly who: string; readonly n: number; readonly item?: Exhibit },
): Promise<void> {
  const { chance } = market
  const { who, n, item } = wanted
  const what = item === undefined ? ({ wish: 'deposit' } as const) : { item }
  const order = await requestOrder(market, who, { n, ...what })
  if (order === undefined) return
  orders.push(order)
  const tries = [0, ...(chance.happens(`${who} sends twice`, 350) ? [1] : [])]
  await Promise.all(tries.map(() => persist(market, order)))
  if (chance.happens(`${who} re-aims`, 200)) await misuse(market, order)
  if (chance.happens(`${who} asks again`, 300)) await attempt(market, order)
}

/** Makes the view of the pages and sets its price; both are sent until they are done. */
async function openDigests(market: Market): Promise<void> {
  const { chance, scheduler } = market
  const headers = { 'x-app-key': market.keys.libraryKey }
  for (const asked of listDigestRequests())
    for (let n = 0; n < openTriesMax; n++) {
      const answer = await market.send('librarian', asked, { headers })
      if (answer?.code === 'VIEW_EXISTS' || (answer !== undefined && answer.status < 300)) break
      if (answer !== undefined && answer.status < 500)
        market.wrong(`digests were answered ${answer.status} ${answer.code} ${answer.text}`)
      await scheduler.sleep(chance.between('librarian pauses', 500, 5_000))
    }
}
