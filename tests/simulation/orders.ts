import { createHash } from 'node:crypto'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import {
  deriveAddress,
  digestTransfer,
  signDigest,
} from '../../packages/server/src/x402/signature.ts'
import type { Market } from './market.ts'
import {
  type Answer,
  type Asked,
  makeDepositRequest,
  makeDeriveRequest,
  makeJoinRequest,
  makeListRequest,
  makePricingRequest,
  makeStoreRequest,
  otherNetwork,
  ownNetwork,
} from './shop.ts'

/** One payment and its outcome, as its buyer knows it. */
export type Order = {
  readonly name: string
  readonly kind: 'read' | 'write' | 'deposit'
  readonly asked: Asked
  readonly headers: Readonly<Record<string, string>>
  readonly network: PaymentNetwork
  readonly payer: string
  readonly nonce: string
  /** The amount that the buyer was asked for and signed. */
  readonly amount: bigint
  /**
   * The most that the request costs, as the buyer was told: less than the amount where the network's smallest
   * payment is more.
   */
  readonly price: bigint
  /** The supplier's records are joined. */
  readonly isJoin: boolean
  readonly derive: bigint
  /** Rows that were asked for, or records to write. */
  readonly rows: number
  readonly validBefore: number
  /** The quote that the payment speaks of; clients of version 1 speak of none. */
  readonly quoteId: string | undefined
  /** The same payment, brought for nothing but its payer's balance. */
  readonly settling: Asked
  /** Somebody else handed it to the token, for good, before it came to the service: it buys nothing. */
  isUsedBefore: boolean
  /** It asks for its own money to be taken, and not its payer's balance. */
  readonly isBalanceOff: boolean
  /** Its money is on its payer's balance, and something else was bought with it meanwhile. */
  isSpent: boolean
  /** The answer that was delivered first; all later answers must be the same. */
  delivered:
    | { readonly text: string; readonly paymentId: string; readonly isFromBalance: boolean }
    | undefined
}

/** A record that the service said it stored. */
export type Acknowledged = { readonly collection: string; readonly mark: string }

type Entry = {
  readonly network: string
  readonly amount?: string
  readonly maxAmountRequired?: string
  readonly extra: {
    readonly quoteId: string
    readonly price?: string
    readonly costBreakdown: { readonly derive?: number }
  }
}

/** A deposit of less is not taken: it is worth less than the gas that it costs. */
const depositMin = 1_000n
const triesMax = 12
const givesUpPerMille = 150
const overtakenPerMille = 120
/** Blocks until what somebody else hands in can be undone no more, with some to spare. */
const overtakingMs = 10_000

/** Buys some things, one after the other; returns when nothing more is to be done. */
export async function shopAs(buyer: number, market: Market, orders: Order[]): Promise<void> {
  const { chance, scheduler } = market
  const who = `b${buyer}`
  const count = chance.between(`${who} buys`, 1, 4)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
    const order = await requestOrder(market, who, n)
    if (order === undefined) continue
    orders.push(order)
    if (chance.happens(`${who} is overtaken`, overtakenPerMille)) await overtake(market, order)
    if (chance.happens(`${who} thinks it over`, 200))
      await scheduler.sleep(chance.between(`${who} thinks over`, 0, 60_000))
    const tries = [0, ...(chance.happens(`${who} sends twice`, 350) ? [1, 2] : [])]
    await Promise.all(tries.map(() => persist(market, order)))
    if (chance.happens(`${who} re-aims`, 400)) await misuse(market, order)
    if (chance.happens(`${who} asks again`, 500)) await attempt(market, order)
    if (order.delivered?.isFromBalance === true && chance.happens(`${who} is seen`, 400))
      handInLater(market, order)
  }
}

/** Whoever saw the authorization may hand it in, though a balance was charged in its place. */
function handInLater({ chain, chance, scheduler }: Market, order: Order): void {
  const { name, network, payer: from, amount: value, nonce, validBefore } = order
  if (network.id !== chain.network.id) return
  const { payTo: to } = network
  const transfer = { from, to, value, nonce, validBefore: BigInt(validBefore) }
  scheduler.after(chance.between(`${name} is handed in`, 0, 120_000), () => chain.handIn(transfer))
}

