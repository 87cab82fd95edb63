import { assert, requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import type { Size } from '../../../model/compute-cost.ts'
import { isMetered } from '../../../model/compute-metered-cost.ts'
import { tryEvent } from '../claims/claim-steps.ts'
import {
  type Claim,
  getBuyerAccount,
  getPayerAccount,
  insertClaims,
} from '../claims/claim-store.ts'
import { decideStep } from '../claims/payment-states.ts'
import { keepReplies, type ReplyToKeep } from '../claims/reply-store.ts'
import { computeMeteredCap } from '../meters/meter.ts'
import { putUse } from '../meters/use-store.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Paid, Terms } from '../purchase.ts'
import { AccountBook } from './account-book.ts'
import { lockAccounts } from './account-lock.ts'
import { listGone } from './holds.ts'

/** A claim whose cap is to be held on its payer's account. */
export type HoldOrder = {
  /** As it is to be. */
  readonly claim: Claim
  /** As it is, where it was made before. */
  readonly found: Claim | undefined
  readonly terms: Terms
  /** The answer that is kept with it, where that was made first. */
  readonly answer: ReplyToKeep | undefined
  readonly paid: Pick<Paid, 'offer' | 'spending' | 'channel'>
  /** The largest sizes of what is metered. */
  readonly most?: readonly (Size | null)[]
}

/** The claim as it is held, or why it is not: the account has too little, or somebody else was first. */
export type HoldOutcome = Claim | 'short' | 'overtaken'

type Decision = HoldOutcome | Fault | 'locked'

/** Payers that are remembered to have been refused. */
const refusedMax = 10_000

/**
 * Holds what purchases may cost, in one transaction for all that wait: it locks their accounts, reads what these have,
 * decides each purchase in the order in which it came, and writes all claims and holds by one statement. So an account
 * of many buyers costs as much as one of a single buyer. An account that another process, or a withdrawal, has locked
 * keeps nobody else waiting: its purchases wait for it in a batch of their own.
 */
export class HoldDesk {
  readonly #ports: PaymentPorts
  readonly #free: Gatherer<HoldOrder, Decision>
  readonly #busy = new Map<
    string,
    { readonly batches: Gatherer<HoldOrder, Decision>; users: number }
  >()

  /** The least that was refused, by who pays. */
  readonly #refused = new Map<string, bigint>()

  constructor(ports: PaymentPorts) {
    this.#ports = ports
    this.#free = new Gatherer((orders) => this.#decideAll(orders, { waits: false }), weigh)
  }

  /**
   * Returns true where so much was refused to who pays, and was not held since. Such purchases are held before they are
   * answered, or who may not spend so much would make us answer for nothing, whatever it buys for less meanwhile.
   */
  wasRefused(order: Pick<HoldOrder, 'claim' | 'paid'>): boolean {
    const least = this.#refused.get(namePayer(order))
    return least !== undefined && order.claim.cap >= least
  }

  /** Throws where limits of the key that pays do not allow it. */
  async hold(order: HoldOrder): Promise<HoldOutcome> {
    // A metered purchase is read after those before it, so it keeps none of other accounts waiting.
    const first = isMetered(order.terms.prices) ? 'locked' : await this.#free.add(order)
    const decision = first === 'locked' ? await this.#holdBusy(measure(order)) : first
    this.#noteRefusal(order, decision)
    if (decision instanceof Fault) throw decision
    assert(decision !== 'locked', 'who waits for a lock gets it')
    return decision
  }

  #noteRefusal(order: HoldOrder, decision: Decision): void {
    const name = namePayer(order)
    const { cap } = order.claim
    const least = this.#refused.get(name)
    if (isHeldClaim(decision)) {
      if (least !== undefined && cap >= least) this.#refused.delete(name)
    } else if (decision === 'short' || decision instanceof Fault) {
      this.#refused.delete(name)
      this.#refused.set(name, least !== undefined && least < cap ? least : cap)
      const [oldest] = this.#refused.keys()
      if (this.#refused.size > refusedMax && oldest !== undefined) this.#refused.delete(oldest)
    }
  }

  async #holdBusy(order: HoldOrder): Promise<Decision> {
    const account = getPayerAccount(order.claim)
    const queue = this.#busy.get(account) ?? {
      batches: new Gatherer((orders) => this.#decideAll(orders, { waits: true }), weigh),
      users: 0,
    }
    this.#busy.set(account, queue)
    queue.users += 1
    try {
      return await queue.batches.add(order)
    } finally {
      queue.users -= 1
      if (queue.users === 0) this.#busy.delete(account)
    }
  }

  #decideAll(orders: readonly HoldOrder[], lock: { readonly waits: boolean }): Promise<Decision[]> {
    return this.#ports.database.transaction(async (tx) => {
      const accounts = orders.flatMap(listAccounts)
      const booked = orders.flatMap(({ found }) => (found?.state === 'deposited' ? found.id : []))
      // The books are read once the accounts are locked: statements run in the order in which they are sent.
      const [locked, books, gone] = await Promise.all([
        lockAccounts(tx, accounts, lock),
        AccountBook.read(tx, this.#ports, orders),
        booked.length === 0 ? new Set<string>() : listGone(tx, booked),
      ])
      const decided: Decided[] = []
      for (const order of orders) {
        const book = books.get(getPayerAccount(order.claim))
        if (!locked.has(getPayerAccount(order.claim)) || book === undefined)
          decided.push({ order, decision: 'locked' })
        else if (gone.has(order.claim.id)) decided.push({ order, decision: 'short' })
        else if (isMetered(order.terms.prices))
          decided.push({ order, decision: await this.#meter(tx, book, order), isBound: true })
        else decided.push({ order, decision: book.take(this.#ports, order, order.claim.cap) })
      }
      return bind(tx, decided)
    })
  }

  /** The cap is less what the payer has of quotas and passes, of which those before it in this batch took their part. */
  async #meter(tx: Queryable, book: AccountBook, order: HoldOrder): Promise<Decision> {
    const { claim, terms } = order
    const account = getBuyerAccount(claim)
    const metered = { id: claim.id, account, terms, nowMs: this.#ports.world.now() }
    const most = requirePresent(order.most, 'the largest sizes of what is metered')
    const { cap, ...reserved } = await computeMeteredCap(tx, metered, most)
    const decision = book.take(this.#ports, { ...order, claim: { ...claim, cap } }, cap)
    const [bound = decision] = await bind(tx, [{ order, decision }])
    if (isHeldClaim(bound)) await putUse(tx, { id: claim.id, account, ...reserved })
    return bound
  }
}

/** Lists the accounts that a purchase depends on: a channel pays, and what its payer had before may take something off. */
function listAccounts({ claim, terms }: HoldOrder): string[] {
  const payer = getPayerAccount(claim)
  return isMetered(terms.prices) ? [payer, getBuyerAccount(claim)] : [payer]
}

/** Measures a metered purchase before it waits with others: what is wrong with it takes none of them with it. */
function measure(order: HoldOrder): HoldOrder {
  const { terms, paid } = order
  if (!isMetered(terms.prices)) return order
  const offer = requirePresent(paid.offer, 'the offer of what is metered')
  return { ...order, most: offer.mostUnder(terms.prices) }
}

/** Names who pays: a key has limits of its own. */
function namePayer({ claim, paid }: Pick<HoldOrder, 'claim' | 'paid'>): string {
  return paid.spending?.paying.budget ?? getPayerAccount(claim)
}

function weigh({ answer }: HoldOrder): number {
  return answer?.body.length ?? 0
}

/** An order with what was decided on it; `isBound` where that is written. */
type Decided = {
  readonly order: HoldOrder
  readonly decision: Decision
  readonly isBound?: true
}

/** Writes the claims that were decided to be held; of those, others were first with some. */
async function bind(tx: Queryable, decided: readonly Decided[]): Promise<Decision[]> {
  const held = decided.flatMap(({ order: { found, answer }, decision, isBound }) =>
    isHeldClaim(decision) && isBound !== true ? [{ claim: decision, found, answer }] : [],
  )
  const fresh = held.filter(({ found }) => found === undefined).map(({ claim }) => claim)
  const answers = held.flatMap(({ claim, answer }) =>
    answer === undefined ? [] : [{ claim, event: 'served' as const, keeping: answer }],
  )
  // They travel together, and run in this order.
  const [made, moved] = await Promise.all([
    fresh.length === 0 ? new Set<string>() : insertClaims(tx, fresh, 'covered'),
    Promise.all(
      held.map(async ({ claim, found }) => {
        const change = { event: 'covered', use: claim } as const
        return found !== undefined && (await tryEvent({ database: tx }, found, change))
      }),
    ),
    answers.length === 0 ? [] : keepReplies(tx, answers),
  ])
  const bound = new Set(
    held.flatMap(({ claim: { id } }, at) => (made.has(id) || moved[at] ? id : [])),
  )
  const answered = new Set(answers.map(({ claim }) => claim.id))
  return decided.map(({ decision: one, isBound }) => {
    if (!isHeldClaim(one) || isBound === true) return one
    if (!bound.has(one.id)) return 'overtaken'
    return answered.has(one.id) ? { ...one, state: decideStep(one.state, 'served').to } : one
  })
}

function isHeldClaim(decision: Decision): decision is Claim {
  return typeof decision === 'object' && !(decision instanceof Fault)
}
