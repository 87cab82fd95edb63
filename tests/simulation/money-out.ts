import { createHash } from 'node:crypto'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey, signRequest } from './buyer-keys.ts'
import type { Market } from './market.ts'
import {
  makeCancelRequest,
  makeEarningsRequest,
  makePayoutInfoRequest,
  makePayoutRequest,
  makePayoutSettingsRequest,
  makePlatformRequest,
  makeWalletRequest,
  makeWithdrawalRequest,
} from './requests.ts'
import type { Answer, Asked } from './send-request.ts'
import { operatorKey, owner } from './shop.ts'

/** Money that somebody asked to be sent out, as he knows of it. */
export type Taking = {
  readonly name: string
  readonly asked: Asked
  /** The headers of the next try; a signature counts once. */
  readonly nextHeaders: () => Record<string, string>
  /** Nothing else is sent to a withdrawal's recipient. */
  readonly recipient: string
  /** The amount that was asked for; undefined where it was all that there is. */
  readonly amount: bigint | undefined
  /** The first thing that the service said of it; it never says anything else. */
  told: { readonly id: string; readonly amount: bigint } | undefined
  isCancelled: boolean
}

/** All money that was asked to be sent out. */
export type Takings = { readonly list: Taking[]; isAutomatic: boolean }

const triesMax = 15
/** The least that is sent out. */
const settingTries = 20
const least = 100n
const asOperator = { 'x-app-key': operatorKey }

/** Takes money out of a buyer's balance now and then. */
export async function withdrawAs(buyer: number, market: Market, takings: Takings): Promise<void> {
  const { chance, scheduler } = market
  const who = `b${buyer}`
  const count = chance.between(`${who} withdraws`, 1, 3)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(chance.between(`${who} waits to withdraw`, 2_000, 30_000))
    const available = await readAvailable(market, who)
    const isAll = available >= least && chance.happens(`${who} withdraws all`, 500)
    const amount = isAll ? available : BigInt(chance.between(`${who} withdraws of it`, 100, 4_000))
    const taking = makeWithdrawal(market, { who, n: String(n), amount })
    takings.list.push(taking)
    const tries = chance.happens(`${who} withdraws twice at once`, 300) ? [0, 1] : [0]
    await Promise.all(tries.map(() => persist(market, taking)))
  }
}

/** Takes all out of a balance that it has at this moment. */
export async function withdrawAll(
  market: Market,
  takings: Takings,
  { who, n }: { readonly who: string; readonly n: string },
): Promise<void> {
  const amount = await readAvailable(market, who)
  if (amount < least) return
  const taking = makeWithdrawal(market, { who, n, amount })
  takings.list.push(taking)
  await persist(market, taking)
}

/** Takes money out of the operator's balance now and then: its share of what was sold. */
export async function withdrawAsOperator(
  market: Market,
  takings: Takings,
  isOver: () => boolean,
): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; !isOver(); n++) {
    await scheduler.sleep(chance.between('operator waits to withdraw', 5_000, 40_000))
    const available = await readEarnings(market)
    const isAll = available >= least && chance.happens('operator withdraws all', 500)
    const amount = isAll ? available : BigInt(chance.between('operator withdraws', 100, 2_000))
    const taking = makeEarningsTaking(String(n), amount)
    takings.list.push(taking)
    const tries = chance.happens('operator asks twice at once', 300) ? [0, 1] : [0]
    await Promise.all(tries.map(() => persist(market, taking)))
  }
}

