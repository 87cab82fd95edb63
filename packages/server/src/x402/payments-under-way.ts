import type { World } from '../base/world.ts'
import { readBalance } from './authorization-use.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment } from './protocol.ts'
import type { Rpc } from './rpc.ts'

export type PaymentsUnderWayOptions = {
  readonly world: World
  /** Reads the payer's current balance on the chain, in atomic units. */
  readonly readBalance: (payer: string) => Promise<bigint>
  /** The interval at which the end of a payment under way is looked for. */
  readonly pollMs: number
  /** The time that a payment waits for its payer's others before it is told that they take long. */
  readonly waitMs: number
}

/** The part of a payment that counts; `nonce` is its own among all payments of its payer. */
export type Spending = Pick<ExactPayment, 'from' | 'to' | 'nonce' | 'value'>

/** Reads what the scheme may move of the payer's money, in atomic units, where that can be less than its balance. */
export type ReadAllowance = (payer: string) => Promise<bigint>

export type Entering = {
  readonly readAllowance?: ReadAllowance
  /** The most payments under way of the payer to this payee, beside one for each that was made; eight when not given. */
  readonly unprovenMax?: number | undefined
}

/** entered: may be sent; short: its payer has not enough; busy: not known yet. */
export type EnterOutcome = 'entered' | 'short' | 'busy'

/**
 * The most payments under way of a payer of whom none was made, and of those to one payee; each that was made, or was
 * made to that payee, lets one more be.
 */
const unprovenMaxDefault = 8
/** The most waiting payments of a payer that it has no money for beside its others. */
const uncoveredMax = 64
/** The most waiting payments of each payer, and of all together where a payer has more than `uncoveredMax` of them. */
const waitingMax = 2_000
const allWaitingMax = 20_000
/** The most payers whose settlements are remembered. */
const payersMax = 4096
/** The time for which a payment that was never heard of again holds up its payer's others. */
const heldMs = 10 * 60_000

type Enterable = { readonly payment: Spending; readonly entering: Entering }

type Waiting = Enterable & {
  readonly deadlineMs: number
  readonly resolve: (entry: EnterOutcome) => void
  readonly reject: (error: unknown) => void
}

type UnderWay = {
  readonly value: bigint
  readonly to: string
  readonly sinceMs: number
  readonly isByAllowance: boolean
}

/** The money that a payer has beside what is under way, and what the scheme may move of it where that was asked. */
type Room = { readonly balance: bigint; readonly allowance: bigint | undefined }

type Payer = {
  readonly underWay: Map<string, UnderWay>
  queue: Waiting[]
  /** As it was when the chain was last asked. */
  room: Room | undefined
  isServed: boolean
  leavings: number
  /** The payments that came to wait. */
  comings: number
}

/** Makes the register of the payments under way on a network, whose payers have what its token says. */
export function makePaymentsUnderWay({
  rpc,
  network,
  ...options
}: Omit<PaymentsUnderWayOptions, 'readBalance'> & {
  readonly rpc: Rpc
  readonly network: PaymentNetwork
}): PaymentsUnderWay {
  return new PaymentsUnderWay({
    ...options,
    readBalance: (payer) => readBalance(rpc, network, payer),
  })
}

/**
 * Keeps the payments under way within their payer's balance: each authorization alone may be good, but a token
 * executes them one after the other, and those that revert cost us the gas. A payer can also make all of them fail by one
 * transaction of its own, and a new wallet costs nothing, so a payer has few under way until some were made. A
 * payee learns nothing by what a wallet paid to itself, so the same is asked of those to each payee. Payments wait for
 * their turn, but few of them for money that their payer does not have. It serves all schemes of one network, in the
 * process that pays the gas: what one scheme has under way is missing to the others.
 */
export class PaymentsUnderWay {
  readonly #options: PaymentsUnderWayOptions
  readonly #payers = new Map<string, Payer>()
  /** The last time that a payment of the payer left, counted in leavings. */
  readonly #left = new Map<string, number>()
  /** The number of payments of a payer that were made, and of those to each payee. */
  readonly #made = new Map<string, number>()
  readonly #seen = new WeakMap<Spending, number>()
  #leavings = 0

  constructor(options: PaymentsUnderWayOptions) {
    this.#options = options
  }

