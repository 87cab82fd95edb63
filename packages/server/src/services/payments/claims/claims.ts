import { requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import { refuseRepetition } from '../../../chain/commit-notes.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { getNowSeconds, isExpired } from '../../../x402/validity.ts'
import { DepositBook } from '../deposits/deposit-book.ts'
import { refuseHeld } from '../deposits/held-money.ts'
import { isToOtherAddress, judgeElsewhere, toPaidNetwork } from '../direct/direct-payees.ts'
import {
  formatRefusal,
  makeOthersUnderWayFault,
  makePendingFault,
  makeUnconfirmedFault,
} from '../payment-faults.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import {
  type AnswerPlan,
  depositOperation,
  type FundedClaim,
  makeSettler,
  type Paid,
  type Purpose,
  type Terms,
} from '../purchase.ts'
import { makeRequirement } from '../quotes/quoting.ts'
import { BalanceClaims } from './balance-claims.ts'
import { ClaimFinder } from './claim-finder.ts'
import { applyEvent, takeStep, toEvent, tryEvent } from './claim-steps.ts'
import { type Claim, findClaim, insertClaims, takeTransaction } from './claim-store.ts'
import { findTry, joinTry } from './claim-tries.ts'
import { makeClaim } from './make-claim.ts'
import {
  type ClaimState,
  hasArrived,
  isHeld,
  isUntried,
  type PaymentEvent,
  type Step,
} from './payment-states.ts'
import { prepareClaim } from './prepare-claim.ts'
import { type MeteredOrder, prepareMetered } from './prepare-metered.ts'
import { noteLook } from './rare-looks.ts'
import type { ReplyToKeep } from './reply-store.ts'
import { decodeStoredPayment, hasOwnMoney } from './stored-payment.ts'
import { UnpaidAnswers } from './unpaid-answers.ts'

/** A claim, with its version where it was claimed and nobody had joined its try since this process did. */
type TriedClaim = Claim & { readonly version?: string | undefined }
/** The beginning of a try: the claim of an earlier one, and the step that this one takes. */
type Try = {
  readonly found: Claim | undefined
  readonly event: PaymentEvent
  readonly to: ClaimState
}
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

/** The time past its payment's end for which a kept answer waits for a use that nobody can look at, in seconds: a day. */
const hiddenAnswerSeconds = 86_400n

/**
 * Binds payments to requests, and brings their money here. An unknown outcome is never guessed. `takeStep` asks the table
 * in payment-states.ts what follows an event; `tryEvent` and `applyEvent` also move the claim's row so.
 */
export class Claims {
  readonly finder: ClaimFinder
  readonly balances: BalanceClaims
  /** The answers that are kept before their money is asked for. */
  readonly unpaid: UnpaidAnswers
  readonly #ports: PaymentPorts
  readonly #deposits: DepositBook

  constructor(ports: PaymentPorts) {
    this.#ports = ports
    this.finder = new ClaimFinder(ports)
    this.unpaid = new UnpaidAnswers(ports)
    this.balances = new BalanceClaims(ports, this.finder)
    this.#deposits = new DepositBook(ports)
  }

