import { findRefusal, judgeDelivery, judgeHeld, judgeRefusal, standing } from './judge-order.ts'
import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import { base64, isUnmatched, type Order } from './order.ts'
import { listDearerParcels } from './parcel-rules.ts'
import { makeListRequest, makeStoreRequest } from './requests.ts'
import { isOfResult } from './surveys.ts'

const triesMax = 12
const givesUpPerMille = 150
const overtakenPerMille = 120
const rivalsPerMille = 500
/** Blocks until what somebody else hands in can be undone no more, with some to spare. */
const overtakingMs = 14_000

/** Buys some things, one after the other; returns when nothing more is to be done. */
export async function shopAs(buyer: number, market: Market, orders: Order[]): Promise<void> {
  const { chance, scheduler } = market
  const who = `b${buyer}`
  const count = chance.between(`${who} buys`, 1, 4)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
    const order = await requestOrder(market, who, { n })
    if (order === undefined) continue
    orders.push(order)
    // Money that somebody else brought to the press's wallet is not ours to give back.
    const mayBeOvertaken = !order.isDirect && !market.subjects.has('reversals')
    if (mayBeOvertaken && chance.happens(`${who} is overtaken`, overtakenPerMille))
      await overtake(market, order)
    else if (market.subjects.has('rivals') && chance.happens(`${who} has a rival`, rivalsPerMille))
      await race(market, order)
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
async function overtake(market: Market, order: Order): Promise<void> {
  const { chain, scheduler } = market
  const { name, network, payer: from, nonce } = order
  if (network.id !== chain.network.id) return
  handIn(market, order)
  await scheduler.sleep(overtakingMs)
  order.isUsedBefore = (chain.moved(from, nonce)?.depth ?? 0) >= chain.confirmations
  scheduler.note(`${name} was ${order.isUsedBefore ? '' : 'not '}used by somebody else`)
}

/**
 * Somebody else uses the authorization at about the time at which its buyer brings it: another service with the same
 * address, say, or whoever saw it on its way. Blocks that are replaced may take it back.
 */
async function race({ chain, chance, scheduler }: Market, order: Order): Promise<void> {
  const { name, network, payer: from, amount: value, nonce, validBefore, isDirect } = order
  if (network.id !== chain.network.id || isDirect) return
  const { payTo: to } = network
  const transfer = { from, to, value, nonce, validBefore: BigInt(validBefore) }
  order.isOvertaken = true
  const lead = chance.between(`${name} is raced for`, -overtakingMs / 2, overtakingMs)
  if (lead < 0) {
    scheduler.after(-lead, () => chain.handIn(transfer))
    return
  }
  chain.handIn(transfer)
  await scheduler.sleep(lead)
}

/** Somebody else has handed in the authorization, as the life of the service did that is lost. */
export function handIn({ chain }: Market, order: Order): void {
  const { network, payer: from, amount: value, nonce, validBefore } = order
  chain.handIn({ from, to: network.payTo, value, nonce, validBefore: BigInt(validBefore) })
}

/** Brings a payment that buys nothing, as it was used before, for its payer's balance, where that is not done yet. */
export async function claimUnmatched(market: Market, order: Order): Promise<void> {
  const { name, settling } = order
  for (let n = 0; n < triesMax; n++) {
    const answer = await market.send(`${name} settles`, settling, { headers: {} })
    const isBooked = answer?.status === 200 && JSON.parse(answer.text).success === true
    // It may not have been used at all.
    const isOver = order.isOvertaken === true && answer?.status === 200
    if (isBooked || isOver || answer?.status === 409) return
    await market.scheduler.sleep(2_000)
  }
  if (!market.subjects.has('reversals'))
    market.wrong(`${name} buys nothing, and is not taken for its payer's balance`)
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
    const isFromBefore = refusal.includes('was made before this service was restored')
    if (isFromBefore) judgeHeld(market, order)
    order.isSpent = isFromBefore || refusal.includes('its money is on the balance of')
    order.isForgotten = refusal.includes('does not say for which price it was made')
    order.isKept ||= order.isTooLittle === true && refusal.includes('is less than the price')
    judgeRefusal(market, order, { at, refusal })
    return true
  }
  if (answer.status < 300) {
    judgeDelivery(market, order, answer)
    return true
  }
  if (answer.code === 'PAYMENT_HELD') {
    judgeHeld(market, order)
    return true
  }
  // There is more to give by now than was quoted, or, where the first answer is lost, than was taken for that.
  const isMoved = hasEverMoved(market, order)
  const mayGrow = isOfResult(order.shelf) || (order.isUpto && isMoved)
  if (mayGrow && answer.code === 'OFFER_CHANGED') {
    order.isSpent = isMoved
    return true
  }
  const isKnown = isUnmatched(order) || order.isOvertaken === true
  const isRefused = isKnown || market.remote.hasLied(order.payer, order.nonce)
  if (answer.status === 409 && isRefused) return true
  if (answer.code === 'REQUEST_IN_PROGRESS') return false
  if (answer.status !== 503 && answer.status !== 500)
    market.wrong(
      `${order.name}: an honest try was answered ${answer.status} ${answer.code} ${answer.text}`,
    )
  return false
}

/** Says that the money of an order moved, whoever moved it, also where the chain took it back after its confirmation. */
export function hasEverMoved({ chain, remote }: Market, order: Order): boolean {
  const { payer, nonce, network } = order
  const where = network.id === chain.network.id ? chain : remote
  return where.moved(payer, nonce) !== undefined || where.wasConfirmed(payer, nonce)
}

/** Uses a payment for what it was not made for: it must buy nothing. */
export async function misuse(market: Market, order: Order): Promise<void> {
  const { chain } = market
  const isSeen =
    order.delivered !== undefined || chain.moved(order.payer, order.nonce) !== undefined
  if (order.quoteId === undefined || order.kind === 'deposit' || !isSeen) return
  const other =
    order.kind === 'read'
      ? makeListRequest(order.rows + 1)
      : order.shelf === 'parcels'
        ? makeStoreRequest('parcels', listDearerParcels(order.asked))
        : makeStoreRequest('notes', [{ mark: `stolen ${order.name}` }])
  // Under the name of a request that was answered anything else is refused, or answered by it.
  const { 'idempotency-key': _, ...headers } = order.headers
  const stolen = { ...headers, ...withoutQuote(headers) }
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
