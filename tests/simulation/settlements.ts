import type { Market } from './market.ts'
import { makeDepositRequest, makeSettlementRequest, makeVerificationRequest } from './requests.ts'
import { settle, verify } from './settlement-judge.ts'
import {
  makeSent,
  makeServers,
  makeSettlementOrder,
  type Sent,
  type Server,
  type SettlementOrder,
} from './settlement-order.ts'
import { ownNetwork } from './shop.ts'

/** The sales of a server, at least and at most. */
const usual = [1, 5] as const
const popular = [8, 12] as const
const triesMax = 12
const givesUpPerMille = 150
/** Blocks until what somebody else hands in can be undone no more, with some to spare. */
const overtakingMs = 14_000
/** A block takes longer, and so does its replacement. */
const lookEveryMs = 1_000
const thief = `0x${'ef'.repeat(20)}`

/**
 * Other servers let the service settle what their buyers pay them. They ask whether a payment is good, or do not; send it
 * several times at once, lose answers, and ask again; some of their buyers have used it elsewhere before, or use it at
 * the same time. Somebody who sees a payment asks for it in his own name, to himself, and for a balance here.
 */
export async function settleForOthers(market: Market, orders: SettlementOrder[]): Promise<void> {
  const { chance, scheduler } = market
  watchUses(market, orders)
  const servers = makeServers(market)
  const running: Promise<void>[] = []
  const serve = async (server: Server) => {
    // More than it is allowed.
    const isPopular = chance.happens(`${server.name} is popular`, 250)
    const [least, most] = isPopular ? popular : usual
    const times = chance.between(`${server.name} sells`, least, most)
    for (let n = 0; n < times; n++) {
      await scheduler.sleep(chance.between(`${server.name} waits`, 0, 6_000))
      const order = makeSettlementOrder(market, server, n)
      orders.push(order)
      const selling = sell(market, { order, all: orders, servers })
      if (chance.happens(`${server.name} is busy`, 600)) await selling
      else running.push(selling)
    }
  }
  running.push(...servers.map(serve))
  for (const one of running) await one
}

type Sale = {
  readonly order: SettlementOrder
  readonly all: readonly SettlementOrder[]
  readonly servers: readonly Server[]
}

async function sell(market: Market, sale: Sale): Promise<void> {
  const { chance, scheduler } = market
  const { order } = sale
  const { name } = order
  if (chance.happens(`${name} is overtaken`, 150)) await overtake(market, order)
  else if (chance.happens(`${name} has a rival`, 200)) race(market, order)
  if (chance.happens(`${name} is checked`, 700)) await verify(market, sale)
  if (chance.happens(`${name} is seen early`, 300)) await forge(market, order)
  if (chance.happens(`${name} is put off`, 300))
    await scheduler.sleep(chance.between(`${name} is put off for`, 0, 30_000))
  const tries = [0, ...(chance.happens(`${name} is sent twice`, 400) ? [1, 2] : [])]
  await Promise.all(tries.map(() => persist(market, sale)))
  if (chance.happens(`${name} is seen`, 500)) await forge(market, order)
  if (chance.happens(`${name} is asked again`, 600)) await settle(market, sale)
  if (chance.happens(`${name} is copied`, 400)) await copy(market, sale)
}

/** Asks until an answer says what became of it, or its server gives up. */
async function persist(market: Market, sale: Sale): Promise<void> {
  const { chance, scheduler } = market
  const { name } = sale.order
  for (let n = 0; n < triesMax; n++) {
    const outcome = await settle(market, sale)
    if (outcome === 'settled' || outcome === 'over') return
    if (outcome === 'pending' && chance.happens(`${name} is seen while it is pending`, 500)) {
      await copy(market, sale)
      await forge(market, sale.order)
    }
    if (market.isRough && chance.happens(`${name} gives up`, givesUpPerMille)) return
    await scheduler.sleep(chance.between(`${name} pauses`, 500, 8_000))
  }
}

