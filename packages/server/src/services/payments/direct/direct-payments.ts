import { Fault } from '../../../base/fault.ts'
import { computeDue } from '../../../model/compute-cost.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { SignedPayment } from '../../../x402/protocol.ts'
import { tooManyEvents } from '../../../x402/receipt-reader.ts'
import type { Claim } from '../claims/claim-store.ts'
import { decodeClaimTerms } from '../claims/claim-terms.ts'
import type { Claims } from '../claims/claims.ts'
import { isUntried } from '../claims/payment-states.ts'
import { awaitFunds } from '../claims/prepare-claim.ts'
import { findLateness } from '../claims/unpaid-answers.ts'
import type { Deliverer } from '../deliverer.ts'
import { computeFee, listParts, makeReplyBeforeMoney } from '../make-sale.ts'
import {
  formatRefusal,
  makeOthersUnderWayFault,
  makePendingFault,
  makeUsedFault,
} from '../payment-faults.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import {
  checkOffer,
  type Delivery,
  isFreeNow,
  makeFreeDelivery,
  makePurchase,
  makePurpose,
  type Offer,
  type Purchase,
  type Terms,
} from '../purchase.ts'
import { makeAskedRequirement, makeRequirement } from '../quotes/quoting.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'
import { type DirectPayees, isAllOf, toDirectNetwork } from './direct-payees.ts'

/** A direct payment, as a request brought it. */
export type BroughtDirect = {
  readonly payment: SignedPayment
  readonly method: PaymentMethod
  readonly resolveTerms: () => Promise<Terms | string>
  readonly hash: string
  readonly identity: string
  readonly isPayer: boolean
  readonly usesBalance: boolean
}

type Outcome =
  | { readonly bought: BoughtReply }
  | { readonly free: Delivery }
  | { readonly refusal: string }

/**
 * Sells for direct payments, which go to the wallet of the seller. From there nothing can be given back, so the answer is
 * made and kept first, and whatever goes wrong before costs nothing. The claim is `ready` until its money came, or can
 * come no more; the platform's share is held meanwhile on the seller's balance, and taken with the sale.
 */
export class DirectPayments {
  readonly #ports: PaymentPorts
  readonly #claims: Claims
  readonly #deliverer: Deliverer
  readonly #payees: DirectPayees

  constructor(parts: {
    readonly ports: PaymentPorts
    readonly claims: Claims
    readonly deliverer: Deliverer
    readonly payees: DirectPayees
  }) {
    this.#ports = parts.ports
    this.#claims = parts.claims
    this.#deliverer = parts.deliverer
    this.#payees = parts.payees
  }

