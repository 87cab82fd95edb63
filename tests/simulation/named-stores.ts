import type { Market } from './market.ts'
import { makePricingRequest, makeStoreRequest } from './requests.ts'
import type { Acknowledged } from './sellers.ts'
import type { Answer, Asked } from './send-request.ts'

/** A request of the seller that has a name (Idempotency-Key). */
export type Named = {
  readonly key: string
  readonly asked: Asked
  /** The marks of the records that it stores. */
  readonly marks: readonly string[]
  /** Another request under the same name. */
  readonly other: Asked
  readonly otherMark: string
  /** The first answer, and the market's step at which it was heard; every later one is the same. */
  told: { readonly status: number; readonly text: string; readonly at: number } | undefined
}

const triesMax = 15

/** Stores goods and changes prices under names, sends each request until it is answered, and some of them again. */
export async function sellByName(
  market: Market,
  named: Named[],
  isOver: () => boolean,
): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; !isOver(); n++) {
    await scheduler.sleep(chance.between('named seller waits', 500, 12_000))
    if (chance.happens('named seller sets prices', 250)) {
      await setPrice(market, n, isOver)
      continue
    }
    const one = makeNamed(market, n)
    named.push(one)
    const tries = chance.happens('named seller sends twice', 350) ? [0, 1] : [0]
    await Promise.all(tries.map(() => persist(market, one)))
    const earlier = chance.pick('named seller picks', named)
    if (chance.happens('named seller sends again', 300)) await persist(market, earlier)
    if (chance.happens('named seller errs', 200)) await misuse(market, earlier)
  }
}

/** In the end every named request is known to be done, once. */
export async function finishNamed(market: Market, named: readonly Named[]): Promise<void> {
  for (const one of named) {
    await persist(market, one)
    if (one.told === undefined) market.wrong(`${one.key} was never answered`)
  }
}

/** Lists the records that were stored, as the seller knows. */
export function listNamedMarks(named: readonly Named[]): Acknowledged[] {
  return named.flatMap(({ marks, told }) =>
    told === undefined ? [] : marks.map((mark) => ({ collection: 'goods', mark })),
  )
}

/** Checks that nothing was stored under a name that was taken. */
export function checkNamed(named: readonly Named[], stored: ReadonlySet<string>): string[] {
  return named.flatMap(({ key, otherMark }) =>
    stored.has(otherMark)
      ? [`${key} stored ${otherMark}, which another request has the name of`]
      : [],
  )
}

function makeNamed(market: Market, n: number): Named {
  const count = market.chance.between('named seller stores', 1, 3)
  const marks = Array.from({ length: count }, (_, at) => `named${n}/${at}`)
  const otherMark = `named${n}/other`
  return {
    key: `store-${n}`,
    asked: makeStoreRequest(
      'goods',
      marks.map((mark) => ({ mark })),
    ),
    marks,
    other: makeStoreRequest('goods', [{ mark: otherMark }]),
    otherMark,
    told: undefined,
  }
}

/** Sends the request until it is known to be done. */
async function persist(market: Market, one: Named): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    const sentAt = market.step()
    const answer = await send(market, one.key, one.asked)
    if (answer !== undefined && judge(market, one, { ...answer, sentAt })) return
    await scheduler.sleep(chance.between(`${one.key} pauses`, 500, 8_000))
  }
}

/** Checks an answer; true where it says that the request was carried out. */
function judge(
  market: Market,
  one: Named,
  { status, code, text, sentAt }: Answer & { readonly sentAt: number },
): boolean {
  if (status >= 500 || code === 'REQUEST_IN_PROGRESS') return false
  const { key, told } = one
  // Carried out, once; what it was answered nobody knows.
  const isLost = status === 410 && code === 'ANSWER_LOST'
  if (status >= 300 && !isLost) market.wrong(`${key} was answered ${status} ${code} ${text}`)
  // An answer that went out may not have been kept.
  const isSame = told === undefined || (told.status === status && told.text === text)
  // Two were sent at once: one may hear of the loss before the other hears the answer.
  const isHeardLate = told?.status === 410 && status < 300 && sentAt < told.at
  if (!isSame && !isHeardLate && !(isLost && told.status < 300))
    market.wrong(`${key} was answered ${status} ${text} and before ${told?.status} ${told?.text}`)
  one.told ??= { status, text, at: market.step() }
  return true
}

/** Sends something else under the name of a request that was carried out. */
async function misuse(market: Market, { key, other, told }: Named): Promise<void> {
  if (told === undefined) return
  const answer = await send(market, key, other)
  if (answer === undefined || answer.status >= 500 || answer.code === 'IDEMPOTENCY_KEY_USED') return
  market.wrong(`${key} is the name of another request, and the answer was ${answer.status}`)
}

/** Sets a price, and sends the same once more when another one is in force: it must not come back. */
async function setPrice(market: Market, n: number, isOver: () => boolean): Promise<void> {
  const { chance, scheduler } = market
  const key = `price-${n}`
  const price = market.newPrice()
  const asked = makePricingRequest(price)
  const isInForce = market.prices.change(price, () => market.step())
  for (let tries = 0; tries < triesMax && !isOver(); tries++) {
    const answer = await send(market, key, asked)
    if (answer !== undefined && (answer.status < 300 || answer.code === 'ANSWER_LOST')) {
      isInForce()
      scheduler.after(chance.between(`${key} comes late`, 5_000, 30_000), () => {
        void send(market, key, asked)
      })
      return
    }
    await scheduler.sleep(chance.between(`${key} pauses`, 500, 8_000))
  }
}

function send(market: Market, key: string, asked: Asked): Promise<Answer | undefined> {
  const headers = { 'x-app-key': market.keys.appKey, 'idempotency-key': key }
  return market.send(key, asked, { headers })
}