/** Somebody else uses the authorization before its buyer brings it, as anybody can who gets to see it. */
async function overtake({ chain, scheduler }: Market, order: Order): Promise<void> {
  const { name, network, payer: from, amount: value, nonce, validBefore } = order
  if (network.id !== chain.network.id) return
  const { payTo: to } = network
  chain.handIn({ from, to, value, nonce, validBefore: BigInt(validBefore) })
  await scheduler.sleep(overtakingMs)
  order.isUsedBefore = (chain.moved(from, nonce)?.depth ?? 0) >= 2
  scheduler.note(`${name} was ${order.isUsedBefore ? '' : 'not '}used by somebody else`)
}

/** Says that the service rightly refuses the order at every try. */
export function isTooSmall({ kind, amount, isUsedBefore }: Order): boolean {
  return kind === 'deposit' && amount < depositMin && !isUsedBefore
}

/** Says that the money has arrived and buys nothing. */
export function isUnmatched({ kind, isUsedBefore }: Order): boolean {
  return isUsedBefore && kind !== 'deposit'
}

/** Brings a payment that was used before for its payer's balance, where that is not done yet. */
export async function claimUnmatched(market: Market, order: Order): Promise<void> {
  const { name, settling } = order
  for (let n = 0; n < triesMax; n++) {
    const answer = await market.send(`${name} settles`, settling, { headers: {} })
    const isBooked = answer?.status === 200 && JSON.parse(answer.text).success === true
    if (isBooked || answer?.status === 409) return
    await market.scheduler.sleep(2_000)
  }
  market.wrong(`${name} was used before it came, and is not taken for its payer's balance`)
}

/** Tries until an answer settles the outcome, or the buyer gives up. */
export async function persist(market: Market, order: Order): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    if (await attempt(market, order)) return
    if (market.isRough && chance.happens(`${order.name} gives up`, givesUpPerMille)) return
    await scheduler.sleep(chance.between(`${order.name} pauses`, 500, 8_000))
  }
}

/** Sends one request with the payment and checks the answer; true where nothing is open any more. */
export async function attempt(market: Market, order: Order): Promise<boolean> {
  let at = standing(market, order)
  const answer = await market.send(order.name, order.asked, {
    headers: order.headers,
    onAnswer: () => {
      at = standing(market, order)
    },
  })
  if (answer === undefined) return false
  const refusal = findRefusal(order, answer)
  if (refusal !== undefined) {
    order.isSpent = refusal.includes('its money is on the balance of')
    judgeRefusal(market, order, { at, refusal })
    return true
  }
  if (answer.status < 300) {
    judgeDelivery(market, order, answer)
    return true
  }
  const isRefused = isUnmatched(order) || market.remote.hasLied(order.payer, order.nonce)
  if (answer.status === 409 && isRefused) return true
  if (answer.status !== 503 && answer.status !== 500)
    market.wrong(
      `${order.name}: an honest try was answered ${answer.status} ${answer.code} ${answer.text}`,
    )
  return false
}

/** Uses a payment for what it was not made for: it must buy nothing. */
async function misuse(market: Market, order: Order): Promise<void> {
  const { chain } = market
  const isSeen =
    order.delivered !== undefined || chain.moved(order.payer, order.nonce) !== undefined
  if (order.quoteId === undefined || order.kind === 'deposit' || !isSeen) return
  const other =
    order.kind === 'read'
      ? makeListRequest(order.rows + 1)
      : makeStoreRequest('notes', [{ mark: `stolen ${order.name}` }])
  const headers = { ...order.headers }
  const stolen = { ...order.headers, ...withoutQuote(headers) }
  for (const [asked, sent] of [
    [other, headers],
    [order.asked, stolen],
  ] as const) {
    const answer = await market.send(`${order.name} misused`, asked, { headers: sent })
    if (answer !== undefined && answer.status < 300)
      market.wrong(`${order.name}: a payment bought what it was not made for: ${answer.text}`)
  }
}

/** The same payment as who sees it on the chain could make it: without the quote. */
function withoutQuote(headers: Readonly<Record<string, string>>): Record<string, string> {
  const payment = JSON.parse(Buffer.from(headers['payment-signature'] ?? '', 'base64').toString())
  delete payment.accepted.extra.quoteId
  return { 'payment-signature': base64(payment) }
}

