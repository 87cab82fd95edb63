import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { persist as persistOrder } from './orders.ts'
import { attempt, persist } from './sign-in-judge.ts'
import {
  makeSignInOrder,
  mayBeDear,
  pickSignInOrder,
  type SignIn,
  type SignInOrder,
  signFor,
} from './sign-in-order.ts'
import { listThefts, misuseName, steal } from './sign-in-thefts.ts'

const walletsMax = 2
const lastTries = 6
/** The seller sets another price every ten to twenty seconds. */
const riseMsMax = 60_000
const lookEveryMs = 2_000

type Known = { readonly orders: Order[]; readonly signIns: SignInOrder[] }

/**
 * Wallets sign in to pay out of their balances: some that do nothing else, and those of buyers who pay, withdraw and let
 * agents buy at the same time. They sign early and send late, send twice, lose answers, sign anew under a name, and
 * somebody who sees a sign-in tries to buy with it.
 */
export async function buySigningIn(market: Market, buyers: number, known: Known): Promise<void> {
  const { chance, scheduler } = market
  const count = chance.between('wallets that sign in', 1, walletsMax)
  const running = Array.from({ length: count }, async (_, at) => {
    const who = `w${at + 1}`
    const isOfBuyer = chance.happens(`${who} is a buyer`, 400)
    const wallet = isOfBuyer ? `b${chance.between(`${who} which`, 1, buyers)}` : who
    for (let n = 90; n < 92 && !isOfBuyer; n++) await deposit(market, known.orders, { who, n })
    const times = chance.between(`${who} buys`, 2, 6)
    for (let n = 0; n < times; n++) {
      await scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
      const order = pickSignInOrder(market, { who, n, wallet })
      known.signIns.push(order)
      await buy(market, order)
      if (!isOfBuyer && chance.happens(`${who} deposits more`, 250))
        await deposit(market, known.orders, { who, n: 92 + n })
    }
  })
  await Promise.all(running)
}

async function deposit(
  market: Market,
  orders: Order[],
  { who, n }: { readonly who: string; readonly n: number },
): Promise<Order | undefined> {
  const order = await requestOrder(market, who, { n, wish: 'deposit' })
  if (order === undefined) return undefined
  orders.push(order)
  await persistOrder(market, order)
  return order
}

async function buy(market: Market, order: SignInOrder): Promise<void> {
  const { chance, scheduler } = market
  const { name, isNamed } = order
  const signs = isNamed ? chance.between(`${name} signs`, 1, 3) : 1
  const running: Promise<void>[] = []
  for (let n = 0; n < signs; n++) {
    const signIn = await signFor(market, order)
    if (signIn === undefined) continue
    if (chance.happens(`${name} is seen early`, 300))
      await steal(market, order, listThefts(order, signIn))
    if (chance.happens(`${name} waits for another price`, 350))
      await awaitRise(market, order, signIn)
    const tries = [0, ...(chance.happens(`${name} is sent twice`, 350) ? [1, 2] : [])]
    running.push(...tries.map(() => persist(market, order, signIn)))
    if (chance.happens(`${name} waits`, 500)) await Promise.all(running)
    await scheduler.sleep(chance.between(`${name} loses it`, 0, 20_000))
  }
  await Promise.all(running)
  const last = order.signIns.at(-1)
  if (last === undefined) return
  if (chance.happens(`${name} is seen`, 500)) await steal(market, order, listThefts(order, last))
  if (chance.happens(`${name} is used twice`, 300)) await misuseName(market, order)
  if (chance.happens(`${name} is asked again`, 500)) await attempt(market, order, last)
  // One that is kept until it is over buys nothing.
  if (chance.happens(`${name} is kept`, 200)) await signFor(market, order)
}

/** Waits until the seller asks for more than was agreed to, for some time. */
async function awaitRise(market: Market, order: SignInOrder, signIn: SignIn): Promise<void> {
  const { chance, scheduler } = market
  const untilMs = scheduler.now + chance.between(`${order.name} waits for`, 0, riseMsMax)
  while (scheduler.now < untilMs && !mayBeDear(market, order, signIn))
    await scheduler.sleep(lookEveryMs)
  await scheduler.sleep(lookEveryMs)
}

/** Fetches the answers that were lost: what has a name by another sign-in, and the rest while its own one is good. */
export async function fetchSigned(market: Market, signIns: readonly SignInOrder[]): Promise<void> {
  for (const order of signIns) {
    const sent = order.signIns.find((one) => one.sent > 0)
    if (sent === undefined) continue
    const signIn = order.isNamed ? await signFor(market, order) : sent
    if (signIn !== undefined) await persist(market, order, signIn)
  }
}

/** In the end what is over buys nothing, what has a name is answered as before, and whoever deposits still buys. */
export async function finishSigned(market: Market, known: Known): Promise<void> {
  const { orders, signIns } = known
  if (!market.subjects.has('signins')) return
  for (const order of signIns)
    for (const signIn of [...order.signIns]) await attempt(market, order, signIn)
  await fetchSigned(
    market,
    signIns.filter(({ isNamed }) => isNamed),
  )
  const who = 'wlast'
  for (let n = 0; n < lastTries; n++) {
    const paid = await deposit(market, orders, { who, n })
    if (paid?.delivered === undefined) continue
    const order = makeSignInOrder(market, { who: 'last sign-in', n, wallet: who })
    signIns.push(order)
    const signIn = await signFor(market, order)
    if (signIn === undefined) continue
    await persist(market, order, signIn)
    if (order.delivered === undefined)
      market.wrong(`${order.name} has ${paid.amount} on its balance, and bought nothing`)
    return
  }
}
