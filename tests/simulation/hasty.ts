import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import { type Takings, withdrawAll } from './money-out.ts'
import type { Order } from './order.ts'
import { persist } from './orders.ts'

const who = 'h1'

/**
 * Somebody fills a balance, buys from it, so that the service remembers what it has, and then takes all of it out while
 * he buys again: nothing may be spent that was taken, and what he buys must be paid otherwise.
 */
export async function spendInHaste(
  market: Market,
  { orders, takings }: { readonly orders: Order[]; readonly takings: Takings },
): Promise<void> {
  const { chance, scheduler } = market
  const count = chance.between(`${who} comes`, 1, 3)
  for (let n = 0; n < count * 3; n += 3) {
    await scheduler.sleep(chance.between(`${who} waits`, 0, 8_000))
    const deposit = await requestOrder(market, who, { n, wish: 'deposit' })
    if (deposit === undefined) continue
    orders.push(deposit)
    await persist(market, deposit)
    const first = await requestOrder(market, who, { n: n + 1, wish: 'read' })
    if (first === undefined) continue
    orders.push(first)
    await persist(market, first)
    const second = await requestOrder(market, who, { n: n + 2, wish: 'read' })
    if (second === undefined) continue
    orders.push(second)
    const withdrawing = withdrawAll(market, takings, { who, n: String(n) })
    if (chance.happens(`${who} is told`, 600)) await withdrawing
    await Promise.all([withdrawing, persist(market, second)])
  }
}