/** Finds the reason for which an answer says that nothing was bought. */
function findRefusal(order: Order, answer: Answer): string | undefined {
  if (answer.status === 402) return answer.text.slice(0, 200)
  if (order.kind !== 'deposit' || answer.status !== 200) return undefined
  const { success, errorReason } = JSON.parse(answer.text)
  return success === true ? undefined : String(errorReason)
}

/** Says where the money of an order is: moved by the service itself, possibly about to be moved by it, or neither. */
function standing(
  market: Market,
  { payer, nonce, network }: Order,
): 'moved' | 'under way' | 'open' {
  const { chain, remote } = market
  // A facilitator that refuses one process may have done what another one asked.
  if (network.id === otherNetwork.id)
    return remote.moved(payer, nonce) !== undefined && !remote.hasRefused(payer, nonce)
      ? 'moved'
      : 'open'
  if (chain.moved(payer, nonce)?.by === 'us') return 'moved'
  return chain.isPooled(payer, nonce) ? 'under way' : 'open'
}

/** Checks that there is never a new 402 for money that moved or may still move, unless it was spent since. */
function judgeRefusal(
  market: Market,
  order: Order,
  found: { at: ReturnType<typeof standing>; refusal: string },
): void {
  if (found.at !== 'open' && !order.isSpent)
    market.wrong(`${order.name} was refused while its money is ${found.at}: ${found.refusal}`)
}

/** Checks that there is no data without money, and that the answer is the same every time. */
function judgeDelivery(market: Market, order: Order, answer: Answer): void {
  const { payer, nonce, network } = order
  const isFromBalance = readsFromBalance(answer)
  if (isFromBalance && order.isBalanceOff)
    market.wrong(`${order.name} was paid from a balance, and asked for something else`)
  if (isTooSmall(order)) market.wrong(`${order.name} was taken, and is too small a deposit`)
  if (isUnmatched(order)) market.wrong(`${order.name} bought something, though it was used before`)
  // That the balance had it is seen in the ledger: nobody is in debt.
  if (isFromBalance) market.scheduler.note(`${order.name} was paid from the balance of ${payer}`)
  else if (network.id === otherNetwork.id) {
    const moved = market.remote.moved(payer, nonce)
    if (moved === undefined) market.wrong(`${order.name} was delivered and never paid`)
    else market.remote.isKnown(moved.hash)
  } else {
    const moved = market.chain.moved(payer, nonce)
    if (moved === undefined || moved.depth < 2)
      market.wrong(
        `${order.name} was delivered before its money was there (${moved?.depth ?? 0} blocks)`,
      )
  }
  const paymentId =
    order.kind === 'deposit' ? JSON.parse(answer.text).payment_id : answer.headers['x-payment-id']
  order.delivered ??= { text: answer.text, paymentId: String(paymentId), isFromBalance }
  if (order.delivered.isFromBalance !== isFromBalance)
    market.wrong(`${order.name} was told otherwise how it was paid`)
  if (order.delivered.text !== answer.text)
    market.wrong(`${order.name} was answered ${answer.text} and before ${order.delivered.text}`)
  if (order.delivered.paymentId !== paymentId)
    market.wrong(`${order.name} has two payments: ${paymentId} and ${order.delivered.paymentId}`)
}

/** Reads how the answer says it was paid. */
function readsFromBalance({ headers }: Answer): boolean {
  const header = headers['payment-response'] ?? headers['x-payment-response']
  if (header === undefined) return false
  return JSON.parse(Buffer.from(header, 'base64').toString()).paid_from === 'balance'
}

/** Requests a price, and signs a payment for it. */
export async function requestOrder(
  market: Market,
  who: string,
  n: number,
): Promise<Order | undefined> {
  const { chance, scheduler } = market
  const name = `${who}.${n}`
  const kind = chance.pick(`${who} kind`, ['read', 'read', 'write', 'write', 'deposit'] as const)
  const rows = chance.between(`${who} rows`, 1, kind === 'write' ? 3 : 9)
  const marks = Array.from({ length: rows }, (_, at) => ({ mark: `${name}/${at}` }))
  const isJoin = kind === 'read' && chance.happens(`${who} joins`, 400)
  const reading = isJoin ? makeJoinRequest(rows) : makeListRequest(rows)
  const asked = kind === 'write' ? makeStoreRequest('notes', marks) : reading
  const own: Readonly<Record<string, string>> =
    kind === 'write' ? { 'x-app-key': market.keys.appKey } : {}
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const step = market.step()
    const answer = await market.send(name, asked, { headers: own })
    if (answer?.status === 402) {
      const order = makeOrder(market, { name, kind, isJoin, asked, own, rows, answer })
      judgeQuote(market, order, step)
      return order
    }
    if (answer !== undefined && answer.status < 500)
      market.wrong(`${name}: without a payment the answer was ${answer.status} ${answer.text}`)
    await scheduler.sleep(chance.between(`${who} waits for a quote`, 500, 5_000))
  }
  return undefined
}

