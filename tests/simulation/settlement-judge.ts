import type { Market } from './market.ts'
import { makeSettlementRequest, makeVerificationRequest } from './requests.ts'
import type { Sent, Server, SettlementOrder } from './settlement-order.ts'
import { facilitatorSettings } from './shop.ts'

/** The time before its end from which on nothing of a payment is sent any more, and some to spare, in seconds. */
const lateSeconds = 8
/** After so many payments that failed on our gas no more of a payer are tried for an hour. */
const failedPaymentsMax = 3

type Known = { readonly order: SettlementOrder; readonly all: readonly SettlementOrder[] }
type Refused = Known & { readonly server: Server; readonly reason: string }

/** The next thing that its server does: it goes on asking, or not. */
type Outcome = 'open' | 'pending' | 'settled' | 'over'

/** Asks whether a payment is good, and checks the answer. */
export async function verify(market: Market, { order, all }: Known): Promise<void> {
  const { name, server, sent } = order
  const { chain, subjects } = market
  const isGone = isDeep(market, order) && !subjects.has('reversals')
  const { headers } = server
  const answer = await market.send(`${name} verify`, makeVerificationRequest(sent), { headers })
  if (answer === undefined || answer.status >= 500) return
  const { isValid, invalidReason } = JSON.parse(answer.text)
  order.wasUsed ||= chain.isUsed(order.payer, order.nonce)
  if (isValid === true && isGone) market.wrong(`${name} is used, and was called good`)
  const refused = { order, all, server, reason: String(invalidReason) }
  if (isValid !== true && !isDue(market, refused))
    market.wrong(`${name} was called bad: ${answer.status} ${answer.text}`)
}

/** Asks for a payment to be settled, and checks the answer. */
export async function settle(
  market: Market,
  { order, all }: Known,
  by: { readonly server: Server; readonly sent: Sent } = order,
): Promise<Outcome> {
  const { name, payer, nonce } = order
  const { chain } = market
  const { server } = by
  // The process that answers, also where another one starts meanwhile.
  const { started } = market
  order.startedFirst ??= started
  order.failure = undefined
  order.open += 1
  const isAlone = order.open === 1
  const tries = order.callers.push(server.name)
  let mayMove = false
  const answer = await market.send(`${name} ${server.name}`, makeSettlementRequest(by.sent), {
    headers: server.headers,
    onAsk: (process) => {
      if (chain.countSent(payer, nonce) === 0) order.askers.add(`${server.name} by ${process}`)
    },
    onAnswer: () => {
      order.wasUsed ||= chain.isUsed(payer, nonce)
      const isOurs = chain.moved(payer, nonce)?.by === 'us'
      mayMove = isOurs || (chain.isPooled(payer, nonce) && !chain.hasFailedOnce(payer, nonce))
    },
  })
  order.open -= 1
  if (answer === undefined || answer.status >= 500) {
    order.isUnheard = true
    return 'open'
  }
  if (answer.status !== 200) {
    market.wrong(`${name} was answered ${answer.status} ${answer.code} ${answer.text}`)
    return 'over'
  }
  const { success, transaction, errorReason } = JSON.parse(answer.text)
  if (success === true) {
    judgeSettled(market, order, String(transaction))
    order.startedTold = started
    return 'settled'
  }
  if (errorReason === 'settlement_pending') {
    order.startedPending = started
    order.isSent = chain.countSent(payer, nonce) > 0 || order.wasUsed
    return 'pending'
  }
  if (errorReason === 'settlement_under_way') {
    const wasAlone = isAlone && order.callers.length === tries && !order.isUnheard
    if (wasAlone && order.startedPending === undefined)
      market.wrong(`${name} was called under way, and nobody else asked for it`)
    return 'open'
  }
  const reason = String(errorReason)
  if (!isDue(market, { order, all, server, reason }))
    market.wrong(`${name} was not settled: ${answer.text}`)
  // Nothing is said to who only copies it.
  if (reason === 'authorization_used' || server !== order.server) return 'over'
  order.failure = reason
  // Nothing was sent of what was called pending while nobody could tell: it is free for who asks next.
  order.startedPending = undefined
  if (mayMove) market.wrong(`${name} was called ${errorReason} while its money moves`)
  return 'over'
}

/** Checks that the money is there, as its server asked for it, and that one request alone is told so. */
function judgeSettled(market: Market, order: SettlementOrder, transaction: string): void {
  const { chain, started } = market
  const { name, payer, nonce, value, server, told } = order
  const known = chain.listMoves(payer, nonce)
  const isThere = known.some(
    (one) => one.hash === transaction && one.value === value && one.to === server.payTo,
  )
  if (!isThere || !chain.wasConfirmed(payer, nonce))
    market.wrong(`${name} was called settled by ${transaction}, and it is not there`)
  const isOld = order.isUsedBefore && !market.subjects.has('reversals')
  if (isOld) market.wrong(`${name} was used before, and was called settled`)
  told.push(transaction)
  // A restored database has no memory of what was told.
  const most = market.subjects.has('restores') ? 1 + started - (order.startedFirst ?? 0) : 1
  if (told.length > most) market.wrong(`${name} was called settled ${told.length} times`)
}

/** Says whether a refusal has its reason. */
function isDue(market: Market, { order, all, server, reason }: Refused): boolean {
  const { wasUsed, payer } = order
  const isLate = order.validBefore <= market.scheduler.now / 1000 + lateSeconds
  const callers = all.flatMap((one) => one.callers)
  const { settlementsPerDay, allSettlementsPerDay } = facilitatorSettings
  switch (reason) {
    case 'authorization_used':
    case 'authorization_canceled':
    case 'no_transfer':
      return wasUsed
    case 'expired':
      return isLate
    case 'simulation_failed':
      return wasUsed || isLate
    case 'failed_before':
      return all.filter((one) => isInVain(market, one, payer)).length >= failedPaymentsMax
    case 'caller_limit_reached':
      return callers.filter((one) => one === server.name).length > settlementsPerDay
    case 'facilitator_limit_reached':
      return callers.length > allSettlementsPerDay
    case 'transaction_reverted':
      return market.chain.countSent(payer, order.nonce) > 0
    default:
      return false
  }
}

/** Says that a payment of this payer was sent by the service, and was not made by that. */
function isInVain({ chain }: Market, { payer, nonce }: SettlementOrder, of: string): boolean {
  return payer === of && chain.countSent(payer, nonce) > 0 && chain.moved(payer, nonce)?.by !== 'us'
}

function isDeep({ chain }: Market, { payer, nonce }: SettlementOrder): boolean {
  return (chain.moved(payer, nonce)?.depth ?? 0) >= chain.confirmations
}
