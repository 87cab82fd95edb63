import type { Market } from './market.ts'
import { makeDeriveRequest, makePricingRequest, makeStoreRequest } from './requests.ts'

/** A record that the service said it stored. */
export type Acknowledged = { readonly collection: string; readonly mark: string }

/** Stores goods and changes prices now and then, until told to stop. */
export async function sell(
  market: Market,
  acknowledged: Acknowledged[],
  isOver: () => boolean,
): Promise<void> {
  const { chance, scheduler } = market
  const headers = { 'x-app-key': market.keys.appKey }
  for (let n = 0; !isOver(); n++) {
    await scheduler.sleep(chance.between('seller waits', 500, 9_000))
    // With two who change prices at once nobody could say which price is in force.
    const setsPrices = !market.subjects.has('names')
    if (setsPrices && chance.happens('seller sets prices', 400)) {
      const price = market.newPrice()
      const isInForce = market.prices.change(price, () => market.step())
      const answer = await market.send('seller', makePricingRequest(price), { headers })
      if (answer !== undefined && answer.status < 300) isInForce()
      continue
    }
    const marks = Array.from(
      { length: chance.between('seller stores', 1, 3) },
      (_, at) => `s${n}/${at}`,
    )
    const data = marks.map((mark) => ({ mark }))
    const answer = await market.send('seller', makeStoreRequest('goods', data), { headers })
    if (answer !== undefined && answer.status < 300)
      acknowledged.push(...marks.map((mark) => ({ collection: 'goods', mark })))
  }
}

/** The supplier changes now and then what joining its records costs. */
export async function supply(market: Market, isOver: () => boolean): Promise<void> {
  const { chance, scheduler } = market
  const headers = { 'x-app-key': market.keys.supplierKey }
  while (!isOver()) {
    await scheduler.sleep(chance.between('supplier waits', 5_000, 30_000))
    const price = BigInt(chance.between('supplier price', 1, 499))
    const isInForce = market.derives.change(price, () => market.step())
    const answer = await market.send('supplier', makeDeriveRequest(price), { headers })
    if (answer !== undefined && answer.status < 300) isInForce()
  }
}