/** Another server asks for the same payment: what was called pending, or settled, is told to nobody else. */
async function copy(market: Market, sale: Sale): Promise<void> {
  const { order, servers } = sale
  const server = servers.find((one) => one !== order.server)
  if (server === undefined) return
  const { startedTold } = order
  const startedPending = order.isSent ? order.startedPending : undefined
  const outcome = await settle(market, sale, { server, sent: order.sent })
  // Another process has no memory of what is pending, and a restored database none of what was told.
  const wasTold = startedTold !== undefined && !market.subjects.has('restores')
  const isKnown = wasTold || [startedPending, startedTold].includes(market.started)
  if (outcome === 'settled' && isKnown)
    market.wrong(`${order.name} was settled for another server, which only copied it`)
}

/** Brings a payment for what its buyer has not signed, and for a balance here. */
async function forge(market: Market, order: SettlementOrder): Promise<void> {
  const { name, server, sent, value } = order
  const { x402Version, payload } = sent.paymentPayload
  const redirect = (to: string) => ({
    ...payload,
    authorization: { ...payload.authorization, to },
  })
  const { payTo } = ownNetwork
  const forged: readonly Sent[] = [
    makeSent(x402Version, redirect(thief), { payTo: thief, value }),
    makeSent(x402Version, payload, { payTo: thief, value }),
    makeSent(x402Version, payload, { payTo: server.payTo, value: value + 1n }),
    makeSent(x402Version, redirect(payTo), { payTo, value }),
    makeSent(x402Version, payload, { payTo, value }),
    {
      ...sent,
      paymentRequirements: makeSent(x402Version, payload, { payTo, value }).paymentRequirements,
    },
  ]
  for (const one of forged)
    for (const asked of [makeVerificationRequest(one), makeSettlementRequest(one)]) {
      const answer = await market.send(`${name} forged`, asked, { headers: server.headers })
      // It is of the same authorization.
      if (answer?.status !== 200) order.isUnheard = true
      if (answer?.status !== 200) continue
      const { isValid, success } = JSON.parse(answer.text)
      if (isValid === true || success === true)
        market.wrong(`${name} was taken for what nobody signed: ${answer.text}`)
    }
  const kept = await market.send(`${name} forged`, makeDepositRequest(sent.paymentPayload), {
    headers: {},
  })
  if (kept?.status === 200 && JSON.parse(kept.text).success === true)
    market.wrong(`${name} became a balance: ${kept.text}`)
}

/** Somebody else uses the authorization before its server does anything with it. */
async function overtake({ chain, scheduler }: Market, order: SettlementOrder): Promise<void> {
  chain.handIn(toTransfer(order))
  await scheduler.sleep(overtakingMs)
  order.isUsedBefore = (chain.moved(order.payer, order.nonce)?.depth ?? 0) >= chain.confirmations
}

/** Somebody else uses it at about the same time. */
function race({ chain, chance, scheduler }: Market, order: SettlementOrder): void {
  const ms = chance.between(`${order.name} is raced for`, 0, overtakingMs)
  scheduler.after(ms, () => chain.handIn(toTransfer(order)))
}

function toTransfer({ payer: from, server, value, nonce, validBefore }: SettlementOrder) {
  return { from, to: server.payTo, value, nonce, validBefore: BigInt(validBefore) }
}

/** Notes which payments a block had, as a replaced one may have it no more. */
function watchUses({ chain, scheduler }: Market, orders: readonly SettlementOrder[]): void {
  const look = () => {
    for (const order of orders) order.wasUsed ||= chain.isUsed(order.payer, order.nonce)
    scheduler.after(lookEveryMs, look)
  }
  look()
}

/** In the end each is asked for once more: what was not told is told, and nothing else moves. */
export async function finishSettlements(
  market: Market,
  orders: readonly SettlementOrder[],
): Promise<void> {
  for (const order of orders) await settle(market, { order, all: orders })
}
