import { setTimeout as wait } from 'node:timers/promises'
import type { Place } from '../faults/place.ts'
import { type Asked, ask, type Buyer, list } from '../support/buyer.ts'
import type { Market } from '../support/market.ts'
import type { TestReply } from '../support/service.ts'
import type { Random } from './random.ts'
import type { Purchase, Tally } from './tally.ts'

export type Shared = {
  readonly place: Place
  readonly tally: Tally
  readonly markets: readonly [Market, ...Market[]]
  readonly isOver: () => boolean
}

export const rowPrice = 1000n
export const recordPrice = 700n
const pauseMs = 30
/**
 * With more payments without an answer than this, they are sent again before anything else: each is good for 5
 * minutes.
 */
const openPurchasesMax = 3
const indexedFields = 8

/** One client that makes mixed requests until the run is over; each of its decisions follows from its stream. */
export class Worker {
  readonly #shared: Shared
  readonly #random: Random
  readonly #name: string
  readonly #buyer: Buyer
  readonly #open: Purchase[] = []
  readonly #answered: Purchase[] = []
  #step = 0

  constructor(shared: Shared, own: { name: string; random: Random; buyer: Buyer }) {
    this.#shared = shared
    this.#random = own.random
    this.#name = own.name
    this.#buyer = own.buyer
  }

