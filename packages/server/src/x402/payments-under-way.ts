import type { World } from '../base/world.ts'
import type { ExactPayment } from './protocol.ts'

export type ReserveOptions = {
  readonly world: World
  /** Reads the payer's current balance on the chain, in atomic units. */
  readonly readBalance: (payer: string) => Promise<bigint>
  /** The interval at which the end of a payment under way is looked for. */
  readonly pollMs: number
  /** The time that a payment waits for its payer's others before it is told that they take long. */
  readonly waitMs: number
}

/** entered: may be sent; short: its payer has not enough; busy: not known yet. */
export type ReserveEntry = 'entered' | 'short' | 'busy'

/** The most waiting payments of each payer. */
const waitingMax = 64
/** The most payers whose last settlement is remembered. */
const payersMax = 4096
/** The time for which a payment that was never heard of again holds up its payer's others. */
const heldMs = 10 * 60_000

type Waiting = {
  readonly payment: ExactPayment
  readonly deadlineMs: number
  readonly resolve: (entry: ReserveEntry) => void
  readonly reject: (error: unknown) => void
}

type Payer = {
  readonly underWay: Map<string, { readonly value: bigint; readonly sinceMs: number }>
  queue: Waiting[]
  isServed: boolean
  leavings: number
}

/**
 * Keeps the payments under way within their payer's balance: each authorization alone may be good, but a token
 * executes them one after the other, and those that revert cost us the gas. It serves one network, in the process
 * that pays the gas.
 */
export class Reserve {
  readonly #options: ReserveOptions
  readonly #payers = new Map<string, Payer>()
  /** The last time that a payment of the payer left, counted in leavings. */
  readonly #left = new Map<string, number>()
  readonly #seen = new WeakMap<ExactPayment, number>()
  #leavings = 0

  constructor(options: ReserveOptions) {
    this.#options = options
  }

  /** Notes that the payer's balance is about to be read for this payment. */
  look(payment: ExactPayment): void {
    this.#seen.set(payment, this.#leavings)
  }

  /** Waits until the payer has enough for this payment beside those that are under way. */
  enter(payment: ExactPayment): Promise<ReserveEntry> {
    const { world, waitMs } = this.#options
    const known = this.#payers.get(payment.from)
    if (known === undefined && this.#isFresh(payment)) {
      this.#hold(this.#getPayer(payment), payment)
      return Promise.resolve('entered')
    }
    const payer = this.#getPayer(payment)
    if (payer.underWay.has(payment.nonce)) return Promise.resolve('entered')
    if (payer.queue.length >= waitingMax) return Promise.resolve('busy')
    return new Promise((resolve, reject) => {
      payer.queue.push({ payment, deadlineMs: world.now() + waitMs, resolve, reject })
      if (!payer.isServed) void this.#serve(payer)
    })
  }

  /** Records that the payment has come to its end, or will never be sent. */
  leave({ from, nonce }: ExactPayment): void {
    const payer = this.#payers.get(from)
    if (payer?.underWay.delete(nonce) !== true) return
    this.#leavings += 1
    payer.leavings += 1
    this.#left.delete(from)
    this.#left.set(from, this.#leavings)
    const [oldest] = this.#left.keys()
    if (this.#left.size > payersMax && oldest !== undefined) this.#left.delete(oldest)
    this.#forget(from, payer)
  }

  /** Returns true if none of the payer's payments has ended since its balance was read. */
  #isFresh(payment: ExactPayment): boolean {
    const seen = this.#seen.get(payment)
    return seen !== undefined && seen >= (this.#left.get(payment.from) ?? 0)
  }

  async #serve(payer: Payer): Promise<void> {
    payer.isServed = true
    for (let first = payer.queue[0]; first !== undefined; first = payer.queue[0]) {
      const { leavings } = payer
      try {
        await this.#admit(payer, first.payment.from)
      } catch (error) {
        for (const { reject } of payer.queue.splice(0)) reject(error)
      }
      await this.#awaitLeaving(payer, leavings)
    }
    payer.isServed = false
  }

  /** Admits, in their order, the payments that the payer has enough for. */
  async #admit(payer: Payer, address: string): Promise<void> {
    const before = this.#sumUnderWay(payer)
    // A payment that ends meanwhile is counted twice, which errs on the safe side.
    let room = (await this.#options.readBalance(address)) - before
    for (let next = payer.queue[0]; next !== undefined; next = payer.queue[0]) {
      if (next.payment.value > room) break
      room -= next.payment.value
      payer.queue.shift()
      this.#hold(payer, next.payment)
      next.resolve('entered')
    }
    if (before > 0n || payer.underWay.size > 0) return
    const short = payer.queue.filter(({ payment }) => payment.value > room)
    payer.queue = payer.queue.filter((one) => !short.includes(one))
    for (const { resolve } of short) resolve('short')
    this.#forget(address, payer)
  }

  async #awaitLeaving(payer: Payer, leavings: number): Promise<void> {
    const { world, pollMs } = this.#options
    while (payer.queue.length > 0 && payer.underWay.size > 0 && payer.leavings === leavings) {
      await world.sleep(pollMs)
      const late = payer.queue.filter(({ deadlineMs }) => deadlineMs <= world.now())
      payer.queue = payer.queue.filter((one) => !late.includes(one))
      for (const { resolve } of late) resolve('busy')
    }
  }

  #sumUnderWay(payer: Payer): bigint {
    const oldest = this.#options.world.now() - heldMs
    let sum = 0n
    for (const [nonce, { value, sinceMs }] of payer.underWay) {
      if (sinceMs < oldest) payer.underWay.delete(nonce)
      else sum += value
    }
    return sum
  }

  #getPayer({ from }: ExactPayment): Payer {
    const known = this.#payers.get(from)
    if (known !== undefined) return known
    const payer = { underWay: new Map(), queue: [], isServed: false, leavings: 0 }
    this.#payers.set(from, payer)
    return payer
  }

  #hold(payer: Payer, { nonce, value }: ExactPayment): void {
    payer.underWay.set(nonce, { value, sinceMs: this.#options.world.now() })
  }

  #forget(address: string, payer: Payer): void {
    if (payer.underWay.size === 0 && payer.queue.length === 0) this.#payers.delete(address)
  }
}