  /** Takes such a payment; one that was claimed before goes on where it stood. */
  async take(offer: Offer, brought: BroughtDirect): Promise<Outcome> {
    const { payment, hash: requestHash, identity, isPayer } = brought
    const found = await this.#claims.finder.findOrRefuse({
      identity,
      requestHash,
      payment,
      isPayer,
    })
    if (found !== undefined && !isUntried(found.state)) return this.#goOn(offer, brought, found)
    // The seller has its money, if anybody: nobody is asked for another payment.
    if (found?.state === 'void' && found.reason?.endsWith(tooManyEvents) === true)
      throw makeUsedFault(found)
    if (found?.state === 'void')
      return { refusal: 'The payment was refused: it can not be made any more' }
    if (isFreeNow(offer)) return { free: await makeFreeDelivery(offer) }
    const terms = await brought.resolveTerms()
    if (typeof terms === 'string') return { refusal: terms }
    offer.refuseUndeliverable?.()
    const purchase = this.#makePurchase(offer, brought, { terms })
    return (
      (await this.#payFromBalance(purchase, brought, found)) ??
      this.#prepare(purchase, brought, found)
    )
  }

  /** The payer's balance comes first, as with every other payment: then the seller has it on its own balance here. */
  async #payFromBalance(
    purchase: Purchase,
    { usesBalance }: BroughtDirect,
    found: Claim | undefined,
  ): Promise<Outcome | undefined> {
    if (!usesBalance) return undefined
    const plan = this.#deliverer.planAnswer(purchase)
    const purpose = makePurpose(purchase.offer, purchase.terms)
    const funded = await this.#claims.balances.payIfCovered(purchase, purpose, { found, plan })
    return funded && { bought: await this.#deliverer.deliver(purchase, funded) }
  }

  async #prepare(
    purchase: Purchase,
    brought: BroughtDirect,
    found: Claim | undefined,
  ): Promise<Outcome> {
    const { offer, terms, settler } = purchase
    this.#ports.refuseFullDisk?.()
    const late = findLateness(this.#ports.world, brought.payment)
    if (late !== undefined) return this.#refuse(brought, late)
    // Nobody makes us work for money that it does not have.
    const verdict = await settler.verify()
    if (!verdict.ok) return this.#refuse(brought, formatRefusal(verdict))
    if (!(await awaitFunds(this.#ports, purchase))) throw makeOthersUnderWayFault()
    const { app } = makePurpose(offer, terms)
    await this.#claims.unpaid.refuseFull({ ...purchase, app })
    this.#ports.world.failpoint?.('payment.verified')
    checkOffer(this.#ports, offer, terms)
    const delivery = await offer.deliver(terms.prices, undefined)
    const due = computeDue(terms.prices, delivery.sizes)
    const charge = due.reduce((sum, cost) => sum + cost, 0n)
    const purpose = makePurpose(purchase.offer, purchase.terms)
    if (charge !== terms.cap || !isAllOf(due, terms, purpose.app))
      return { refusal: 'The payment was refused: the answer costs something else by now' }
    const parts = listParts(due, terms.payees)
    const seller = toApplicationAccount(purpose.app)
    const claim = await this.#claims.prepare(purchase, purpose, {
      found,
      keep: (fresh) => makeReplyBeforeMoney(this.#ports, purchase, { claim: fresh, delivery, due }),
      fee: computeFee({ charge, seller, split: this.#ports.split, parts }),
    })
    if (claim === 'short')
      return this.#refuse(brought, 'The seller can not be paid directly at this moment')
    this.#payees.end(terms.quoteId)
    return this.#settle(purchase, claim)
  }

  #goOn(offer: Offer, brought: BroughtDirect, found: Claim): Promise<Outcome> {
    const purchase = this.#makePurchase(offer, brought, { terms: decodeClaimTerms(found), found })
    return this.#settle(purchase, found)
  }

  async #settle(purchase: Purchase, claim: Claim): Promise<Outcome> {
    const known = this.#claims.findFunded(claim)
    const funding = known
      ? { funded: known }
      : await this.#claims.claimAndSettle(
          purchase,
          makePurpose(purchase.offer, purchase.terms),
          claim,
        )
    if ('refusal' in funding) return funding
    if ('isUsedBefore' in funding) throw new Fault('PAYMENT_ALREADY_USED')
    return { bought: await this.#deliverer.deliver(purchase, funding.funded) }
  }

  #makePurchase(
    offer: Offer,
    brought: BroughtDirect,
    { terms, found }: { readonly terms: Terms; readonly found?: Claim },
  ): Purchase {
    const { payment, method } = brought
    const network = toDirectNetwork(method.network, payment.payload.to)
    const requirement =
      found === undefined
        ? makeAskedRequirement(network, terms)
        : makeRequirement(network, { ...terms, amount: found.amount })
    const purchase = makePurchase(this.#ports, brought, { offer, terms, requirement })
    return { ...purchase, paidTo: network.payTo }
  }

  /** Another process may have claimed the payment after this one looked: nobody is asked for a second one then. */
  async #refuse(brought: BroughtDirect, refusal: string): Promise<Outcome> {
    const { payment, hash: requestHash, identity, isPayer } = brought
    const other = await this.#claims.finder.findOrRefuse({
      identity,
      requestHash,
      payment,
      isPayer,
    })
    if (other === undefined || isUntried(other.state)) return { refusal }
    throw makePendingFault(other.id, 'another process took it')
  }
}
