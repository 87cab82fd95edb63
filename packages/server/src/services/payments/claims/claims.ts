import { Fault } from '../../../base/fault.ts'
import { refuseDone } from '../../../chain/commit-notes.ts'
import { isExpired, type Settlement } from '../../../x402/facilitator.ts'
import { Advances } from '../accounts/advances.ts'
import { BalanceLooks } from '../accounts/balance-looks.ts'
import { HoldDesk, type HoldOutcome } from '../accounts/hold-desk.ts'
import type { HoldOrder } from '../accounts/hold-order.ts'
import { SaleDesk } from '../accounts/sale-desk.ts'
import { isDirect, judgeElsewhere, toPaidNetwork } from '../direct/direct-payees.ts'
import { toApplicationAccount } from '../ledger-entries.ts'
import { isMetered } from '../meters/meter.ts'
import {
  formatRefusal,
  makeOthersUnderWayFault,
  makePendingFault,
  makeUnconfirmedFault,
  makeUsedFault,
} from '../payment-faults.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Terms } from '../purchase.ts'
import { depositOperation, type FundedClaim, type Paid } from '../purchase.ts'
import { makeRequirement } from '../quotes/quoting.ts'
import { makeSettler } from '../settling/settler.ts'
import { toPaymentFault } from '../to-payment-fault.ts'
import { ClaimFinds } from './claim-finds.ts'
import { applyEvent, noteEvent, toEvent, tryEvent } from './claim-steps.ts'
import { type Claim, getPayerAccount, insertClaim, takeTransaction } from './claim-store.ts'
import { makeClaim, type Purpose, type Try } from './make-claim.ts'
import { hasArrived, isHeld, isUntried } from './payment-states.ts'
import { prepareClaim } from './prepare-claim.ts'
import type { Keeping } from './reply-store.ts'
import { decodeStoredPayment, isRepetition } from './stored-payment.ts'

export type Repeatable = Pick<Paid, 'identity' | 'requestHash' | 'payment' | 'isPayer'>
type PlannedAnswer = { readonly keeping: Keeping; readonly charge: bigint }
/** Makes the answer to be kept with the claim; undefined where nothing is answered before it is held. */
type AnswerPlan = ((claim: Claim) => Promise<PlannedAnswer>) | undefined
type UsedBefore = { readonly isUsedBefore: true }
type Outcome<State> = Extract<Settlement, { readonly state: State }>
/** A claim whose money came, or what is said because it did not. */
type Concluded = { readonly funded: Omit<FundedClaim, 'isFresh'> } | { readonly isRefused: boolean }
/** The outcome of asking for a payment's money. An unknown one is a fault: nobody is asked for another payment then. */
export type Funding =
  | { readonly funded: FundedClaim }
  | { readonly refusal: string }
  /** It was used before it was claimed: its sender may have read it from the chain. */
  | UsedBefore

/** Binds payments to requests, and brings their money here. An unknown outcome is never guessed. */
export class Claims {
  readonly #ports: PaymentPorts
  readonly #desk: HoldDesk
  readonly #sales: SaleDesk
  readonly #advances = new Advances()
  readonly #finds: ClaimFinds
  readonly #looks: BalanceLooks

  constructor(ports: PaymentPorts) {
    this.#ports = ports
    this.#desk = new HoldDesk(ports)
    this.#sales = new SaleDesk(ports)
    this.#finds = new ClaimFinds(ports.database)
    this.#looks = new BalanceLooks(ports)
  }

  /**
   * The payment's claim; 409 where it was made for another request, or is not repeated exactly. A payment that could not
   * buy its request may become a deposit: its money may be here after all, and nobody else asks for it.
   */
  async find(paid: Repeatable): Promise<Claim | undefined> {
    const found = await this.#finds.find(paid.identity)
    if (found === undefined) return undefined
    const isTakenOver = isUntried(found.state) && paid.requestHash === depositOperation
    if (found.request_hash !== paid.requestHash && !isTakenOver) throw makeUsedFault(found)
    if (!isRepetition(found.payment, paid)) {
      throw new Fault('PAYMENT_ALREADY_USED', {
        message:
          "This payment was sent before. Repeat it exactly as it was sent. Without a quoteId, also repeat it from the same address, with the same key, or with the payer's wallet signature.",
      })
    }
    return found
  }

  /** The claim of a payment whose request has just come; see `ClaimFinds`. */
  lookUpFirst(identity: string): Promise<Claim | undefined> {
    return this.#finds.lookUpFirst(identity)
  }

