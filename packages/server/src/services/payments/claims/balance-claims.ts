import { Fault } from '../../../base/fault.ts'
import { refuseRepetition } from '../../../chain/commit-notes.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import type { Size } from '../../../model/compute-cost.ts'
import { isMetered } from '../../../model/compute-metered-cost.ts'
import { readAllAvailable } from '../accounts/account-lock.ts'
import { refuseCheapSale } from '../accounts/cheap-sales.ts'
import { HoldDesk, type HoldOrder, type HoldOutcome } from '../accounts/hold-desk.ts'
import { SaleDesk } from '../accounts/sale-desk.ts'
import { refuseHeld } from '../deposits/held-money.ts'
import { isKnownBuyer } from '../meters/meter.ts'
import { makePendingFault, toPaymentFault } from '../payment-faults.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type {
  AnswerPlan,
  FundedClaim,
  Offer,
  Paid,
  PlannedAnswer,
  Purpose,
  Terms,
} from '../purchase.ts'
import type { ClaimFinder } from './claim-finder.ts'
import { takeStep } from './claim-steps.ts'
import { type Claim, getBuyerAccount, getPayerAccount } from './claim-store.ts'
import { findIdentifier, makeClaim } from './make-claim.ts'

/** Makes the claims that a balance pays: the cap is held on the account, or the answer is sold in one commit. */
export class BalanceClaims {
  readonly #ports: PaymentPorts
  readonly #finder: ClaimFinder
  readonly #desk: HoldDesk
  readonly #sales: SaleDesk
  readonly #advances = new Advances()
  /** Looks at the money of accounts without their locks. */
  readonly #looks: Gatherer<string, bigint>