/** Checks that the price was in force at some time since the step. */
function judgeQuote(market: Market, order: Order, step: number): void {
  const { name, isJoin, rows, price, derive } = order
  const wholes = market.prices.since(step).map((one) => one * BigInt(rows) + derive)
  const derives = isJoin ? market.derives.since(step) : [0n]
  if (!wholes.includes(price) || !derives.includes(derive))
    market.wrong(`${name} was asked for ${price} with ${derive}, by a price that is not in force`)
}

function makeOrder(
  market: Market,
  given: {
    name: string
    kind: Order['kind']
    isJoin: boolean
    asked: Asked
    own: Readonly<Record<string, string>>
    rows: number
    answer: Answer
  },
): Order {
  const { chance, scheduler } = market
  const { name, kind, isJoin, own, rows, answer } = given
  // Without a quote a payment says nothing about the parts of its price.
  const isV1 = kind !== 'deposit' && !isJoin && chance.happens(`${name} version 1`, 250)
  const required = isV1
    ? JSON.parse(answer.text)
    : JSON.parse(Buffer.from(answer.headers['payment-required'] ?? '', 'base64').toString())
  const entry: Entry = chance.pick(`${name} way`, required.accepts)
  const network = [ownNetwork.id, ownNetwork.v1Name].includes(entry.network)
    ? ownNetwork
    : otherNetwork
  const key = createHash('sha256')
    .update(`key of ${name.split('.')[0]}`)
    .digest()
  const payer = deriveAddress(key)
  const nonce = `0x${chance.bytes(`${name} nonce`, 32).toString('hex')}`
  const asks = BigInt(entry.amount ?? entry.maxAmountRequired ?? 0)
  // A deposit may be worth several purchases.
  const times = kind === 'deposit' ? chance.between(`${name} times`, 1, 8) : 1
  const amount = asks * BigInt(times)
  const isBalanceOff = chance.happens(`${name} wants no balance`, 150)
  const validBefore = Math.floor(scheduler.now / 1000) + chance.between(`${name} valid`, 40, 150)
  const signed = {
    from: payer,
    to: network.payTo,
    value: amount,
    validAfter: 0n,
    validBefore: BigInt(validBefore),
    nonce,
  }
  const signature = signDigest(digestTransfer(network, signed), key)
  const authorization = {
    ...signed,
    value: String(amount),
    validAfter: '0',
    validBefore: String(validBefore),
  }
  const payload = { signature, authorization }
  const accepted = kind === 'deposit' ? { ...entry, amount: String(amount) } : { ...entry }
  const v2 = { x402Version: 2, accepted, payload }
  const v1 = { x402Version: 1, scheme: 'exact', network: entry.network, payload }
  const settling = makeDepositRequest(isV1 ? v1 : v2)
  const asked = kind === 'deposit' ? settling : given.asked
  const header = isV1 ? { 'x-payment': base64(v1) } : { 'payment-signature': base64(v2) }
  scheduler.note(`${name} signs ${amount} on ${network.id} for ${kind} of ${rows}`)
  return {
    name,
    kind,
    asked,
    headers:
      kind === 'deposit' ? {} : { ...own, ...header, ...(isBalanceOff && { 'x-balance': 'off' }) },
    network,
    payer,
    nonce,
    amount,
    price: BigInt(entry.extra.price ?? asks),
    isJoin,
    derive: BigInt(entry.extra.costBreakdown.derive ?? 0),
    rows,
    validBefore,
    quoteId: isV1 ? undefined : entry.extra.quoteId,
    settling,
    isUsedBefore: false,
    isBalanceOff,
    isSpent: false,
    delivered: undefined,
  }
}

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
    if (chance.happens('seller sets prices', 400)) {
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

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}