  /** Notes that the payer's balance is about to be read for this payment. */
  look(payment: Spending): void {
    this.#seen.set(payment, this.#leavings)
  }

  /** Waits until the payer has enough for this payment beside those that are under way. */
  enter(payment: Spending, entering: Entering = {}): Promise<EnterOutcome> {
    const { world, waitMs } = this.#options
    const known = this.#payers.get(payment.from)
    if (known === undefined && this.#isFresh(payment)) {
      this.#hold(this.#getPayer(payment), { payment, entering })
      return Promise.resolve('entered')
    }
    const payer = this.#getPayer(payment)
    if (payer.underWay.has(payment.nonce)) return Promise.resolve('entered')
    if (this.#isFull(payer, { payment, entering })) return Promise.resolve('busy')
    return new Promise((resolve, reject) => {
      const deadlineMs = world.now() + waitMs
      payer.queue.push({ payment, entering, deadlineMs, resolve, reject })
      payer.comings += 1
      if (!payer.isServed) void this.#serve(payer)
    })
  }

  /** Records that the payment has come to its end, by which it is made or not, or will never be sent. */
  leave({ from, to, nonce }: Spending, outcome: 'made' | 'not made'): void {
    const payer = this.#payers.get(from)
    if (payer?.underWay.delete(nonce) !== true) return
    this.#leavings += 1
    payer.leavings += 1
    putNewest(this.#left, from, this.#leavings)
    if (outcome === 'made')
      for (const name of [from, `${from} ${to}`])
        putNewest(this.#made, name, (this.#made.get(name) ?? 0) + 1)
    this.#forget(from, payer)
  }

  /** Returns true where no more payments of this payer may wait. */
  #isFull(payer: Payer, next: Enterable): boolean {
    const { queue, room } = payer
    if (queue.length < uncoveredMax) return false
    if (queue.length >= waitingMax) return true
    let waiting = 0
    for (const one of this.#payers.values()) waiting += one.queue.length
    if (waiting >= allWaitingMax) return true
    return room !== undefined && countCovered([...queue, next], room) <= queue.length - uncoveredMax
  }

  /** Returns true if none of the payer's payments has ended since its balance was read. */
  #isFresh(payment: Spending): boolean {
    const seen = this.#seen.get(payment)
    return seen !== undefined && seen >= (this.#left.get(payment.from) ?? 0)
  }

  async #serve(payer: Payer): Promise<void> {
    payer.isServed = true
    for (let first = payer.queue[0]; first !== undefined; first = payer.queue[0]) {
      const { leavings, comings } = payer
      try {
        const unpaid = await this.#enterCovered(payer, first.payment.from)
        if (unpaid !== undefined) await this.#awaitChange(payer, { leavings, comings, unpaid })
      } catch (error) {
        for (const { reject } of payer.queue.splice(0)) reject(error)
      }
    }
    payer.isServed = false
  }

  /**
   * Enters, in their order, the payments that the payer has enough for, up to the first one that it has too little for; one
   * that has no turn with its payee alone is passed over. Returns the first one that still waits.
   */
  async #enterCovered(payer: Payer, address: string): Promise<Waiting | undefined> {
    const before = this.#sumUnderWay(payer)
    // Those that come while the chain is asked have their turn in the next round, which then waits for nothing.
    const asked = [...payer.queue]
    const byAllowance = asked.find(({ entering }) => entering.readAllowance !== undefined)
    const [balance, allowance] = await Promise.all([
      this.#options.readBalance(address),
      byAllowance?.entering.readAllowance?.(address),
    ])
    // A payment that ends meanwhile is counted twice, which errs on the safe side.
    let room: Room = {
      balance: balance - before.all,
      allowance: allowance === undefined ? undefined : allowance - before.byAllowance,
    }
    for (const next of asked) {
      if (countCovered([next], room) === 0 || !this.#hasPlace(payer, address)) break
      if (!this.#hasTurn(payer, next)) continue
      room = subtract(room, next)
      payer.queue.splice(payer.queue.indexOf(next), 1)
      this.#hold(payer, next)
      next.resolve('entered')
    }
    payer.room = room
    const late = payer.queue.splice(countCovered(payer.queue, room) + uncoveredMax)
    for (const { resolve } of late) resolve('busy')
    const unpaid = asked.find((one) => payer.queue[0] === one)
    if (before.all > 0n || payer.underWay.size > 0) return unpaid
    const short = asked.filter(
      (one) => payer.queue.includes(one) && countCovered([one], room) === 0,
    )
    payer.queue = payer.queue.filter((one) => !short.includes(one))
    for (const { resolve } of short) resolve('short')
    this.#forget(address, payer)
    return undefined
  }

  /** Returns true where the payer may have one more payment under way, by those that were made. */
  #hasPlace({ underWay }: Payer, from: string): boolean {
    return underWay.size < unprovenMaxDefault + (this.#made.get(from) ?? 0)
  }

  /** The same of those to one payee. */
  #hasTurn({ underWay }: Payer, { payment: { from, to }, entering }: Waiting): boolean {
    const { unprovenMax = unprovenMaxDefault } = entering
    let toPayee = 0
    for (const one of underWay.values()) if (one.to === to) toPayee += 1
    return toPayee < unprovenMax + (this.#made.get(`${from} ${to}`) ?? 0)
  }

  /**
   * Waits, while the unpaid one is the first in the queue, until another payment of the payer has left; or one more has
   * come, which the unpaid one does not hold up where its payee alone does.
   */
  async #awaitChange(
    payer: Payer,
    { leavings, comings, unpaid }: Pick<Payer, 'leavings' | 'comings'> & { unpaid: Waiting },
  ): Promise<void> {
    const { world, pollMs } = this.#options
    const isPassed = this.#hasPlace(payer, unpaid.payment.from) && !this.#hasTurn(payer, unpaid)
    while (payer.queue[0] === unpaid && payer.underWay.size > 0 && payer.leavings === leavings) {
      if (isPassed && payer.comings !== comings) return
      await world.sleep(pollMs)
      const late = payer.queue.filter(({ deadlineMs }) => deadlineMs <= world.now())
      payer.queue = payer.queue.filter((one) => !late.includes(one))
      for (const { resolve } of late) resolve('busy')
    }
  }

  #sumUnderWay(payer: Payer): { readonly all: bigint; readonly byAllowance: bigint } {
    const oldest = this.#options.world.now() - heldMs
    let [all, byAllowance] = [0n, 0n]
    for (const [nonce, { value, sinceMs, isByAllowance }] of payer.underWay) {
      if (sinceMs < oldest) {
        payer.underWay.delete(nonce)
        continue
      }
      all += value
      if (isByAllowance) byAllowance += value
    }
    return { all, byAllowance }
  }

  #getPayer({ from }: Spending): Payer {
    const known = this.#payers.get(from)
    if (known !== undefined) return known
    const payer: Payer = {
      ...{ underWay: new Map(), queue: [], room: undefined },
      ...{ isServed: false, leavings: 0, comings: 0 },
    }
    this.#payers.set(from, payer)
    return payer
  }

