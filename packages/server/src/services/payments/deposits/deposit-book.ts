import { requirePresent } from '../../../base/assert.ts'
import { applyEvent, takeStep, tryEvent } from '../claims/claim-steps.ts'
import { type Claim, findClaim } from '../claims/claim-store.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { depositOperation, type FundedClaim } from '../purchase.ts'
import { findWritten, locateWritten } from '../write-delivery.ts'
import { makeClaimDeposit } from './claim-deposit.ts'
import { isOfLostLife } from './held-money.ts'

/**
 * The time for which money waits for its request to be repeated, if the answer was lost. If it were free on the balance
 * at once, the payer's next purchase could spend it, and the lost answer could not be asked for again.
 */
const retryMs = 300_000

/** Says whether the request of the claim may still be sent again, and its money waits for it. */
type Ending = { readonly waitsForRetry?: boolean }

/** Books the money of payments as their payers' balances, and gives back what was held and is not charged. */
export class DepositBook {
  readonly #ports: PaymentPorts

  constructor(ports: PaymentPorts) {
    this.#ports = ports
  }

  /**
   * Books the payment's own money as the payer's balance, unless that was done before. The money of a purchase stays
   * held until it is certain that its request wrote nothing that must be charged for; returns false if that is not
   * certain. Money that may have bought something in a lost life of the database is held instead.
   */
  async book({ claim, transaction, isFresh }: FundedClaim, ending: Ending = {}): Promise<boolean> {
    const settledBy = requirePresent(transaction, 'the transaction of money that came')
    const isWithheld = await this.isWithheld(claim, settledBy)
    if (isWithheld || claim.operation === depositOperation) {
      await this.#append({ claim, transaction, isFresh }, isWithheld)
      await applyEvent(this.#ports, claim, { event: 'booked', settledBy })
    } else {
      const step = await applyEvent(this.#ports, claim, { event: 'reserved', settledBy })
      if (!step.effects.includes('book deposit')) return false
      await this.#append({ claim, transaction, isFresh })
      if (step.effects.includes('end hold')) return this.endHold(claim, ending)
      await applyEvent(this.#ports, { ...claim, state: step.to }, { event: 'booked', settledBy })
    }
    this.#ports.onState?.('settled')
    return true
  }

  /**
   * Ends the hold of a claim that was not answered, unless its request has written, or still may. In that case the hold
   * stays until somebody repeats the request, or `bookWritten` charges for it. Returns true if the hold ended. Money of a
   * lost life is held for the operator in place of the payer's balance.
   */
  async endHold({ id }: Pick<Claim, 'id'>, { waitsForRetry }: Ending = {}): Promise<boolean> {
    const claim = await findClaim(this.#ports.database, { id })
    if (claim?.state !== 'held') return false
    const { settled_by: settledBy, write_form: writeForm } = claim
    // Money that is booked is not asked for again: its chain may have taken it back, and then nobody knows its block.
    const isUnbooked = settledBy !== null && !(await this.isBooked(claim))
    const isLost = isUnbooked && (await isOfLostLife(this.#ports, claim, settledBy))
    // A sale of this life takes the money with its own entry, so what may be lost is booked when nothing is sold.
    if (isUnbooked && !isLost) await this.#append({ claim, transaction: settledBy, isFresh: true })
    const { written, upTo } = await locateWritten(this.#ports.tenants, claim, { rows: 0 })
    if (written !== undefined) return false
    const ageMs = this.#ports.world.now() - Number(claim.created_at_ms)
    if (waitsForRetry === true && settledBy !== null && ageMs < retryMs) return false
    if (isLost) await this.#append({ claim, transaction: settledBy, isFresh: false }, true)
    const event = settledBy === null ? 'released' : 'freed'
    takeStep(this.#ports, claim.state, event)
    // Nobody reads the same part of the log again when the request comes once more, however long that is.
    const writeAfter = upTo !== undefined && { writeAfter: upTo }
    const isFree = await tryEvent(this.#ports, claim, { event, writeForm, ...writeAfter })
    if (isFree) this.#ports.onState?.(settledBy === null ? 'failed' : 'settled')
    return isFree
  }

  /**
   * Returns true where the money of a claim may have bought something in a lost life of the database, and nothing says
   * what: the log has no write of its request either, which it would have to be charged for.
   */
  async isWithheld(claim: Claim, transaction: string): Promise<boolean> {
    if (!(await isOfLostLife(this.#ports, claim, transaction))) return false
    return (await findWritten(this.#ports.tenants, claim, { rows: 0 })) === undefined
  }

  /** Books money that came, and ends a hold; returns false where that stays, as its request has written. */
  giveUp(funded: FundedClaim): Promise<boolean> {
    if (funded.claim.state === 'held') return this.endHold(funded.claim)
    return this.book(funded)
  }

  /** Returns true if the money of this claim is in the ledger. */
  async isBooked(claim: Claim): Promise<boolean> {
    const { chain, ledger, schema } = this.#ports.tenants.system
    await chain.whenApplied(chain.head().height)
    return (await ledger.findDeposit(this.#ports.database, schema, claim.identity)) !== undefined
  }

  async #append({ claim, transaction, isFresh }: FundedClaim, isWithheld = false): Promise<void> {
    if (!isFresh && (await this.isBooked(claim))) return
    const deposit = makeClaimDeposit(claim, transaction, isWithheld)
    await this.#ports.tenants.system.chain.append([deposit], { isOwed: true })
  }
}
