import type { Books } from './books.ts'
import { findRefusal, judgeHeld, judgeRefusal, standing } from './judge-order.ts'
import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { hasEverMoved } from './orders.ts'
import { makeListRequest, makeStoreRequest } from './requests.ts'
import type { Answer } from './send-request.ts'

/**
 * A request that its payer gave a name (the extension payment-identifier), with all payments that were signed for it:
 * it is bought once, whichever of them pays.
 */
export type NamedPurchase = {
  readonly name: string
  readonly who: string
  /** The identifier. */
  readonly id: string
  readonly orders: Order[]
  /** The answer that came first, and the market's step at which it was heard; every later one is the same. */
  bought: { readonly text: string; readonly paymentId: string; readonly at: number } | undefined
}

const buyersMax = 2
const triesMax = 12
const lastTries = 8
const givesUpPerMille = 300
/** The service takes no payment that is about to end. */
const marginSeconds = 10

/** Buyers name what they buy, lose answers, sign anew under the same name, and use a name for something else. */
export async function buyByName(market: Market, purchases: NamedPurchase[]): Promise<void> {
  const { chance } = market
  const count = chance.between('payers who name', 1, buyersMax)
  const running = Array.from({ length: count }, async (_, at) => {
    const who = `i${at + 1}`
    const times = chance.between(`${who} buys`, 1, 3)
    for (let n = 0; n < times; n++) {
      await market.scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
      const name = `${who}.${n}`
      const purchase = {
        name,
        who,
        id: `purchase-of-${name.replace('.', '-')}`,
        orders: [],
        bought: undefined,
      }
      purchases.push(purchase)
      await buyOnce(market, purchase)
    }
  })
  await Promise.all(running)
}

async function buyOnce(market: Market, purchase: NamedPurchase): Promise<void> {
  const { chance, scheduler } = market
  const { name } = purchase
  const signs = chance.between(`${name} signs`, 1, 3)
  const running: Promise<void>[] = []
  for (let n = 0; n < signs; n++) {
    const order = await signFor(market, purchase)
    if (order === undefined) continue
    running.push(persist(market, purchase, order))
    if (chance.happens(`${name} waits`, 500)) await Promise.all(running)
    await scheduler.sleep(chance.between(`${name} loses it`, 0, 20_000))
  }
  await Promise.all(running)
  if (chance.happens(`${name} is used twice`, 400)) await misuse(market, purchase)
}

/** Signs another payment for the same request under the same name. */
async function signFor(market: Market, purchase: NamedPurchase): Promise<Order | undefined> {
  const { who, id, orders, name } = purchase
  const [like] = orders
  const wish = market.chance.pick(`${name} kind`, ['read', 'write'] as const)
  const n = Number(name.split('.')[1]) * 100 + orders.length
  const order = await requestOrder(market, who, { n, wish, naming: { id, like } })
  if (order !== undefined) orders.push(order)
  return order
}

async function persist(market: Market, purchase: NamedPurchase, order: Order): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    if (await attempt(market, purchase, order)) return
    if (market.isRough && chance.happens(`${order.name} gives up`, givesUpPerMille)) return
    await scheduler.sleep(chance.between(`${order.name} pauses`, 500, 8_000))
  }
}

/** Sends the request with one of its payments and checks the answer; true where nothing is open any more. */
async function attempt(market: Market, purchase: NamedPurchase, order: Order): Promise<boolean> {
  const { name, asked, headers } = order
  const step = market.step()
  let at = standing(market, order)
  const onAnswer = () => {
    at = standing(market, order)
  }
  const answer = await market.send(name, asked, { headers, onAnswer })
  if (answer === undefined || answer.status >= 500) return false
  if (answer.status < 300) {
    judgeBought(market, purchase, { order, answer })
    return true
  }
  if (answer.code === 'REQUEST_IN_PROGRESS') return false
  if (answer.code === 'PAYMENT_HELD') {
    judgeHeld(market, order)
    return true
  }
  const refusal = findRefusal(order, answer)
  if (refusal === undefined) {
    if (answer.status !== 409 || !market.remote.hasLied(order.payer, order.nonce))
      market.wrong(
        `${name}: an honest try was answered ${answer.status} ${answer.code} ${answer.text}`,
      )
    return true
  }
  const { bought } = purchase
  const isGood = order.validBefore - marginSeconds > market.scheduler.now / 1000
  if (bought !== undefined && bought.at < step && isGood && !isUsedElsewhere(market, order))
    market.wrong(`${name} was refused, and ${purchase.name} is bought: ${refusal}`)
  order.isSpent = refusal.includes('its money is on the balance of')
  judgeRefusal(market, order, { at, refusal })
  return true
}

