import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { checkHeldMoney, listUnheld } from './reversal-checks.ts'
import { returnSeconds } from './shop.ts'

/** The time in which the service notices what is gone: two rounds of its watch, and the start of a process. */
const noticedMs = 45_000
const lookEveryMs = 10_000
/** Looks that may find money which is not held yet; a process may stand still for several, and cannot ask its node. */
const calmLooksMax = 5
const roughLooksMax = 15

/** The chain takes back now and then what the service has booked. */
export async function takeBack(market: Market, isOver: () => boolean): Promise<void> {
  const { chain, chance, scheduler } = market
  const count = chance.between('deep reorgs', 2, 5)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(chance.between('until a deep reorg', 4_000, 24_000))
    if (isOver()) return
    chain.replaceDeep()
  }
}

/** Once nobody buys any more it may do so once more. */
export async function takeBackLast({ chain, chance, scheduler }: Market): Promise<void> {
  if (chance.happens('a deep reorg in the end', 700)) chain.replaceDeep()
  await scheduler.sleep(noticedMs)
}

/** Waits until all that was taken back is there again, or can never come, and the service has said so. */
export async function finishReversals(
  market: Market,
  signed: readonly Pick<Order, 'validBefore'>[],
): Promise<void> {
  const { chain, faultProfile, scheduler, subjects } = market
  faultProfile.move = 0
  if (subjects.has('natives')) scheduler.leap(returnSeconds * 1000)
  // A payment of the last moment may still come.
  const last = Math.max(scheduler.now, ...signed.map(({ validBefore }) => validBefore * 1000))
  await scheduler.sleep(last - scheduler.now + chain.finalMs + 2 * noticedMs)
}

/**
 * Looks all the time whether anybody spends what is held, and whether all is held that the chain does not have, once the
 * service had the time to notice.
 */
export function watchHeldMoney(market: Market, isOver: () => boolean): void {
  const { scheduler } = market
  /** By account, the looks that found less held than is gone. */
  let unheld = new Map<string, number>()
  let wasRough = market.isRough
  const look = async () => {
    for (const problem of await checkHeldMoney(market)) market.wrong(problem)
    if (wasRough !== market.isRough) unheld.clear()
    wasRough = market.isRough
    const found = await listUnheld(market)
    unheld = new Map(found.map((account) => [account, (unheld.get(account) ?? 0) + 1]))
    const most = market.isRough ? roughLooksMax : calmLooksMax
    for (const [account, looks] of unheld)
      if (looks > most) market.wrong(`${account} can spend what the chain took back`)
  }
  const run = () => {
    if (isOver()) return
    void scheduler.held(look).then(() => scheduler.after(lookEveryMs, run))
  }
  scheduler.after(lookEveryMs, run)
}