  constructor(ports: PaymentPorts, finder: ClaimFinder) {
    this.#ports = ports
    this.#finder = finder
    this.#desk = new HoldDesk(ports)
    this.#sales = new SaleDesk(ports)
    this.#looks = new Gatherer(async (accounts) => {
      const available = await readAllAvailable(ports.database, accounts)
      return accounts.map((account) => available.get(account) ?? 0n)
    })
  }

  /**
   * Holds the cap of a request if the payer's balance covers it. A payment that nobody has tried yet is then not asked
   * for its money, which stays where it is. Undefined, and nothing is written, if the balance has less: the payment must
   * be settled. If the answer may be made first (`plan`), it is kept in the same commit.
   */
  async payIfCovered(
    paid: Paid,
    purpose: Purpose & { readonly terms: Terms },
    { found, plan }: { readonly found: Claim | undefined; readonly plan: AnswerPlan },
  ): Promise<FundedClaim | undefined> {
    if (found !== undefined && found.state !== 'failed') return undefined
    refuseRepetition()
    this.#finder.forget(paid.identity)
    const claim = makeClaim(this.#ports.world, { paid, purpose }, { found, to: 'held' })
    const order = { claim, found, paid, terms: purpose.terms }
    const isPlanned = plan !== undefined && found === undefined
    const advance = this.#advances.begin(getPayerAccount(claim), isPlanned ? claim.cap : 0n)
    try {
      // Nobody makes us work, or ask the chain, for money that it does not have.
      const known = this.#sales.findAvailable(getPayerAccount(claim))
      const isKnown = isPlanned && known !== undefined && claim.cap <= known
      const available = isKnown ? known : await this.#findEnough(claim, purpose.terms)
      if (available === undefined) return undefined
      await refuseCheapSale(this.#ports, order, () => listSurest(paid.offer, purpose.terms))
      const isCovered = advance.ahead + claim.cap <= available
      const isFirst = isPlanned && isCovered && !this.#desk.wasRefused(order)
      return await this.#holdNew(order, isFirst ? plan : undefined)
    } finally {
      advance.end()
    }
  }

  /**
   * Holds the cap again for a payment whose money is on its payer's balance; returns the reason if the money is no
   * longer there.
   */
  async takeBack(
    claim: Claim,
    paid: Paid,
    terms: Terms,
  ): Promise<{ readonly funded: FundedClaim } | { readonly refusal: string }> {
    await refuseHeld(this.#ports, claim)
    const named = { ...claim, payment_identifier: findIdentifier(paid) }
    const outcome = await this.#hold({ claim: named, found: claim, paid, terms, answer: undefined })
    if (outcome === 'overtaken') throw makePendingFault(claim.id, 'another process is at it')
    const { to } = takeStep(this.#ports, claim.state, outcome === 'short' ? 'short' : 'covered')
    if (outcome === 'short') {
      const payer = getPayerAccount(claim).slice('wallet:'.length)
      return {
        refusal: `The payment was refused: its money is on the balance of ${payer}, which now has less than ${claim.cap}`,
      }
    }
    const transaction = claim.settled_by
    return { funded: { claim: { ...outcome, state: to }, transaction, isFresh: false } }
  }

  /** Finds what the payer's account has, where that is as much as the claim may cost, or discounts may leave less of it. */
  async #findEnough(claim: Claim, terms: Terms): Promise<bigint | undefined> {
    const { database, tenants, world } = this.#ports
    const { chain } = tenants.system
    const account = getPayerAccount(claim)
    const available = await this.#looks.add(account)
    if (available >= claim.cap) return available
    const isCurrent = chain.watermark().height >= chain.head().height
    if (!isCurrent) await chain.whenApplied(chain.head().height)
    const buyer = { account: getBuyerAccount(claim), terms, nowMs: world.now() }
    // A pass or quota may cover it: the lock decides.
    if (isMetered(terms.prices) && (await isKnownBuyer(database, buyer))) return claim.cap
    const credited = isCurrent ? available : await this.#looks.add(account)
    return credited >= claim.cap ? credited : undefined
  }

  /** Holds a claim that is new, or failed before, after its answer where that is planned. */
  async #holdNew(
    order: Omit<HoldOrder, 'answer'> & { readonly paid: Paid },
    plan: AnswerPlan,
  ): Promise<FundedClaim | undefined> {
    const { claim, found, paid } = order
    const { settler } = paid
    // Anybody can read a used authorization from the chain: what is on the balance is not for those.
    if (!settler.isSound() || (await settler.isUsed())) return undefined
    this.#ports.refuseFullDisk?.()
    this.#ports.world.failpoint?.('payment.verified')
    const answer = await plan?.(claim)
    const outcome = await this.#takeCap({ ...order, answer }).catch((error: unknown) => {
      // Anything else than a refusal may have come after the commit.
      const isRefused = error instanceof Fault && error.status < 500
      throw isRefused ? error : toPaymentFault(error, { payment_id: claim.id })
    })
    const isSold = typeof outcome === 'object' && outcome.state === 'sold'
    if (outcome === 'short') return undefined
    if (outcome === 'overtaken') return this.#finder.refuseOvertaken(paid)
    takeStep(this.#ports, found?.state ?? 'none', 'covered')
    if (answer !== undefined) takeStep(this.#ports, 'held', 'served')
    if (isSold) takeStep(this.#ports, 'owed', 'charged')
    this.#ports.onState?.('claimed')
    this.#ports.world.failpoint?.('payment.claimed')
    const kept = answer && { kept: answer }
    return { claim: outcome, transaction: null, isFresh: found === undefined, ...kept }
  }

  /** Sells an answer that is made; where it is not certain what the account has, or nothing is made yet, holds the cap. */
  async #takeCap({
    answer,
    ...order
  }: Omit<HoldOrder, 'answer'> & {
    readonly answer: PlannedAnswer | undefined
  }): Promise<HoldOutcome> {
    const { claim, paid } = order
    const { keeping, charge } = answer ?? {}
    const sold =
      keeping !== undefined && charge !== undefined
        ? await this.#sales.sell({ claim, paid, answer: keeping, charge })
        : undefined
    return typeof sold === 'object' ? sold : this.#hold({ ...order, answer: keeping })
  }

  /**
   * Holds the claim's cap, less the payer's quotas and passes, if the account has that much. A credit of a moment ago,
   * or a pass that was just bought, is not missed: where it matters, this waits for the tables.
   */
  async #hold(order: HoldOrder): Promise<HoldOutcome> {
    const { chain } = this.#ports.tenants.system
    if (isMetered(order.terms.prices)) await chain.whenApplied(chain.head().height)
    const { height } = chain.watermark()
    const outcome = await this.#desk.hold(order)
    this.#sales.forget(getPayerAccount(order.claim))
    if (outcome !== 'short' || height >= chain.head().height) return outcome
    await chain.whenApplied(chain.head().height)
    return this.#desk.hold(order)
  }
}

/**
 * Lists the sizes by which a sale is judged before it is made: the largest, or those of an empty answer where its making
 * does something elsewhere, and could not be refused after that.
 */
function listSurest(offer: Offer | undefined, { prices }: Terms): readonly (Size | null)[] {
  const most = offer?.mostUnder(prices) ?? []
  return offer?.isMoneyFirst === true ? most.map((size) => size && { ...size, bytes: 0 }) : most
}

/**
 * The caps of answers that are made before they are held, by account. Each buyer who has a balance for one answer could
 * ask for a hundred at once, and pay for one: so no more is answered first than the account could pay together.
 */
class Advances {
  readonly #caps = new Map<string, bigint>()

  /** Counts a purchase until `end`; `ahead` is what those before it may take of the same account. */
  begin(
    account: string,
    cap: bigint,
  ): {
    readonly ahead: bigint
    readonly end: () => void
  } {
    const ahead = this.#caps.get(account) ?? 0n
    this.#caps.set(account, ahead + cap)
    return { ahead, end: () => this.#subtract(account, cap) }
  }

  #subtract(account: string, cap: bigint): void {
    const left = (this.#caps.get(account) ?? 0n) - cap
    if (left > 0n) this.#caps.set(account, left)
    else this.#caps.delete(account)
  }
}
