import { limits } from '@tollbase/contract/limits'
import { verifyReceipt } from '@tollbase/verify/receipt'
import { makeSigner } from '../../packages/server/src/chain/signing.ts'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { finishErrands, runAgents } from './agents.ts'
import { Chance } from './chance.ts'
import type { Channel } from './channel-order.ts'
import { drainChannels, finishChannels, payByChannels } from './channels.ts'
import { addSamples, buyByCount, buyByField, buyByResult } from './counts.ts'
import type { Agent } from './errands.ts'
import { spendInHaste } from './hasty.ts'
import { requestOrder } from './make-order.ts'
import { Market } from './market.ts'
import { checkLedger, checkMarket, checkSettled, type Happened } from './market-checks.ts'
import {
  endAutomatic,
  payOut,
  type Takings,
  takeAll,
  withdrawAs,
  withdrawAsOperator,
} from './money-out.ts'
import { buyByName, finishPurchases, type NamedPurchase } from './named-purchases.ts'
import { finishNamed, type Named, sellByName } from './named-stores.ts'
import { finishSweeps, payByTransfers } from './natives.ts'
import { restart } from './operators.ts'
import { type Bought, isTooSmall, isUnmatched, mayBeUnknown, type Order } from './order.ts'
import { attempt, claimUnmatched, persist, shopAs } from './orders.ts'
import { type Copy, openCopy, type Place, type Result } from './place.ts'
import { finishRefunds, giveBack, type Refunding } from './refunds.ts'
import { makeReceiptRequest } from './requests.ts'
import { payInLostLife, releaseAll, releaseNowAndThen, restoreNowAndThen } from './restores.ts'
import { finishReversals, takeBack, takeBackLast, watchHeldMoney } from './reversals.ts'
import { type Acknowledged, sell, supply } from './sellers.ts'
import { toRequestParts } from './send-request.ts'
import type { SettlementOrder } from './settlement-order.ts'
import { finishSettlements, settleForOthers } from './settlements.ts'
import { serviceName, signingKey } from './shop.ts'
import type { SignInOrder } from './sign-in-order.ts'
import { buySigningIn, fetchSigned, finishSigned } from './sign-ins.ts'
import { countOpenTransfers } from './transfer-checks.ts'
import { buyByUpto, finishUptos } from './upto-orders.ts'
import { visit } from './visits.ts'

/** Postings stay as they were written, so a look finds what earlier ones would have: it only ends a wrong run early. */
const ledgerEveryMs = 30_000
/**
 * After a payment's end: blocks may lag behind the clock, and reconciliation leaves a margin. Nor does any quote live
 * that a process gave which is gone: buyers that pay without one are sold to again.
 */
const afterLastMs = 330_000
/** Between leaps so much time is lived through: some rounds of all work but the slowest, which comes every minute. */
const awakeMs = 10_000
const napMs = 65_000
const sleeplessPerMille = 50
const transferMs = limits.transferSeconds * 1000
/** The chain must be past a transfer's end by ten minutes. */
const lateMs = 1_200_000
const lastTries = 6
/** The number is so high that chance picks both networks. */
const lastSalesMax = 8

/**
 * One run of the market, perhaps with a subject that it shall have: rough for a while, then calm until everything must
 * have come to its end.
 */
export async function runMarket(seed: string, place: Place, subject?: string): Promise<Result> {
  const copy = await place.createCopy('shop')
  const database = await openCopy(copy)
  const chance = new Chance(seed)
  const market = new Market({ database, keys: place.keys, chance, subject })
  const orders: Order[] = []
  const acknowledged: Acknowledged[] = []
  const takings: Takings = { list: [], isAutomatic: false }
  const agents: Agent[] = []
  const named: Named[] = []
  const refunds: Refunding[] = []
  const channels: Channel[] = []
  const purchases: NamedPurchase[] = []
  const signIns: SignInOrder[] = []
  const known = { orders, acknowledged, takings, agents, named, refunds, channels, purchases }
  const settlements: SettlementOrder[] = []
  const happened = { ...known, signIns, settlements }
  let isOver = false
  try {
    market.start()
    watchLedger(market, () => isOver)
    if (market.subjects.has('reversals')) watchHeldMoney(market, () => isOver)
    play(market, happened).then(
      () => {
        isOver = true
      },
      (error: unknown) => {
        market.wrong(error instanceof Error ? (error.stack ?? error.message) : String(error))
      },
    )
    await market.scheduler.run(() => isOver || market.problems.length > 0)
    const isRight = market.problems.length === 0
    market.end()
    // The unfinished work of the last process is rolled back first.
    await market.scheduler.run(() => true)
    const late = isRight ? await checkMarket(market, happened) : []
    const isAudited = isRight && late.length === 0 && chance.happens('audit', place.auditedPerMille)
    const difference = isAudited ? await audited(place, copy) : []
    const problems = [...market.problems, ...late, ...difference]
    return { problems, trace: market.scheduler.trace, pairs: market.pairs }
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { problems: [...market.problems, text], trace: market.scheduler.trace }
  } finally {
    await database.close()
    await place.drop(copy)
  }
}