  /** Finds the money of a payment that is brought again, where it is known to be here, or held for it. */
  findFunded(found: Claim | undefined): FundedClaim | undefined {
    const funded = found && toFunded(found)
    if (funded !== undefined) takeStep(this.#ports, funded.claim.state, 'presented')
    return funded
  }

  /** Brings the money of a purchase: what is here or held already, the payer's balance where it may, or its own. */
  async fund(
    paid: Paid,
    purpose: Purpose & { readonly terms: Terms },
    by: {
      readonly found: Claim | undefined
      readonly usesBalance: boolean
      /** For a balance that pays; own money is answered once it is here. */
      readonly plan: AnswerPlan
    },
  ): Promise<Funding> {
    const { found } = by
    const known = found && toFunded(found)
    if (known !== undefined) {
      const { effects } = takeStep(this.#ports, known.claim.state, 'presented')
      const isHeldAnew = effects.includes('hold') && purpose.operation !== depositOperation
      return isHeldAnew
        ? this.balances.takeBack(known.claim, paid, purpose.terms)
        : { funded: known }
    }
    const funded = by.usesBalance ? await this.balances.payIfCovered(paid, purpose, by) : undefined
    return funded === undefined ? this.claimAndSettle(paid, purpose, found) : { funded }
  }

  /**
   * Claims the payment for its purpose, durably, and only then lets money move; returns the reason where it did not. In
   * this order: its signature and its state on the chain, the row of the claim, the journal of the transaction, the
   * transaction, its block. The answer is made after that.
   */
  async claimAndSettle(paid: Paid, purpose: Purpose, found: Claim | undefined): Promise<Funding> {
    const { world } = this.#ports
    const { settler } = paid
    if (isUntried(found?.state ?? 'none')) refuseRepetition()
    const event = await this.#verify(paid, found)
    if (typeof event !== 'string') return event
    const { to, effects } = takeStep(this.#ports, found?.state ?? 'none', event)
    if (to === 'none' || effects.includes('find use')) {
      await this.#refuseClaimed(paid)
      return { isUsedBefore: true }
    }
    if (found?.state !== 'claimed') world.failpoint?.('payment.verified')
    const claim = await this.#openClaim(paid, purpose, { found, event, to })
    world.failpoint?.('payment.claimed')
    const isSubmitted = effects.includes('submit')
    const outcome = isSubmitted ? await settler.settle(claim.id) : await settler.lookup(claim.id)
    world.failpoint?.('payment.settled')
    if (outcome.state === 'pending') {
      await this.#notePending(claim, outcome)
      throw makePendingFault(claim.id, outcome.reason)
    }
    const concluded = await this.#conclude(claim, outcome)
    if ('funded' in concluded) {
      const funded = { ...concluded.funded, isFresh: found === undefined }
      await this.#refuseLost(funded)
      return { funded }
    }
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
      readonly keep: (claim: Claim) => ReplyToKeep
      /** Atomic units: the platform's share. */
      readonly fee: bigint
    },
  ): Promise<Claim | 'short'> {
    const { found } = by
    refuseRepetition()
    const claim = makeClaim(this.#ports.world, { paid, purpose }, { found, to: 'ready' })
    const fee = { account: toApplicationAccount(purpose.app), amount: by.fee }
    const { readFunds } = paid.settler
    const { unpaid } = this
    const order = { claim, found, keeping: by.keep(claim), fee, readFunds, unpaid }
    const outcome = await prepareClaim(this.#ports, order)
    if (outcome === 'short') return outcome
    if (outcome === 'promised') throw makeOthersUnderWayFault()
    if (outcome === 'overtaken') return this.finder.refuseOvertaken(paid)
    takeStep(this.#ports, found?.state ?? 'none', 'prepared')
    this.#ports.onState?.('claimed')
    return claim
  }

  /** The same of a payment at metered prices, for what its answer costs its buyer; that may be nothing (`owed`). */
  async prepareMetered(
    paid: Paid,
    order: Omit<MeteredOrder, 'identity' | 'readFunds' | 'unpaid'>,
  ): Promise<Claim> {
    refuseRepetition()
    const { identity, settler } = paid
    const by = { identity, readFunds: settler.readFunds, unpaid: this.unpaid }
    const claim = await prepareMetered(this.#ports, { ...order, ...by })
    if (claim === 'promised') throw makeOthersUnderWayFault()
    if (claim === 'overtaken') return this.finder.refuseOvertaken(paid)
    takeStep(this.#ports, 'none', claim.state === 'ready' ? 'prepared' : 'covered')
    if (claim.state === 'owed') takeStep(this.#ports, 'held', 'served')
    this.#ports.onState?.('claimed')
    this.#ports.world.failpoint?.('payment.claimed')
    return claim
  }

  /** Claims a payment whose money came without us, once the chain shows that it did; otherwise returns the reason. */
  async adopt(paid: Paid, purpose: Purpose): Promise<Exclude<Funding, UsedBefore>> {
    const use = await paid.settler.findUse()
    const event = toEvent(use)
    const { to } = takeStep(this.#ports, 'none', event)
    if (use.state === 'pending') throw makeUnconfirmedFault(use.transaction)
    if (use.state === 'failed' || to === 'none') {
      const reason = 'reason' in use ? use.reason : to
      return {
        refusal: `The payment was refused: it was used before it was sent here (${reason})`,
      }
    }
    const claim = await this.#openClaim(paid, purpose, { found: undefined, event, to })
    return { funded: { claim, transaction: use.transaction, isFresh: true } }
  }

  async lookUp(claim: Claim): Promise<FundedClaim | undefined> {
    const payment = decodeStoredPayment(claim.payment)
    const method = this.#ports.methods.find(({ network }) => network.id === payment.network)
    if (method === undefined || !hasOwnMoney(payment)) return undefined
    const terms = { amount: claim.amount, quoteId: claim.quote_id ?? '', expiresAt: 0 }
    const network = toPaidNetwork(method.network, payment)
    const requirement = makeRequirement(network, terms)
    const version = await findTry(this.#ports.database, claim)
    const found =
      claim.state !== 'ready' && isToOtherAddress(payment, method.network)
        ? judgeElsewhere(this.#ports.world, claim)
        : await makeSettler(this.#ports, method, { payment, requirement }).lookup(claim.id)
    const outcome = this.#endAnswer(claim, found)
    await noteLook(this.#ports.database, claim, { outcome, nowMs: this.#ports.world.now() })
    // Its request may still be at work: only what is certain counts.
    if (outcome.state === 'pending' || (outcome.state === 'failed' && !outcome.final)) {
      takeStep(this.#ports, claim.state, 'pending')
      return undefined
    }
    const concluded = await this.#conclude({ ...claim, version }, outcome)
    return 'funded' in concluded ? { ...concluded.funded, isFresh: false } : undefined
  }

  /**
   * Ends the wait of a kept answer whose payment was used long ago in a way that nobody can look at: its seller's balance
   * would hold the platform's share for good. Money that came to us instead holds nothing of anybody's, and waits.
   */
  #endAnswer({ state, valid_before }: Claim, found: Settlement): Settlement {
    const isHidden = found.state === 'pending' && found.usedIn !== undefined
    const isLong = getNowSeconds(this.#ports.world) > valid_before + hiddenAnswerSeconds
    if (state !== 'ready' || !isHidden || !isLong) return found
    return { state: 'failed', reason: found.reason, final: true }
  }

  /** A payment under way was verified when it was claimed; any other may be refused. */
  async #verify(
    { settler }: Paid,
    found: Claim | undefined,
  ): Promise<'presented' | 'used' | { readonly refusal: string }> {
    if (found?.state === 'claimed' || found?.state === 'ready') return 'presented'
    this.#ports.refuseFullDisk?.()
    const verdict = await settler.verify()
    if (verdict.ok) return 'presented'
    if (verdict.reason === 'authorization_used') return 'used'
    takeStep(this.#ports, found?.state ?? 'none', 'refused')
    return { refusal: formatRefusal(verdict) }
  }

  /**
   * A restored database may have a payment as under way, or failed, that bought its answer in the life that is lost. Its
   * money is held; an answer that is kept is the one that it bought.
   */
  async #refuseLost(funded: FundedClaim): Promise<void> {
    const { claim, transaction } = funded
    if (claim.state !== 'claimed' || transaction === null) return
    if (!(await this.#deposits.isWithheld(claim, transaction))) return
    await this.#deposits.book(funded)
    await refuseHeld(this.#ports, claim)
  }

  /** Another process may have claimed and used the payment after this one looked. */
  async #refuseClaimed(paid: Paid): Promise<void> {
    const other = await this.finder.findOrRefuse(paid)
    if (other === undefined) return
    takeStep(this.#ports, other.state, 'overtaken')
    throw makePendingFault(other.id, 'another process settled it')
  }

  /** The claim, made or opened again. */
  async #openClaim(paid: Paid, purpose: Purpose, begun: Try): Promise<TriedClaim> {
    const { database, world, onState } = this.#ports
    const { found, event, to } = begun
    const isUnderWay = found?.state === to && !isUntried(to)
    // One under way is for what its row says.
    const claim = isUnderWay ? found : makeClaim(world, { paid, purpose }, begun)
    this.finder.forget(paid.identity)
    const made =
      found === undefined ? (await insertClaims(database, [claim], event)).get(claim.id) : undefined
    const isOurs =
      found === undefined
        ? made !== undefined
        : found.state === to || (await tryEvent(this.#ports, found, { event, use: claim }))
    if (!isOurs) return this.finder.refuseOvertaken(paid)
    if (claim.state !== 'claimed') return claim
    onState?.('claimed')
    return { ...claim, version: made ?? (await joinTry(database, claim)) }
  }

  async #notePending(claim: TriedClaim, { isUnsent, reason }: Outcome<'pending'>): Promise<void> {
    if (isUnsent !== true) takeStep(this.#ports, claim.state, 'pending')
    else await this.#fail(claim, 'unsent', reason)
  }

  async #conclude(claim: TriedClaim, outcome: Outcome<'settled' | 'failed'>): Promise<Concluded> {
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
    const { to } = takeStep(this.#ports, claim.state, 'arrived')
    const change = { event: 'arrived', use: claim } as const
    // Once more a claim that reconciliation looks after, should this request be cut off.
    if (to !== claim.state && !(await tryEvent(this.#ports, claim, change)))
      throw makePendingFault(claim.id, 'another process settles it')
    return { funded: { claim: { ...claim, state: to }, transaction } }
  }

  /** Returns true where the payer is told that it failed. */
  async #fail(
    claim: TriedClaim,
    event: 'unsent' | 'failed' | 'voided',
    reason: string,
  ): Promise<boolean> {
    const isOpen = event !== 'voided' && claim.state === 'claimed'
    const { effects } = isOpen
      ? await this.#giveUp(claim, event, reason)
      : await applyEvent(this.#ports, claim, { event, reason })
    this.#ports.onState?.('failed')
    return effects.includes('say refused')
  }

  /**
   * Gives a try up that moved nothing, unless somebody else is at it by now: a claim that is given up loses its name, and
   * its payer is asked for another payment.
   */
  async #giveUp(
    claim: TriedClaim,
    event: 'unsent' | 'failed',
    reason: string,
  ): Promise<Step<ClaimState>> {
    const { version } = claim
    const isOurs =
      version !== undefined && (await tryEvent(this.#ports, claim, { event, reason, version }))
    if (isOurs) return takeStep(this.#ports, claim.state, event)
    const now = requirePresent(await findClaim(this.#ports.database, { id: claim.id }), 'a claim')
    return takeStep(this.#ports, now.state, now.state === 'claimed' ? 'pending' : event)
  }
}

/** The money of a claim, where it is known to be here, or held for it. */
export function toFunded(claim: Claim): FundedClaim | undefined {
  if (!hasArrived(claim.state) && !isHeld(claim.state)) return undefined
  return { claim, transaction: claim.settled_by, isFresh: false }
}
