import type { Market } from './market.ts'

/** The operator stops the service now and then, so that another process takes its place. */
export async function restart(market: Market, isOver: () => boolean): Promise<void> {
  const { chance, scheduler } = market
  const count = chance.between('operator stops', 1, 3)
  for (let n = 0; n < count && !isOver(); n++) {
    await scheduler.sleep(chance.between('operator waits', 3_000, 30_000))
    await market.stop()
  }
}