async function play(market: Market, happened: Happened): Promise<void> {
  const { orders, acknowledged, takings, agents, named, refunds, channels, purchases } = happened
  const { signIns, settlements } = happened
  const { chance, scheduler } = market
  let isSelling = true
  const selling = [sell(market, acknowledged, () => !isSelling), supply(market, () => !isSelling)]
  const count = chance.between('buyers', 2, 5)
  const buying = Array.from({ length: count }, (_, at) => shopAs(at + 1, market, orders))
  if (market.subjects.has('transfers')) {
    selling.push(payOut(market, takings, () => !isSelling))
    selling.push(withdrawAsOperator(market, takings, () => !isSelling))
    buying.push(spendInHaste(market, { orders, takings }))
    for (let buyer = 1; buyer <= count; buyer++) selling.push(withdrawAs(buyer, market, takings))
  }
  if (market.subjects.has('names')) selling.push(sellByName(market, named, () => !isSelling))
  if (market.subjects.has('refunds'))
    selling.push(giveBack(market, { orders, refunds }, () => !isSelling))
  if (market.subjects.has('keys')) buying.push(runAgents(market, count, agents))
  if (market.subjects.has('stops')) selling.push(restart(market, () => !isSelling))
  if (market.subjects.has('reversals')) selling.push(takeBack(market, () => !isSelling))
  if (market.subjects.has('restores')) {
    selling.push(restoreNowAndThen(market, () => !isSelling))
    selling.push(releaseNowAndThen(market, () => !isSelling))
    buying.push(payInLostLife(market, orders, () => !isSelling))
  }
  if (market.subjects.has('channels')) buying.push(payByChannels(market, count, channels))
  if (market.subjects.has('identifiers')) buying.push(buyByName(market, purchases))
  if (market.subjects.has('counts')) {
    buying.push(buyByCount(market, orders))
  }
  if (market.subjects.has('results')) buying.push(buyByResult(market, orders))
  if (market.subjects.has('counts') || market.subjects.has('results'))
    selling.push(addSamples(market, acknowledged, () => !isSelling))
  if (market.subjects.has('fields')) buying.push(buyByField(market, orders))
  if (market.subjects.has('exhibits')) buying.push(visit(market, orders))
  if (market.subjects.has('upto')) buying.push(buyByUpto(market, orders))
  if (market.subjects.has('natives')) buying.push(payByTransfers(market, orders))
  if (market.subjects.has('signins')) buying.push(buySigningIn(market, count, happened))
  if (market.subjects.has('settlements')) buying.push(settleForOthers(market, settlements))
  await Promise.race([
    Promise.all(buying),
    scheduler.sleep(chance.between('rough for', 20_000, 90_000)),
  ])
  market.calmDown()
  isSelling = false
  await Promise.all([...buying, ...selling])
  await finishErrands(market, agents)
  await finishNamed(market, named)
  await finishRefunds(market, refunds)
  await fetchSigned(market, signIns)
  // Only who brings it tells the service of such a payment.
  await claimUnknown(market, orders)
  const signed = [...orders, ...purchases.flatMap((one) => one.orders), ...settlements]
  const last = Math.max(0, ...signed.map(({ validBefore }) => validBefore * 1000))
  if (market.subjects.has('reversals')) await takeBackLast(market)
  await passQuietly(market, Math.max(0, last - scheduler.now) + afterLastMs)
  if (market.subjects.has('reversals')) await finishReversals(market, signed)
  await releaseAll(market)
  // By now all money that arrived is booked, without any repeated request.
  for (const problem of await scheduler.held(() => checkSettled(market, orders, signIns)))
    market.wrong(problem)
  await finishErrands(market, agents)
  await Promise.all(orders.map((order) => lastAnswer(market, order)))
  await claimUnknown(market, orders)
  await releaseAll(market)
  await lastSales(market, orders)
  await finishPurchases(market, purchases)
  await finishSigned(market, happened)
  await finishSettlements(market, settlements)
  if (market.subjects.has('upto')) await finishUptos(market, orders)
  await finishChannels(market, channels)
  await lastReceipts(market, [...orders, ...channels.flatMap((one) => one.orders), ...signIns])
  // The last answered write is applied and marked by then.
  await scheduler.sleep(awakeMs)
  if (channels.length > 0) await drainChannels(market, channels)
  if (market.subjects.has('natives')) await finishSweeps(market, orders)
  if (!market.subjects.has('transfers')) return
  await takeAll(market, takings, count)
  await scheduler.sleep(30_000)
  // The claims from channels are counted by now.
  const isLast = market.subjects.has('reversals') && channels.length === 0
  if (isLast) await takeBackLast(market)
  if ((await scheduler.held(() => countOpenTransfers(market.database))) > 0) {
    if (market.subjects.has('reversals')) await endAutomatic(market, takings)
    // Money that the token does not move in a day is given back, once two looks agree, a minute apart.
    market.standStill(transferMs + lateMs)
    await scheduler.sleep(120_000 + market.chain.finalMs)
  }
  // A payer's cancellation may stand in a block that is not final yet.
  if (market.subjects.has('reversals')) await finishReversals(market, orders)
  if (isLast && market.subjects.has('natives')) await finishSweeps(market, orders)
}

