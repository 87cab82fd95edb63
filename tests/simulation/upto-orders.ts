import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { attempt, misuse, persist } from './orders.ts'
import { unlimited } from './permit-model.ts'

const buyersMax = 2
/** A block, and some to spare. */
const approvalMs = 5_000
const lastTries = 4
/** After so many payments that failed on our gas no more of a payer are tried for an hour. */
const failedPaymentsMax = 3

/**
 * Buyers sign for the most that something costs, some of it too late or for more than they allow; they send twice, lose
 * answers, and take their allowance back in the middle of it.
 */
export async function buyByUpto(market: Market, orders: Order[]): Promise<void> {
  const { chance } = market
  const count = chance.between('payers by permit', 1, buyersMax)
  const running = Array.from({ length: count }, async (_, at) => {
    const who = `u${at + 1}`
    await approve(market, who)
    const times = chance.between(`${who} buys`, 1, 4)
    for (let n = 0; n < times; n++) {
      await market.scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
      await buy(market, orders, { who, n })
    }
  })
  await Promise.all(running)
}

async function buy(
  market: Market,
  orders: Order[],
  { who, n }: { readonly who: string; readonly n: number },
): Promise<void> {
  const { chance, scheduler } = market
  const order = await requestOrder(market, who, { n, isUpto: true })
  if (order === undefined) return
  orders.push(order)
  const { name } = order
  if (chance.happens(`${name} is put off`, 250))
    await scheduler.sleep(chance.between(`${name} is put off for`, 0, 90_000))
  if (chance.happens(`${name} is withdrawn`, 250)) void revoke(market, who)
  const tries = [0, ...(chance.happens(`${name} is sent twice`, 350) ? [1, 2] : [])]
  await Promise.all(tries.map(() => persist(market, order)))
  if (chance.happens(`${name} is re-aimed`, 300)) await misuse(market, order)
  if (chance.happens(`${name} is asked again`, 500)) await attempt(market, order)
}

/** Lets Permit2 move everything, or enough for some purchases. */
async function approve({ chain, chance, scheduler }: Market, who: string): Promise<void> {
  const some = BigInt(chance.between(`${who} allows`, 4, 60)) * 500n
  const amount = chance.happens(`${who} allows all`, 600) ? unlimited : some
  chain.callPermit2(deriveAddress(deriveBuyerKey(who)), { kind: 'approve', amount })
  await scheduler.sleep(approvalMs)
}

/** Takes the allowance back while a payment may be under way, and gives it again. */
async function revoke(market: Market, who: string): Promise<void> {
  const { chain, chance, scheduler } = market
  await scheduler.sleep(chance.between(`${who} revokes after`, 0, 5_000))
  scheduler.note(`${who} takes its allowance back`)
  chain.callPermit2(deriveAddress(deriveBuyerKey(who)), { kind: 'approve', amount: 0n })
  await scheduler.sleep(chance.between(`${who} allows again after`, 2_000, 20_000))
  await approve(market, who)
}

/** In the end each of them still buys, unless too many of its payments failed. */
export async function finishUptos(market: Market, orders: Order[]): Promise<void> {
  const { chain, scheduler } = market
  const payers = new Set(
    orders.flatMap((one) => (one.isUpto ? [one.name.split('.')[0] ?? ''] : [])),
  )
  for (const who of payers) {
    const payer = deriveAddress(deriveBuyerKey(who))
    chain.callPermit2(payer, { kind: 'approve', amount: unlimited })
    await scheduler.sleep(approvalMs)
    const own = orders.filter((one) => one.payer === payer)
    const failed = own.filter(({ delivered }) => delivered === undefined)
    for (let n = 0, isBought = false; !isBought && n < lastTries; n++) {
      const order = await requestOrder(market, who, { n: 90 + n, wish: 'read', isUpto: true })
      if (order === undefined) continue
      orders.push(order)
      await persist(market, order)
      isBought = order.delivered !== undefined
      // A payment that is asked for again after it was taken back may fail, too.
      const mayBeBlocked = failed.length >= failedPaymentsMax || market.subjects.has('reversals')
      if (!isBought && n === lastTries - 1 && !mayBeBlocked)
        market.wrong(`${who} buys nothing by a permit in the end`)
    }
  }
}