/** The seller pays out what was earned, or lets it be paid out, and thinks better of it. */
export async function payOut(
  market: Market,
  takings: Takings,
  isOver: () => boolean,
): Promise<void> {
  const { chance, scheduler } = market
  if (chance.happens('payouts are automatic', 300)) {
    takings.isAutomatic = true
    const settings = { auto_payout_enabled: true, payout_threshold: '2000' }
    await market.send('seller', makePayoutSettingsRequest(settings), appKey(market))
  }
  for (let n = 0; !isOver(); n++) {
    await scheduler.sleep(chance.between('seller waits for a payout', 3_000, 30_000))
    const amount = chance.happens('seller pays out all', 400)
      ? undefined
      : BigInt(chance.between('seller pays out', 100, 4_000))
    const taking = makePayout(market, String(n), amount)
    takings.list.push(taking)
    const tries = chance.happens('seller asks twice at once', 300) ? [0, 1] : [0]
    const asking = Promise.all(tries.map(() => persist(market, taking)))
    await Promise.race([asking, scheduler.sleep(chance.between('seller is patient', 100, 9_000))])
    if (chance.happens('seller thinks better of it', 500)) await cancel(market, taking)
    await asking
  }
}

/** Ends automatic payouts: one that the token does not take would begin anew each time that it is given back. */
export async function endAutomatic(market: Market, takings: Takings): Promise<void> {
  const settings = { auto_payout_enabled: false }
  for (let n = 0; takings.isAutomatic && n < settingTries; n++) {
    const answer = await market.send('seller', makePayoutSettingsRequest(settings), appKey(market))
    if (answer?.status === 200) return
    await market.scheduler.sleep(1_000)
  }
}

/** In the end everybody can have all that is his: nothing is left where something could be sent out. */
export async function takeAll(market: Market, takings: Takings, buyers: number): Promise<void> {
  for (const taking of takings.list) await persist(market, taking)
  const all = Array.from({ length: buyers }, (_, at) => takeAllOf(market, takings, `b${at + 1}`))
  await Promise.all([...all, payOutAll(market, takings), withdrawEarnings(market, takings)])
}

async function takeAllOf(market: Market, takings: Takings, who: string): Promise<void> {
  const amount = await readAvailable(market, who)
  if (amount >= least) {
    const taking = makeWithdrawal(market, { who, n: 'last', amount })
    takings.list.push(taking)
    await persist(market, taking)
    if (taking.told === undefined) market.wrong(`${taking.name}: ${amount} was not let out`)
  }
  const rest = await readAvailable(market, who)
  if (rest >= least) market.wrong(`${who} withdrew ${amount}, and ${rest} is left`)
}

async function payOutAll(market: Market, takings: Takings): Promise<void> {
  const available = await readPayable(market)
  if (available < least) return
  const taking = makePayout(market, 'last', undefined)
  takings.list.push(taking)
  await persist(market, taking)
  const rest = await readPayable(market)
  if (!takings.isAutomatic && taking.told === undefined)
    market.wrong(`${available} was not paid out in the end`)
  if (rest >= least) market.wrong(`${available} was paid out, and ${rest} is left`)
}

async function withdrawEarnings(market: Market, takings: Takings): Promise<void> {
  const available = await readEarnings(market)
  if (available < least) return
  const taking = makeEarningsTaking('last', available)
  takings.list.push(taking)
  await persist(market, taking)
  const rest = await readEarnings(market)
  if (taking.told === undefined || rest >= least)
    market.wrong(`the operator withdrew ${available}, and ${rest} is left`)
}

function makeWithdrawal(
  market: Market,
  { who, n, amount }: { readonly who: string; readonly n: string; readonly amount: bigint },
): Taking {
  const name = `${who} withdrawal ${n}`
  const key = deriveBuyerKey(who)
  const recipient = deriveRecipient(name)
  const body = { amount: String(amount), destination: recipient, idempotency_key: name }
  const asked = makeWithdrawalRequest(deriveAddress(key), body)
  let last = 0
  const nextHeaders = () => {
    last = Math.max(last + 1, Math.floor(market.scheduler.now / 1000))
    return signRequest(asked, key, last)
  }
  const open = { told: undefined, isCancelled: false }
  return { name, asked, nextHeaders, recipient, amount, ...open }
}

function makeEarningsTaking(n: string, amount: bigint): Taking {
  const name = `operator withdrawal ${n}`
  const recipient = deriveRecipient(name)
  const body = { amount: String(amount), destination: recipient, idempotency_key: name }
  const nextHeaders = () => asOperator
  const open = { told: undefined, isCancelled: false }
  return { name, asked: makeEarningsRequest(body), nextHeaders, recipient, amount, ...open }
}