/**
 * Lets time pass in which nobody asks for anything. In most runs most of it passes in leaps, as on a machine that is
 * suspended: to renew leases second by second takes more steps than all else of a run.
 */
async function passQuietly({ chance, scheduler }: Market, ms: number): Promise<void> {
  if (chance.happens('nothing sleeps', sleeplessPerMille)) return scheduler.sleep(ms)
  await scheduler.sleep(awakeMs)
  for (const leapMs of [ms - 2 * napMs - 4 * awakeMs, napMs, napMs]) {
    scheduler.note('all is suspended')
    scheduler.leap(Math.max(0, leapMs))
    await scheduler.sleep(awakeMs)
  }
}

/** Brings what may have arrived without the service for its payers' balances. */
async function claimUnknown(market: Market, orders: readonly Order[]): Promise<void> {
  const unknown = orders.filter((one) => mayBeUnknown(one) && one.delivered === undefined)
  await Promise.all(unknown.map((order) => claimUnmatched(market, order)))
}

/** Checks that the service still sells on every network after all that happened. */
async function lastSales(market: Market, orders: Order[]): Promise<void> {
  const networks = new Set<string>()
  for (let n = 0; networks.size < 2 && n < lastSalesMax; n++) {
    const order = await requestOrder(market, 'last', { n })
    if (order === undefined) return market.wrong('nothing is offered in the end')
    orders.push(order)
    await persist(market, order)
    if (isTooSmall(order)) continue
    if (order.isForgotten === true) {
      // A process died at a reversal, and the next one is younger than a quote.
      await market.scheduler.sleep(limits.quoteLifetimeSeconds * 1000)
      continue
    }
    if (order.delivered === undefined)
      market.wrong(`nothing is sold on ${order.network.id} in the end`)
    networks.add(order.network.id)
  }
}

/** Checks that each sale has a receipt that proves the purchase, by the service's key and without it. */
async function lastReceipts(market: Market, orders: readonly Bought[]): Promise<void> {
  for (const { name, kind, asked, delivered } of orders) {
    if (delivered === undefined || kind === 'deposit') continue
    const id = delivered.paymentId.replace('pay_', 'rcpt_')
    const answer = await market.send(`${name} receipt`, makeReceiptRequest(id), { headers: {} })
    const { checks } = verifyReceipt(JSON.parse(answer?.text ?? 'null'), {
      trustedKey: makeSigner(signingKey, `${serviceName}/system`).vkey,
      request: toRequestParts(asked),
      reply: Buffer.from(delivered.text),
    })
    for (const { ok, detail } of checks)
      if (!ok) market.wrong(`the receipt of ${name} does not hold: ${detail}`)
  }
}

/** Checks that there is no money without data: a repeated request gets what was paid for, and nothing else. */
async function lastAnswer(market: Market, order: Order): Promise<void> {
  const { payer, nonce, network } = order
  const where = network.id === market.chain.network.id ? market.chain : market.remote
  const isPaid = where.moved(payer, nonce) !== undefined && !isUnmatched(order)
  const delivered = order.delivered
  order.delivered = undefined
  order.isSpent = false
  for (let n = 0; n < lastTries; n++) {
    if (await attempt(market, order)) break
    await market.scheduler.sleep(3_000)
  }
  const last = order.delivered as Order['delivered']
  const isDelivered = last !== undefined
  // A thing that was sold stays sold, though its money is gone.
  const wasPaid = where.wasConfirmed(payer, nonce)
  const isBought = isDelivered || order.isSpent || order.isOvertaken === true
  const isRight = isPaid ? isBought : last?.isFromBalance !== false || wasPaid
  if (!isRight)
    market.wrong(
      `${order.name} was ${isPaid ? 'paid and not' : 'not paid and'} delivered in the end`,
    )
  if (delivered !== undefined && JSON.stringify(order.delivered) !== JSON.stringify(delivered))
    market.wrong(`${order.name} was answered otherwise in the end`)
}

function watchLedger(market: Market, isOver: () => boolean): void {
  const { scheduler, database } = market
  const look = () => {
    if (isOver()) return
    void scheduler
      .held(() => checkLedger(database))
      .then((problems) => {
        for (const problem of problems) market.wrong(problem)
        scheduler.after(ledgerEveryMs, look)
      })
  }
  scheduler.after(ledgerEveryMs, look)
}

/** Runs the product's own audit of every chain and table. */
async function audited(place: Place, copy: Copy): Promise<string[]> {
  const flags = { dataDir: place.folder, databaseUrl: copy.url }
  const config = { ...readConfig(flags, {}), serviceName }
  const report = await audit(config, () => undefined)
  return report.equal
    ? []
    : [`the audit differs: ${JSON.stringify(report.difference ?? report.unfinished)}`]
}