  async run(): Promise<void> {
    while (!this.#shared.isOver()) {
      this.#step += 1
      const isCalm = await this.#act().catch((error: unknown) => {
        this.#shared.tally.wrong(`a client failed: ${String(error)}`)
        return false
      })
      if (!isCalm) await wait(pauseMs)
    }
  }

  /** Sends every payment again that got no answer, until it has one. */
  async finish(): Promise<void> {
    for (let tries = 0; this.#open.length > 0; tries++) {
      if (tries > 2_000) {
        this.#shared.tally.wrong(`${this.#open.length} payments stay without an answer`)
        return
      }
      if (!(await this.#payAgain(this.#open[0]))) await wait(pauseMs)
    }
  }

  /** Sends one request of some kind; false where the service could not serve it. */
  #act(): Promise<boolean> {
    const random = this.#random
    const kind = random.integer(100)
    const market = random.pick(this.#shared.markets)
    if (this.#open.length > openPurchasesMax || (this.#open.length > 0 && random.chance(30)))
      return this.#payAgain(this.#open[0])
    if (kind < 35) return this.#store(market, { wait: false, count: 1 + random.integer(5) })
    if (kind < 48) return this.#store(market, { wait: true, count: 1 + random.integer(3) })
    if (kind < 51) return this.#store(market, { wait: false, count: 100 })
    if (kind < 60) return this.#list(market)
    if (kind < 78) return this.#buyRows(market)
    if (kind < 90) return this.#buyWrite(market)
    if (kind < 98) return this.#payAgain(this.#answered.at(-1 - random.integer(5)))
    return this.#index(market)
  }

  async #store(market: Market, how: { wait: boolean; count: number }): Promise<boolean> {
    const { tally } = this.#shared
    const data = Array.from({ length: how.count }, (_, at) => ({
      id: `${this.#name}-${this.#step}-${at}`,
      n: this.#random.integer(1_000_000),
      [`field${this.#random.integer(indexedFields)}`]: this.#random.integer(100),
    }))
    const ids = data.map(({ id }) => id)
    tally.counts.stores += 1
    tally.noteSent(market.appId, ids)
    const reply = await this.#send({
      method: 'POST',
      path: how.wait ? '/store?wait=true' : '/store',
      raw: JSON.stringify({ root: `${market.appId}::open`, data }),
      headers: market.headers,
    })
    if (tally.good('a store', reply) === undefined) return false
    tally.noteAcknowledged(market.appId, data)
    return true
  }

  async #list(market: Market): Promise<boolean> {
    const { tally } = this.#shared
    const asked = list({ root: `${market.appId}::open`, find: { n: { gt: 500_000 } }, limit: 20 })
    const reply = await this.#send({ ...asked, headers: market.headers })
    tally.counts.lists += 1
    return tally.good('a list', reply) !== undefined
  }

  async #index(market: Market): Promise<boolean> {
    const field = `field${this.#random.integer(indexedFields)}`
    const { tally } = this.#shared
    const reply = await this.#send({
      method: 'POST',
      path: `/api/apps/${market.appId}/indexes`,
      raw: JSON.stringify({
        collection: 'open',
        name: field,
        field_name: field,
        index_type: 'btree',
      }),
      headers: market.headers,
    })
    tally.counts.indexes += 1
    return tally.good('an index', reply) !== undefined
  }

  #buyRows(market: Market): Promise<boolean> {
    const limit = 1 + this.#random.integer(5)
    const asked = list({ root: market.root, limit })
    return this.#buy(market, { asked, marker: undefined, amount: rowPrice * BigInt(limit) })
  }

  /** The records have no keys, so that a second write would be seen as further records. */
  #buyWrite(market: Market): Promise<boolean> {
    const marker = `${this.#name}-${this.#step}`
    const data = [
      { marker, part: 1 },
      { marker, part: 2 },
    ]
    const asked: Asked = {
      method: 'POST',
      path: this.#random.chance(50) ? '/store?wait=true' : '/store',
      raw: JSON.stringify({ root: `${market.appId}::orders`, data }),
      headers: market.headers,
    }
    return this.#buy(market, { asked, marker, amount: recordPrice * 2n })
  }

  async #buy(
    market: Market,
    what: Pick<Purchase, 'asked' | 'marker' | 'amount'>,
  ): Promise<boolean> {
    const { tally } = this.#shared
    const isV1 = this.#random.chance(30)
    const leavesEarly = this.#random.chance(10)
    const required = await this.#send(what.asked)
    if (required?.status !== 402) return tally.good('a quote', required) !== undefined
    const header = isV1 ? await this.#buyer.payV1(required) : await this.#buyer.payV2(required)
    const purchase: Purchase = {
      ...what,
      app: market.appId,
      buyer: this.#buyer.address,
      header,
      madeAtMs: Date.now(),
      answer: undefined,
    }
    tally.purchases.push(purchase)
    this.#open.push(purchase)
    if (leavesEarly) return this.#leave(purchase)
    return this.#payAgain(purchase)
  }

  /** Sends the payment, for the first time or again. */
  async #payAgain(purchase: Purchase | undefined): Promise<boolean> {
    if (purchase === undefined) return true
    const { tally } = this.#shared
    if (purchase.answer !== undefined) tally.counts.repeated += 1
    const reply = await this.#send(purchase.asked, purchase.header)
    if (reply?.status === 402 && reply.text.includes('its money is on the balance of')) {
      tally.notePassedOn(purchase)
      this.#close(purchase)
      return false
    }
    const good = tally.good('a payment', reply)
    if (good === undefined) {
      // A request that is refused for good is repeated no more; the balances tell whether that was right.
      if (reply !== undefined && reply.status !== 503) this.#close(purchase)
      return false
    }
    tally.answered(purchase, good.text)
    this.#close(purchase)
    return true
  }

  #close(purchase: Purchase): void {
    const at = this.#open.indexOf(purchase)
    if (at < 0) return
    this.#open.splice(at, 1)
    this.#answered.push(purchase)
    if (this.#answered.length > 50) this.#answered.shift()
  }

  /** A client that goes away while its payment is on its way. */
  async #leave({ asked, header }: Purchase): Promise<boolean> {
    const { place, tally } = this.#shared
    tally.counts.hungUp += 1
    const { method, path, raw = '' } = asked
    const signal = AbortSignal.timeout(1 + this.#random.integer(40))
    const headers = { 'content-type': 'application/json', ...asked.headers, ...header }
    await fetch(place.url() + path, { method, headers, body: raw, signal }).catch(() => undefined)
    return true
  }

  #send(asked: Asked, header = {}): Promise<TestReply | undefined> {
    return ask(this.#shared.place.service, asked, header).catch((error: unknown) => {
      // A reply that breaks the contract is found by what sends the requests.
      if (String(error).includes('contract')) this.#shared.tally.wrong(String(error))
      return undefined
    })
  }
}