/** Derives an address that gets nothing but one withdrawal. */
function deriveRecipient(name: string): string {
  return `0x${createHash('sha256').update(name).digest('hex').slice(0, 40)}`
}

function makePayout(market: Market, n: string, amount: bigint | undefined): Taking {
  const name = `payout ${n}`
  const body = { ...(amount !== undefined && { amount: String(amount) }), idempotency_key: name }
  const asked = makePayoutRequest(body)
  const { headers } = appKey(market)
  const open = { told: undefined, isCancelled: false }
  return { name, asked, nextHeaders: () => headers, recipient: owner, amount, ...open }
}

/** Asks until an answer says what becomes of it. */
async function persist(market: Market, taking: Taking): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    const headers = taking.nextHeaders()
    const answer = await market.send(taking.name, taking.asked, { headers })
    if (answer !== undefined && judge(market, taking, answer)) return
    await scheduler.sleep(chance.between(`${taking.name} pauses`, 500, 8_000))
  }
}

/** Checks an answer; true where it is final. */
function judge(market: Market, taking: Taking, { status, text, code }: Answer): boolean {
  const { name, recipient, amount } = taking
  if (status >= 500) return false
  if (status === 202) {
    const said = JSON.parse(text)
    const told = { id: said.payout_id ?? said.withdrawal_id, amount: BigInt(said.amount) }
    const isAsOrdered = said.destination === recipient && told.amount === (amount ?? told.amount)
    if (!isAsOrdered) market.wrong(`${name} was asked for otherwise than ${text}`)
    if (
      taking.told !== undefined &&
      (taking.told.id !== told.id || taking.told.amount !== told.amount)
    )
      market.wrong(`${name} is ${taking.told.id} of ${taking.told.amount}, and then ${text}`)
    taking.told ??= told
    return true
  }
  // There was no more to take; asked once more, there may be.
  const isShort = code === 'BALANCE_TOO_LOW' || code === 'PAYOUT_NOT_POSSIBLE'
  if (!isShort) market.wrong(`${name} was answered ${status} ${code} ${text}`)
  if (taking.told !== undefined) market.wrong(`${name} is ${taking.told.id}, and then ${text}`)
  return true
}

async function cancel(market: Market, taking: Taking): Promise<void> {
  const { told, name } = taking
  if (told === undefined) return
  const asked = makeCancelRequest(told.id)
  const answer = await market.send(`${name} cancels`, asked, appKey(market))
  if (answer === undefined || answer.status >= 500) return
  if (answer.status === 200) taking.isCancelled = true
  else if (answer.code !== 'CONFLICT')
    market.wrong(`${name} was cancelled, and the answer was ${answer.status} ${answer.text}`)
}

async function readAvailable(market: Market, who: string): Promise<bigint> {
  const asked = makeWalletRequest(deriveAddress(deriveBuyerKey(who)))
  return readAmount(market, { who, asked, member: 'available', headers: {} })
}

function readEarnings(market: Market): Promise<bigint> {
  const asked = makePlatformRequest()
  return readAmount(market, { who: 'operator', asked, member: 'available', headers: asOperator })
}

function readPayable(market: Market): Promise<bigint> {
  const asked = makePayoutInfoRequest()
  return readAmount(market, {
    who: 'seller',
    asked,
    member: 'available_balance',
    ...appKey(market),
  })
}

async function readAmount(
  market: Market,
  by: {
    readonly who: string
    readonly asked: Asked
    readonly member: string
    readonly headers: Readonly<Record<string, string>>
  },
): Promise<bigint> {
  const { who, asked, member, headers } = by
  for (let n = 0; n < triesMax; n++) {
    const answer = await market.send(`${who} looks`, asked, { headers })
    if (answer?.status === 200) return BigInt(JSON.parse(answer.text)[member])
    await market.scheduler.sleep(1_000)
  }
  return 0n
}

function appKey({ keys }: Market): { readonly headers: Record<string, string> } {
  return { headers: { 'x-app-key': keys.appKey } }
}