/** Somebody used the signature on the chain, so that everybody may have seen it. */
function isUsedElsewhere({ chain, remote }: Market, { payer, nonce, network }: Order): boolean {
  return network.id === chain.network.id
    ? chain.isUsed(payer, nonce)
    : remote.moved(payer, nonce) !== undefined
}

/** Checks that there is no data without money, and that each payment of the name gets the same answer. */
function judgeBought(
  market: Market,
  purchase: NamedPurchase,
  { order, answer }: { readonly order: Order; readonly answer: Answer },
): void {
  const { text, headers } = answer
  const paymentId = String(headers['x-payment-id'])
  const header = headers['payment-response'] ?? ''
  const notice = JSON.parse(Buffer.from(header, 'base64').toString())
  purchase.bought ??= { text, paymentId, at: market.step() }
  const { bought } = purchase
  if (bought.text !== text || bought.paymentId !== paymentId)
    market.wrong(
      `${order.name} was answered ${paymentId} ${text}, and before ${bought.paymentId} ${bought.text}`,
    )
  const isPaid =
    notice.paid_from === 'balance' || purchase.orders.some((one) => hasEverMoved(market, one))
  if (!isPaid) market.wrong(`${order.name} was delivered and never paid`)
}

/** A name that bought one thing buys no other one. */
async function misuse(market: Market, purchase: NamedPurchase): Promise<void> {
  const { who, id, name, orders, bought } = purchase
  const [first] = orders
  if (bought === undefined || first === undefined) return
  const { kind } = first
  const rows = kind === 'read' ? first.rows + 1 : 1
  const asked =
    kind === 'read'
      ? makeListRequest(rows)
      : makeStoreRequest('notes', [{ mark: `stolen ${name}` }])
  const n = Number(name.split('.')[1]) * 100 + 50
  const other = await requestOrder(market, who, { n, naming: { id, like: { kind, asked, rows } } })
  if (other === undefined) return
  const answer = await market.send(`${name} misused`, asked, { headers: other.headers })
  if (answer === undefined || answer.status >= 500) return
  const isLate = other.validBefore - marginSeconds <= market.scheduler.now / 1000
  if (answer.code !== 'IDEMPOTENCY_KEY_USED' && !(answer.status === 402 && isLate))
    market.wrong(
      `${name}: its name bought something else: ${answer.status} ${answer.code} ${answer.text}`,
    )
}

/** In the end each name has bought its request, once, and gives the same answer to whoever signs anew. */
export async function finishPurchases(
  market: Market,
  purchases: readonly NamedPurchase[],
): Promise<void> {
  for (const purchase of purchases)
    for (let n = 0; n < lastTries; n++) {
      const order = await signFor(market, purchase)
      if (order !== undefined) await persist(market, purchase, order)
      if (purchase.bought !== undefined && n > 0) break
    }
}

/** Lists for each name the payment that the books say bought it, with its answer: the others bought nothing. */
export function listSoldOrders(purchases: readonly NamedPurchase[], books: Books): Order[] {
  return purchases.flatMap(({ orders, bought }) => {
    if (bought === undefined) return []
    const sale = books.sales.get(bought.paymentId)
    const order = orders.find((one) => getIdentity(one) === sale?.identity)
    const [first] = orders
    if (order === undefined || first === undefined) return []
    const { text, paymentId } = bought
    const isFromBalance = sale?.paid_from === 'balance'
    // The records of a write are named after the first order.
    return [{ ...order, name: first.name, delivered: { text, paymentId, isFromBalance } }]
  })
}

/** Checks that each name is sold once, by a payment that was signed for it. */
export function checkPurchases(purchases: readonly NamedPurchase[], books: Books): string[] {
  return purchases.flatMap(({ name, orders, bought }) => {
    const own = new Set(orders.map(getIdentity))
    const sold = [...books.sales].filter(([, { identity }]) => own.has(identity))
    const ids = sold.map(([id]) => id)
    return bought !== undefined && ids.length === 1 && ids[0] === bought.paymentId
      ? []
      : [`${name} was sold as ${ids.join(', ') || 'nothing'}, and told ${bought?.paymentId}`]
  })
}

function getIdentity({ network, payer, nonce }: Order): string {
  return `${network.id}/${network.asset.address}/${payer}/${nonce}`
}
