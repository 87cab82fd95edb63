import { sql } from '../../packages/server/src/database/sql.ts'
import { listHeldPayments } from '../../packages/server/src/operations/wallets/list-held-payments.ts'
import { releaseHeldPayments } from '../../packages/server/src/operations/wallets/release-held-payments.ts'
import { toPaidAccount } from './delivery-checks.ts'
import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { handIn, persist } from './orders.ts'
import type { Asked } from './send-request.ts'
import { operatorKey } from './shop.ts'

type Held = {
  readonly payment_id: string
  readonly payer: string
  readonly amount: string
  readonly account: string
}

const asOperator = { 'x-app-key': operatorKey }
const triesMax = 12
/** Requests that release the same at the same moment. */
const atOnce = [0, 1, 2, 3]
const looksMax = 80
const lookEveryMs = 250
/** A payment that the lost life took is in a block by then, as deep as the service waits for. */
const settledMs = 14_000

/** The operator restores the database once or twice. */
export async function restoreNowAndThen(market: Market, isOver: () => boolean): Promise<void> {
  const { chance, scheduler } = market
  const count = chance.between('restores', 1, 2)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(chance.between('until a restore', 4_000, 30_000))
    if (chance.happens('the backup has something under way', 800))
      await awaitUnderWay(market, isOver)
    if (isOver()) return
    await market.restore()
  }
}

/** Waits until money is on the chain of which the service does not know yet whether it came. */
async function awaitUnderWay(market: Market, isOver: () => boolean): Promise<void> {
  const { chain, database, scheduler } = market
  for (let n = 0; n < looksMax && !isOver(); n++) {
    const claimed = await scheduler.held(() =>
      database.query<{ identity: string }>(
        sql`SELECT identity FROM operations.claim WHERE state = 'claimed' AND operation <> 'deposit'`,
      ),
    )
    const isThere = ({ identity }: { readonly identity: string }) => {
      const [, , payer = '', nonce = ''] = identity.split('/')
      return chain.moved(payer, nonce) !== undefined
    }
    if (claimed.some(isThere)) return
    await scheduler.sleep(lookEveryMs)
  }
}

/**
 * Customers paid, and were served, in the life that is lost: their money is here, and the service knows nothing of it.
 * They come again with the same payments.
 */
export async function payInLostLife(
  market: Market,
  orders: Order[],
  isOver: () => boolean,
): Promise<void> {
  const count = market.chance.between('customers of a lost life', 2, 4)
  const all = Array.from({ length: count }, (_, at) => comeAgain(market, orders, { at, isOver }))
  await Promise.all(all)
}

async function comeAgain(
  market: Market,
  orders: Order[],
  { at, isOver }: { readonly at: number; readonly isOver: () => boolean },
): Promise<void> {
  const { chance, chain, restores, scheduler } = market
  const who = `l${at + 1}`
  await scheduler.sleep(chance.between(`${who} comes`, 0, 6_000))
  const order = await requestOrder(market, who, { n: 0 })
  if (order === undefined || order.isDirect || order.network.id !== chain.network.id) return
  orders.push(order)
  order.isOvertaken = true
  handIn(market, order)
  await scheduler.sleep(settledMs)
  while (restores.length === 0 && !isOver()) await scheduler.sleep(500)
  const isThere = (chain.moved(order.payer, order.nonce)?.depth ?? 0) >= chain.confirmations
  // A chain that takes back more may have it in another block, or not at all, when it comes.
  order.isUsedBefore = isThere && !market.subjects.has('reversals')
  await scheduler.sleep(chance.between(`${who} comes again`, 0, 20_000))
  const tries = chance.happens(`${who} sends twice`, 400) ? [0, 1] : [0]
  for (let n = chance.between(`${who} tries`, 0, 2); n > 0; n--)
    await Promise.all(tries.map(() => persist(market, order)))
}

/** The operator looks at what is held, and releases some of it, several times at once perhaps. */
export async function releaseNowAndThen(market: Market, isOver: () => boolean): Promise<void> {
  const { chance, scheduler } = market
  while (!isOver()) {
    await scheduler.sleep(chance.between('operator waits to release', 500, 5_000))
    if (market.restores.length === 0) continue
    const held = await readHeld(market)
    if (held === undefined || held.length === 0) continue
    const one = chance.pick('operator releases', held)
    const body = chance.pick('operator releases of', [
      { payment_id: one.payment_id },
      { payer: one.payer },
      { all: true as const },
    ])
    const tries = chance.happens('operator releases several times at once', 700)
      ? [0, 1, 2, 3]
      : [0]
    await Promise.all(tries.map(() => release(market, body)))
  }
}

/** In the end all is released. */
export async function releaseAll(market: Market): Promise<void> {
  if (market.restores.length === 0) return
  for (let n = 0; n < triesMax; n++) {
    const held = await readHeld(market)
    if (held?.length === 0) return
    await Promise.all(atOnce.map(() => release(market, { all: true })))
    await market.scheduler.sleep(1_000)
  }
  market.wrong('something stays held for the operator, who released all')
}

/** Reads what is held, and checks that it came, and is for who paid it; undefined where there is no answer. */
async function readHeld(market: Market): Promise<readonly Held[] | undefined> {
  const { chain, subjects } = market
  const answer = await market.send('operator looks at what is held', listing, {
    headers: asOperator,
  })
  if (answer === undefined || answer.status >= 500) return undefined
  if (answer.status !== 200)
    market.wrong(`what is held was answered ${answer.status} ${answer.text}`)
  const held: readonly Held[] = JSON.parse(answer.text).payments
  for (const one of held) {
    const moved = chain.allPaid(one.payer)
    // A chain that takes back more may not have it at this moment.
    const isThere = moved.includes(BigInt(one.amount)) || subjects.has('reversals')
    if (one.account !== toPaidAccount(one.payer) || !isThere)
      market.wrong(`${one.amount} of ${one.payer} is held for ${one.account}, who paid ${moved}`)
  }
  return held
}

async function release(market: Market, body: object): Promise<void> {
  const headers = asOperator
  const answer = await market.send('operator releases', { ...releasing, body }, { headers })
  if (answer === undefined || answer.status >= 500 || answer.status === 200) return
  // Another request was first.
  const isGone = 'payment_id' in body && answer.code === 'PAYMENT_NOT_FOUND'
  if (!isGone) market.wrong(`a release was answered ${answer.status} ${answer.text}`)
}

const listing: Asked = {
  operationId: 'listHeldPayments',
  path: '/api/platform/held',
  query: {},
  body: {},
  run: (call) => listHeldPayments(call, { query: {} }),
}

const releasing: Asked = {
  operationId: 'releaseHeldPayments',
  path: '/api/platform/held/release',
  body: {},
  run: (call, body) => releaseHeldPayments(call, { body: body as never }),
}