  /** Finds the money of a payment that is brought again, where it is known to be here, or held for it. */
  findFunded(found: Claim | undefined): FundedClaim | undefined {
    const funded = found && toFunded(found)
    if (funded !== undefined) noteEvent(this.#ports, funded.claim.state, 'presented')
    return funded
  }

  /** Brings the money of a purchase: what is here or held already, the payer's balance where it may, or its own. */
  async fund(
    paid: Paid,
    purpose: Purpose & { readonly terms: Terms },
    by: {
      readonly found: Claim | undefined
      readonly usesBalance: boolean
      readonly plan: AnswerPlan
    },
  ): Promise<Funding> {
    const { found } = by
    const known = found && toFunded(found)
    if (known !== undefined) {
      const { effects } = noteEvent(this.#ports, known.claim.state, 'presented')
      const isHeldAnew = effects.includes('hold') && purpose.operation !== depositOperation
      return isHeldAnew ? this.#takeBack(known.claim, paid, purpose.terms) : { funded: known }
    }
    const held = by.usesBalance ? await this.payFromBalance(paid, purpose, by) : undefined
    return held === undefined ? this.settle(paid, purpose, found) : { funded: held }
  }

  /**
   * Holds the cap of a request if the payer's balance covers it. A payment that nobody has tried yet is then not asked
   * for its money, which stays where it is. Undefined if the payment must be settled. If the answer may be made first
   * (`plan`), it is kept in the same commit.
   */
  async payFromBalance(
    paid: Paid,
    purpose: Purpose & { readonly terms: Terms },
    { found, plan }: { readonly found: Claim | undefined; readonly plan: AnswerPlan },
  ): Promise<FundedClaim | undefined> {
    if (found !== undefined && found.state !== 'failed') return undefined
    refuseDone()
    this.#finds.forget(paid.identity)
    const claim = makeClaim(this.#ports.world, { paid, purpose }, { found, to: 'held' })
    const order = { claim, found, paid, terms: purpose.terms }
    const isPlanned = plan !== undefined && found === undefined
    const advance = this.#advances.begin(getPayerAccount(claim), isPlanned ? claim.cap : 0n)
    try {
      // Nobody makes us work, or ask the chain, for money that it does not have.
      const known = this.#sales.findAvailable(getPayerAccount(claim))
      const isKnown = isPlanned && known !== undefined && claim.cap <= known
      const available = isKnown ? known : await this.#looks.findEnough(claim, purpose.terms)
      if (available === undefined) return undefined
      const isCovered = advance.ahead + claim.cap <= available
      const isFirst = isPlanned && isCovered && !this.#desk.wasRefused(order)
      return await this.#holdNew(order, isFirst ? plan : undefined)
    } finally {
      advance.end()
    }
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
    this.#ports.admit?.()
    this.#ports.world.failpoint?.('payment.verified')
    const answer = await plan?.(claim)
    const outcome = await this.#takeCap({ ...order, answer }).catch((error: unknown) => {
      // Anything else than a refusal may have come after the commit.
      const isRefused = error instanceof Fault && error.status < 500
      throw isRefused ? error : toPaymentFault(error, { payment_id: claim.id })
    })
    const isSold = typeof outcome === 'object' && outcome.state === 'sold'
    if (outcome === 'short') return undefined
    if (outcome === 'overtaken') return this.#refuseOvertaken(paid)
    noteEvent(this.#ports, found?.state ?? 'none', 'covered')
    if (answer !== undefined) noteEvent(this.#ports, 'held', 'served')
    if (isSold) noteEvent(this.#ports, 'owed', 'charged')
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
   * Holds the cap again for a payment whose money is on its payer's balance; returns the reason if the money is no
   * longer there.
   */
  async #takeBack(claim: Claim, paid: Paid, terms: Terms): Promise<Exclude<Funding, UsedBefore>> {
    const outcome = await this.#hold({ claim, found: claim, paid, terms, answer: undefined })
    if (outcome === 'overtaken') throw makePendingFault(claim.id, 'another process is at it')
    const { to } = noteEvent(this.#ports, claim.state, outcome === 'short' ? 'short' : 'covered')
    if (outcome === 'short') {
      const payer = getPayerAccount(claim).slice('wallet:'.length)
      return {
        refusal: `The payment was refused: its money is on the balance of ${payer}, which now has less than ${claim.cap}`,
      }
    }
    const transaction = claim.settled_by
    return { funded: { claim: { ...outcome, state: to }, transaction, isFresh: false } }
  }

  /**
   * Claims the payment for its purpose, durably, and only then lets money move; returns the reason where it did
   * not.
   */
  async settle(paid: Paid, purpose: Purpose, found: Claim | undefined): Promise<Funding> {
    const { world } = this.#ports
    const { settler } = paid
    if (isUntried(found?.state ?? 'none')) refuseDone()
    const event = await this.#verify(paid, found)
    if (typeof event !== 'string') return event
    const { to, effects } = noteEvent(this.#ports, found?.state ?? 'none', event)
    if (to === 'none' || effects.includes('find use')) {
      await this.#refuseClaimed(paid)
      return { isUsedBefore: true }
    }
    if (found?.state !== 'claimed') world.failpoint?.('payment.verified')
    const claim = await this.#holdClaim(paid, purpose, { found, event, to })
    world.failpoint?.('payment.claimed')
    const isSubmitted = effects.includes('submit')
    const outcome = isSubmitted ? await settler.settle(claim.id) : await settler.lookup(claim.id)
    world.failpoint?.('payment.settled')
    if (outcome.state === 'pending') {
      await this.#notePending(claim, outcome)
      throw makePendingFault(claim.id, outcome.reason)
    }
    const concluded = await this.#conclude(claim, outcome)
    if ('funded' in concluded)
      return { funded: { ...concluded.funded, isFresh: found === undefined } }
    // Its money is known to be here after all: nobody is asked for another payment.
    if (!concluded.isRefused) throw makePendingFault(claim.id, 'another process settled it')
    if (outcome.state === 'settled') throw new Fault('PAYMENT_ALREADY_USED')
    return { refusal: `The payment was not settled: ${outcome.reason}` }
  }

  /**
   * Claims a payment together with its answer, so that its money can be asked for: nobody can give that back. `short`
   * where the seller's balance has less than the platform's share.
   */
  async prepare(
    paid: Paid,
    purpose: Purpose,
    by: {
      readonly found: Claim | undefined
      readonly keep: (claim: Claim) => Keeping
      /** Atomic units: the platform's share. */
      readonly fee: bigint
    },
  ): Promise<Claim | 'short'> {
    const { found } = by
    refuseDone()
    const claim = makeClaim(this.#ports.world, { paid, purpose }, { found, to: 'ready' })
    const fee = { account: toApplicationAccount(purpose.app), amount: by.fee }
    const { readFunds } = paid.settler
    const order = { claim, found, keeping: by.keep(claim), fee, readFunds }
    const outcome = await prepareClaim(this.#ports, order)
    if (outcome === 'short') return outcome
    if (outcome === 'promised') throw makeOthersUnderWayFault()
    if (outcome === 'overtaken') return this.#refuseOvertaken(paid)
    noteEvent(this.#ports, found?.state ?? 'none', 'prepared')
    this.#ports.onState?.('claimed')
    return claim
  }

  /** Claims a payment whose money came without us, once the chain shows that it did; otherwise returns the reason. */
  async adopt(paid: Paid, purpose: Purpose): Promise<Exclude<Funding, UsedBefore>> {
    const use = await paid.settler.findUse()
    const event = toEvent(use)
    const { to } = noteEvent(this.#ports, 'none', event)
    if (use.state === 'pending') throw makeUnconfirmedFault(use.transaction)
    if (use.state === 'failed' || to === 'none') {
      const reason = 'reason' in use ? use.reason : to
      return {
        refusal: `The payment was refused: it was used before it was sent here (${reason})`,
      }
    }
    const claim = await this.#holdClaim(paid, purpose, { found: undefined, event, to })
    return { funded: { claim, transaction: use.transaction, isFresh: true } }
  }

  async lookUp(claim: Claim): Promise<FundedClaim | undefined> {
    const payment = decodeStoredPayment(claim.payment)
    const method = this.#ports.methods.find(({ network }) => network.id === payment.network)
    if (method === undefined) return undefined
    const terms = { amount: claim.amount, quoteId: claim.quote_id ?? '', expiresAt: 0 }
    const network = toPaidNetwork(method.network, payment)
    const requirement = makeRequirement(network, terms)
    const outcome =
      claim.state !== 'ready' && isDirect(payment, method.network)
        ? judgeElsewhere(this.#ports.world, claim)
        : await makeSettler(this.#ports, method, { payment, requirement }).lookup(claim.id)
    // Its request may still be at work: only what is certain counts.
    if (outcome.state === 'pending' || (outcome.state === 'failed' && !outcome.final)) {
      noteEvent(this.#ports, claim.state, 'pending')
      return undefined
    }
    const concluded = await this.#conclude(claim, outcome)
    return 'funded' in concluded ? { ...concluded.funded, isFresh: false } : undefined
  }

  /** A payment under way was verified when it was claimed; any other may be refused. */
  async #verify(
    { settler }: Paid,
    found: Claim | undefined,
  ): Promise<'presented' | 'used' | { readonly refusal: string }> {
    if (found?.state === 'claimed' || found?.state === 'ready') return 'presented'
    this.#ports.admit?.()
    const verdict = await settler.verify()
    if (verdict.ok) return 'presented'
    if (verdict.reason === 'authorization_used') return 'used'
    noteEvent(this.#ports, found?.state ?? 'none', 'refused')
    return { refusal: formatRefusal(verdict) }
  }

  /** Another process may have claimed and used the payment after this one looked. */
  async #refuseClaimed(paid: Paid): Promise<void> {
    const other = await this.find(paid)
    if (other === undefined) return
    noteEvent(this.#ports, other.state, 'overtaken')
    throw makePendingFault(other.id, 'another process settled it')
  }

  /** The claim, made or opened again. */
  async #holdClaim(paid: Paid, purpose: Purpose, begun: Try): Promise<Claim> {
    const { found, event } = begun
    const claim = makeClaim(this.#ports.world, { paid, purpose }, begun)
    this.#finds.forget(paid.identity)
    const isOurs =
      found === undefined
        ? await insertClaim(this.#ports.database, claim, event)
        : found.state === claim.state || (await tryEvent(this.#ports, found, { event, use: claim }))
    if (isOurs) {
      if (claim.state === 'claimed') this.#ports.onState?.('claimed')
      return claim
    }
    return this.#refuseOvertaken(paid)
  }

  /**
   * Another process was first. The same request may continue with the state that process left; any other request is
   * refused.
   */
  async #refuseOvertaken(paid: Paid): Promise<never> {
    this.#finds.forget(paid.identity)
    const other = await this.find(paid)
    const { effects } = noteEvent(this.#ports, other?.state ?? 'none', 'overtaken')
    if (other === undefined || effects.includes('say used')) throw new Fault('PAYMENT_ALREADY_USED')
    throw makePendingFault(other.id, 'another process settles it')
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

  async #notePending(claim: Claim, { isUnsent, reason }: Outcome<'pending'>): Promise<void> {
    if (isUnsent !== true) noteEvent(this.#ports, claim.state, 'pending')
    else await this.#fail(claim, 'unsent', reason)
  }

  async #conclude(claim: Claim, outcome: Outcome<'settled' | 'failed'>): Promise<Concluded> {
    if (outcome.state === 'failed') {
      const { reason, final } = outcome
      return { isRefused: await this.#fail(claim, final ? 'voided' : 'failed', reason) }
    }
    const { transaction, blockNumber } = outcome
    // A block number is there where the chain itself was asked, and showed this very payment.
    if (
      blockNumber === undefined &&
      !(await takeTransaction(this.#ports.database, claim.id, transaction))
    ) {
      const reason = `its transaction ${transaction} settled another payment`
      // The payment itself may still be executed until its end.
      const isOver = isExpired(this.#ports.world, { validBefore: claim.valid_before })
      return { isRefused: await this.#fail(claim, isOver ? 'voided' : 'failed', reason) }
    }
    const { to } = noteEvent(this.#ports, claim.state, 'arrived')
    const change = { event: 'arrived', use: claim } as const
    // Once more a claim that reconciliation looks after, should this request be cut off.
    if (to !== claim.state && !(await tryEvent(this.#ports, claim, change)))
      throw makePendingFault(claim.id, 'another process settles it')
    return { funded: { claim: { ...claim, state: to }, transaction } }
  }

  /** Returns true where the payer is told that it failed. */
  async #fail(
    claim: Claim,
    event: 'unsent' | 'failed' | 'voided',
    reason: string,
  ): Promise<boolean> {
    const { effects } = await applyEvent(this.#ports, claim, { event, reason })
    this.#ports.onState?.('failed')
    return effects.includes('say refused')
  }
}

/** The money of a claim, where it is known to be here, or held for it. */
export function toFunded(claim: Claim): FundedClaim | undefined {
  if (!hasArrived(claim.state) && !isHeld(claim.state)) return undefined
  return { claim, transaction: claim.settled_by, isFresh: false }
}
