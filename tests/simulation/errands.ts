import type { Market } from './market.ts'
import type { Bought } from './order.ts'
import { makeListRequest, makeStoreRequest } from './requests.ts'
import type { Answer } from './send-request.ts'
import { ownNetwork } from './shop.ts'

/** Something that an agent buys by a key, under a name of its own. */
export type Errand = Bought & {
  /** The Idempotency-Key. */
  readonly named: string
  /** The market's step, and the time in milliseconds since 1970, before it was asked for. */
  readonly step: number
  readonly beganMs: number
  /** The time of the last try. */
  triedMs: number
  delivered: Bought['delivered']
}

/** A key that pays, within limits, with its successors. */
export type Agent = {
  readonly name: string
  /** The name of the account that pays: an application's, or a wallet's address. */
  readonly payer: string
  readonly header: 'x-agent-key' | 'x-user-key'
  readonly perPayment: bigint
  readonly daily: bigint
  readonly lifetime: bigint
  /** The name of what is spent, in the ledger: that of its first key, or of the authorization. */
  readonly budget: string
  /** The key to use from now on. */
  key: string
  /** The hash of an application's key, or the id of an authorization. */
  id: string
  /** Somebody asked that an earlier key or this one be good no more. */
  isChanging: boolean
  /** The market's step from which on it is known to be good no more. */
  revokedAt: number | undefined
  readonly errands: Errand[]
}

const triesMax = 12

export function makeErrand(market: Market, agent: Agent, n: number): Errand {
  const { chance, scheduler } = market
  const name = `${agent.name}.${n}`
  const kind = chance.pick(`${agent.name} kind`, ['read', 'read', 'write'] as const)
  const rows = chance.between(`${agent.name} rows`, 1, kind === 'write' ? 3 : 9)
  const marks = Array.from({ length: rows }, (_, at) => ({ mark: `${name}/${at}` }))
  const asked = kind === 'write' ? makeStoreRequest('notes', marks) : makeListRequest(rows)
  const now = { step: market.step(), beganMs: scheduler.now, triedMs: scheduler.now }
  const { payer } = agent
  const kindOf = {
    isJoin: false,
    isNews: false,
    shelf: undefined,
    libraryItem: undefined,
    isDirect: false,
  }
  const unpaid = { network: ownNetwork, payer, nonce: '', quoteId: undefined, ...kindOf }
  return {
    name,
    kind,
    asked,
    rows,
    named: `errand-${name}`,
    ...unpaid,
    ...now,
    delivered: undefined,
  }
}

/** Sends the request until an answer settles it. */
export async function finish(market: Market, agent: Agent, errand: Errand): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    if (await attempt(market, agent, errand)) return
    await scheduler.sleep(chance.between(`${errand.name} pauses`, 500, 8_000))
  }
}

/** Sends one request; true where nothing is open any more. */
async function attempt(market: Market, agent: Agent, errand: Errand): Promise<boolean> {
  const { header, key, isChanging } = agent
  const { name, asked, kind, named } = errand
  const step = market.step()
  const isRevoked = agent.revokedAt !== undefined && agent.revokedAt < step
  errand.triedMs = market.scheduler.now
  const answer = await market.send(name, asked, {
    headers: {
      [header]: key,
      'idempotency-key': named,
      ...(kind === 'write' && { 'x-app-key': market.keys.appKey }),
    },
  })
  errand.triedMs = market.scheduler.now
  if (answer === undefined || answer.status >= 500) return false
  if (answer.status < 300) {
    if (isRevoked) market.wrong(`${name} was bought by a key that was revoked`)
    noteDelivery(market, errand, answer)
    return true
  }
  if (answer.status === 401) {
    if (!isChanging && !agent.isChanging) market.wrong(`${name}: a good key was not known`)
    // It may have been rotated meanwhile.
    return agent.revokedAt !== undefined || agent.key === key
  }
  if (answer.code === 'REQUEST_IN_PROGRESS') return false
  if (answer.status !== 402 && answer.code !== 'SPENDING_LIMIT')
    market.wrong(`${name} was answered ${answer.status} ${answer.code} ${answer.text}`)
  if (errand.delivered !== undefined)
    market.wrong(`${name} was delivered, and then ${answer.status} ${answer.text}`)
  return true
}

/** Checks that the answer is the same every time. */
function noteDelivery(market: Market, errand: Errand, { text, headers }: Answer): void {
  const { name } = errand
  const paymentId = String(headers['x-payment-id'])
  errand.delivered ??= { text, paymentId, isFromBalance: true }
  if (errand.delivered.text !== text)
    market.wrong(`${name} was answered ${text} and before ${errand.delivered.text}`)
  if (errand.delivered.paymentId !== paymentId)
    market.wrong(`${name} has two payments: ${paymentId} and ${errand.delivered.paymentId}`)
}
