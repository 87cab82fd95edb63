import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey, signRequest, signTransfer } from './buyer-keys.ts'
import { type Agent, finish, makeErrand } from './errands.ts'
import type { Market } from './market.ts'
import { base64 } from './order.ts'
import {
  makeFundingRequest,
  makeGrantRequest,
  makeKeyRequest,
  makeRevokeGrantRequest,
  makeRevokeRequest,
  makeRotateRequest,
} from './requests.ts'
import type { Answer, Asked } from './send-request.ts'
import { agency, ownNetwork } from './shop.ts'

/** The wallet that pays into the balance of the agency. */
export const treasurer = deriveAddress(deriveBuyerKey('treasurer'))

const triesMax = 12

/** The agency lets agents buy with keys, which are rotated and revoked while they do. */
export async function runAgents(market: Market, buyers: number, agents: Agent[]): Promise<void> {
  const { chance, scheduler } = market
  await fund(market)
  const count = chance.between('agents', 1, 3)
  const running = Array.from({ length: count }, async (_, at) => {
    await scheduler.sleep(chance.between('an agent comes', 0, 20_000))
    const agent = await hire(market, `a${at + 1}`, buyers)
    if (agent === undefined) return
    agents.push(agent)
    await Promise.all([work(market, agent), manage(market, agent)])
  })
  await Promise.all(running)
}

/** In the end each errand is brought to its end, by who has a good key. */
export async function finishErrands(market: Market, agents: readonly Agent[]): Promise<void> {
  for (const agent of agents)
    for (const errand of agent.errands) await finish(market, agent, errand)
}

/** Pays into the balance of the agency. */
async function fund(market: Market): Promise<void> {
  const { chance, scheduler } = market
  const asked = makeFundingRequest(BigInt(chance.between('funding', 3, 30)) * 1000n)
  const own = { 'x-app-key': market.keys.agencyKey }
  const first = await ask(market, asked, { who: 'treasurer', nextHeaders: () => own })
  if (first?.status !== 402) return
  const { accepts } = JSON.parse(
    Buffer.from(first.headers['payment-required'] ?? '', 'base64').toString(),
  )
  const entry = accepts.find(({ network }: { network: string }) => network === ownNetwork.id)
  const payload = signTransfer(ownNetwork, {
    key: deriveBuyerKey('treasurer'),
    value: BigInt(entry.amount),
    validBefore: Math.floor(scheduler.now / 1000) + 120,
    nonce: `0x${chance.bytes('treasurer nonce', 32).toString('hex')}`,
  })
  const payment = base64({ x402Version: 2, accepted: entry, payload })
  const nextHeaders = () => ({ ...own, 'payment-signature': payment })
  await ask(market, asked, { who: 'treasurer', nextHeaders })
}

/** Makes a key with limits: the agency's, or one by which a buyer's wallet pays. */
async function hire(market: Market, name: string, buyers: number): Promise<Agent | undefined> {
  const { chance } = market
  const limit = (what: string, least: number, most: number) =>
    BigInt(chance.between(`${name} ${what}`, least, most)) * 500n
  const limits = {
    perPayment: limit('per payment', 4, 40),
    daily: limit('a day', 10, 60),
    lifetime: limit('in all', 10, 100),
  }
  const { perPayment, daily, lifetime } = limits
  const open = { isChanging: false, revokedAt: undefined, errands: [] }
  if (chance.happens(`${name} is of a wallet`, 400)) {
    const wallet = deriveBuyerKey(`b${chance.between(`${name} wallet`, 1, buyers)}`)
    const body = { grantee: name, spend_limit: String(lifetime), max_per_tx: String(perPayment) }
    const asked = makeGrantRequest({ ...body, daily_limit: String(daily) })
    const made = await ask(market, asked, {
      who: name,
      nextHeaders: makeSigner(market, asked, wallet),
    })
    if (made?.status !== 201) return undefined
    const { id, user_key: key } = JSON.parse(made.text)
    const payer = deriveAddress(wallet)
    return { name, payer, header: 'x-user-key', ...limits, budget: id, id, key, ...open }
  }
  const pay_limits = {
    max_payment_per_tx: String(perPayment),
    daily_allowance: String(daily),
    spend_allowance: String(lifetime),
  }
  const asked = makeKeyRequest({ name, permissions: ['Pay'], pay_limits })
  const made = await ask(market, asked, {
    who: name,
    nextHeaders: () => ({ 'x-app-key': market.keys.agencyKey }),
  })
  if (made?.status !== 201) return undefined
  const { key, key_hash: id } = JSON.parse(made.text)
  const budget = `key:${id}`
  return {
    name,
    payer: `app:${agency}`,
    header: 'x-agent-key',
    ...limits,
    budget,
    id,
    key,
    ...open,
  }
}

/** Runs errands, some of them at once. */
async function work(market: Market, agent: Agent): Promise<void> {
  const { chance, scheduler } = market
  const count = chance.between(`${agent.name} errands`, 2, 6)
  const running: Promise<void>[] = []
  for (let n = 0; n < count; n++) {
    const errand = makeErrand(market, agent, n)
    agent.errands.push(errand)
    const tries = chance.happens(`${agent.name} sends twice`, 300) ? [0, 1] : [0]
    running.push(...tries.map(() => finish(market, agent, errand)))
    if (chance.happens(`${agent.name} waits`, 500)) await Promise.all(running)
    await scheduler.sleep(chance.between(`${agent.name} thinks`, 0, 8_000))
  }
  await Promise.all(running)
}

/** Rotates the key, or revokes it, while it is at work. */
async function manage(market: Market, agent: Agent): Promise<void> {
  const { chance, scheduler } = market
  const { name, header } = agent
  await scheduler.sleep(chance.between(`${name} is managed`, 3_000, 40_000))
  const own = () => ({ 'x-app-key': market.keys.agencyKey })
  if (header === 'x-agent-key' && chance.happens(`${name} is rotated`, 600)) {
    agent.isChanging = true
    const overlap = chance.happens(`${name} overlaps`, 500) ? 30 : 0
    const answer = await market.send(`${name} rotates`, makeRotateRequest(agent.id, overlap), {
      headers: own(),
    })
    if (answer?.status !== 200) return
    const { key, key_hash: id } = JSON.parse(answer.text)
    Object.assign(agent, { key, id })
    await scheduler.sleep(chance.between(`${name} is managed later`, 3_000, 40_000))
  }
  if (!chance.happens(`${name} is revoked`, 300)) return
  agent.isChanging = true
  const isKey = header === 'x-agent-key'
  const asked = isKey ? makeRevokeRequest(agent.id) : makeRevokeGrantRequest(agent.id)
  const answer = await ask(market, asked, { who: `${name} is revoked`, nextHeaders: own })
  if (answer?.status === 200) agent.revokedAt = market.step()
}

/** Asks until there is an answer that says something. */
async function ask(
  market: Market,
  asked: Asked,
  {
    who,
    nextHeaders,
  }: { readonly who: string; readonly nextHeaders: () => Record<string, string> },
): Promise<Answer | undefined> {
  for (let n = 0; n < triesMax; n++) {
    const answer = await market.send(who, asked, { headers: nextHeaders() })
    if (answer !== undefined && answer.status < 500) return answer
    await market.scheduler.sleep(market.chance.between(`${who} asks again`, 500, 5_000))
  }
  return undefined
}

/** Each signature counts once. */
function makeSigner(market: Market, asked: Asked, key: Buffer): () => Record<string, string> {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(market.scheduler.now / 1000))
    return signRequest(asked, key, last)
  }
}