  #hold(payer: Payer, { payment: { nonce, to, value }, entering }: Enterable): void {
    const isByAllowance = entering.readAllowance !== undefined
    payer.underWay.set(nonce, { value, to, sinceMs: this.#options.world.now(), isByAllowance })
  }

  #forget(address: string, payer: Payer): void {
    if (payer.underWay.size === 0 && payer.queue.length === 0) this.#payers.delete(address)
  }
}

/** Counts the payments, from the first on, that the room is enough for. */
function countCovered(payments: readonly Enterable[], room: Room): number {
  let { balance, allowance } = room
  for (const [at, { payment, entering }] of payments.entries()) {
    balance -= payment.value
    if (balance < 0n) return at
    if (entering.readAllowance === undefined || allowance === undefined) continue
    allowance -= payment.value
    if (allowance < 0n) return at
  }
  return payments.length
}

function subtract({ balance, allowance }: Room, { payment, entering }: Enterable): Room {
  const isByAllowance = allowance !== undefined && entering.readAllowance !== undefined
  return {
    balance: balance - payment.value,
    allowance: isByAllowance ? allowance - payment.value : allowance,
  }
}

function putNewest(counts: Map<string, number>, payer: string, count: number): void {
  counts.delete(payer)
  counts.set(payer, count)
  const [oldest] = counts.keys()
  if (counts.size > payersMax && oldest !== undefined) counts.delete(oldest)
}
