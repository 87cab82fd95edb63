import { Fault } from '../../../base/fault.ts'
import { computeDue } from '../../../model/compute-cost.ts'
import { isMetered } from '../../../model/compute-metered-cost.ts'
import { toWalletAccount } from '../../../projections/ledger-entry.ts'
import type { SignedPayment } from '../../../x402/protocol.ts'
import type { UptoPayment } from '../../../x402/upto/upto.ts'
import type { Claim } from '../claims/claim-store.ts'
import { decodeClaimTerms } from '../claims/claim-terms.ts'
import type { Claims } from '../claims/claims.ts'
import { makeClaim } from '../claims/make-claim.ts'
import { isUntried } from '../claims/payment-states.ts'
import { findLateness } from '../claims/unpaid-answers.ts'
import type { Deliverer } from '../deliverer.ts'
import { findPromiseEnd } from '../deposits/find-promise-end.ts'
import { makeReplyBeforeMoney } from '../make-sale.ts'
import { computeMeteredCap, type MeteredSale } from '../meters/meter.ts'
import { formatRefusal, makePendingFault, toPaymentFault } from '../payment-faults.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import {
  canAnswerFirst,
  checkOffer,
  type Delivery,
  isCostKnown,
  isFreeNow,
  makeFreeDelivery,
  makePurchase,
  makePurpose,
  makeSettler,
  type Offer,
  type Purchase,
  type Terms,
  type UnmatchedTransfer,
} from '../purchase.ts'
import { encodePrices } from '../quotes/encode-prices.ts'
import { computePayment, makeAskedRequirement, makeRequirement } from '../quotes/quoting.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'

/** A payment of the scheme `upto`, as a request brought it. */
export type BroughtUpto = {
  readonly payment: UptoPayment
  readonly method: PaymentMethod
  readonly resolveTerms: () => Promise<Terms | string>
  readonly hash: string
  readonly identity: string
  readonly isPayer: boolean
}

type Outcome =
  | { readonly bought: BoughtReply }
  | { readonly free: Delivery }
  | { readonly refusal: string }
  | { readonly unmatched: UnmatchedTransfer }

/**
 * Sells for payments that allow a most: the answer is made first, and its true cost is taken. So nothing is left over
 * on a balance, and nobody gets the answer before its money is here. A write, whose cost is known, is paid before it is
 * made. From its claim on it is a payment as every other one; what was taken for an answer that a crash has lost is the
 * payer's balance, which pays when it asks again.
 */
export class UptoPayments {
  readonly #ports: PaymentPorts
  readonly #claims: Claims
  readonly #deliverer: Deliverer

  constructor(parts: {
    readonly ports: PaymentPorts
    readonly claims: Claims
    readonly deliverer: Deliverer
  }) {
    this.#ports = parts.ports
    this.#claims = parts.claims
    this.#deliverer = parts.deliverer
  }

  /** Takes a payment of the scheme; one that was claimed before goes on where it stood. */
  async take(offer: Offer, brought: BroughtUpto): Promise<Outcome> {
    const { payment, method, hash: requestHash, identity, isPayer } = brought
    if (method.upto === undefined)
      return { refusal: `The scheme upto is not taken on ${method.network.id}` }
    const found = await this.#claims.finder.findOrRefuse({
      identity,
      requestHash,
      payment,
      isPayer,
    })
    if (found !== undefined) {
      const refusal = isUntried(found.state)
        ? await refuseRetry(offer, brought, found)
        : await findPromiseEnd(this.#ports, offer, found)
      // The sum was decided when it was claimed, also for one that failed.
      return refusal !== undefined ? { refusal } : this.#goOn(offer, brought, found)
    }
    if (isFreeNow(offer)) return { free: await makeFreeDelivery(offer) }
    const terms = await brought.resolveTerms()
    if (typeof terms === 'string') return { refusal: terms }
    const isTakenFirst = isCostKnown(offer, terms)
    if (!isTakenFirst && !canAnswerFirst(offer))
      return { refusal: 'The scheme upto cannot pay for this; pay with another entry of accepts' }
    offer.refuseUndeliverable?.()
    this.#ports.refuseFullDisk?.()
    // Nobody makes us work for money that it does not have.
    const asked = makeAskedRequirement(method.network, terms)
    const verdict = await makeSettler(this.#ports, method, {
      payment,
      requirement: asked,
    }).verify()
    if (!verdict.ok)
      return (await findLost(brought)) ?? this.#refuse(brought, formatRefusal(verdict))
    checkOffer(this.#ports, offer, terms)
    if (isTakenFirst)
      return this.#pay(offer, brought, { terms, amount: asked.amount, found: undefined })
    const late = isMetered(terms.prices) ? await this.#findUnkept(offer, brought, terms) : undefined
    if (late !== undefined) return this.#refuse(brought, late)
    const delivery = await offer.deliver(terms.prices, undefined).catch((error) => {
      throw toPaymentFault(error, { charged: '0' })
    })
    if (isMetered(terms.prices)) return this.#sellMetered(offer, brought, { terms, delivery })
    const cost = computeCost(terms, delivery)
    // The permit stays good for something that costs something.
    if (cost === 0n) return { free: delivery }
    const made: Offer = { ...offer, isByResult: false, deliver: async () => delivery }
    const due: Terms = { ...terms, cap: cost }
    const amount = computePayment(method.network, cost)
    return this.#pay(made, brought, { terms: due, amount, found: undefined })
  }

  /** Finds why the answer is not kept until its money comes; throws where there is no room for it. */
  async #findUnkept(
    offer: Offer,
    { payment, identity }: BroughtUpto,
    terms: Terms,
  ): Promise<string | undefined> {
    const { app } = makePurpose(offer, terms)
    await this.#claims.unpaid.refuseFull({ identity, app }).catch(async (full: unknown) => {
      // Where a pass or a quota covers all that is asked for, there is nothing to wait for.
      const most = await this.#computeMost(offer, terms, payment)
      if (most > 0n) throw full
    })
    return findLateness(this.#ports.world, payment)
  }

  /** Computes the most that this buyer pays for it, less what quotas and passes take off that at this moment. */
  async #computeMost(offer: Offer, terms: Terms, { payload }: UptoPayment): Promise<bigint> {
    const { database, world, tenants } = this.#ports
    const { chain } = tenants.system
    // A pass or a purchase of a moment ago counts.
    await chain.whenApplied(chain.head().height)
    const buyer = { id: '', account: toWalletAccount(payload.from), terms, nowMs: world.now() }
    return (await computeMeteredCap(database, buyer, offer.mostUnder(terms.prices))).cap
  }

  /** Sells at prices that depend on what the buyer had before: the answer is kept with what it costs this buyer. */
  async #sellMetered(
    offer: Offer,
    brought: BroughtUpto,
    made: { readonly terms: Terms; readonly delivery: Delivery },
  ): Promise<Outcome> {
    const { terms, delivery } = made
    const { network } = brought.method
    const account = toWalletAccount(brought.payment.payload.from)
    const bind = (sale: MeteredSale) => {
      const cost = sale.due.reduce((sum, one) => sum + one, 0n)
      const due: Terms = { ...terms, cap: cost }
      const amount = computePayment(network, cost)
      const paid = this.#makePurchase(offer, brought, { terms: due, amount })
      const to = cost === 0n ? 'held' : 'ready'
      const purpose = makePurpose(offer, due)
      const claim = makeClaim(this.#ports.world, { paid, purpose }, { found: undefined, to })
      return {
        claim,
        keeping: makeReplyBeforeMoney(this.#ports, paid, { claim, delivery, ...sale }),
      }
    }
    const asked = this.#makePurchase(offer, brought, { terms, amount: terms.cap })
    const order = { account, terms, sizes: delivery.sizes, bind }
    return this.#goOn(offer, brought, await this.#claims.prepareMetered(asked, order))
  }

  /** Brings a payment to its end that was claimed before. */
  #goOn(offer: Offer, brought: BroughtUpto, found: Claim): Promise<Outcome> {
    const terms = decodeClaimTerms(found)
    const again: Offer = {
      ...offer,
      isByResult: false,
      deliver: async (prices, paymentId) => {
        const delivery = await offer.deliver(prices, paymentId)
        // The first answer is lost, and this one costs more than was taken for that.
        if (computeCost(terms, delivery) > found.cap) throw new Fault('OFFER_CHANGED')
        return delivery
      },
    }
    return this.#pay(again, brought, { terms, amount: found.amount, found })
  }

  async #pay(
    offer: Offer,
    brought: BroughtUpto,
    due: {
      readonly terms: Terms
      readonly amount: bigint
      readonly found: Claim | undefined
    },
  ): Promise<Outcome> {
    const { terms, found } = due
    const purchase = this.#makePurchase(offer, brought, due)
    const funding = await this.#claims.fund(purchase, makePurpose(offer, terms), {
      ...{ found, usesBalance: false, plan: undefined },
    })
    // Its money on a balance may be spent by now: its own claim says so.
    if ('refusal' in funding)
      return isUntried(found?.state ?? 'none') ? this.#refuse(brought, funding.refusal) : funding
    if ('isUsedBefore' in funding) throw new Fault('PAYMENT_ALREADY_USED')
    return { bought: await this.#deliverer.deliver(purchase, funding.funded) }
  }

  #makePurchase(
    offer: Offer,
    brought: BroughtUpto,
    { terms, amount }: { readonly terms: Terms; readonly amount: bigint },
  ): Purchase {
    const { payment, method } = brought
    const taken: SignedPayment = { ...payment, payload: { ...payment.payload, value: amount } }
    const requirement = makeRequirement(method.network, { ...terms, amount })
    return makePurchase(this.#ports, { ...brought, payment: taken }, { offer, terms, requirement })
  }

  /** Another process may have taken the payment after this one looked: nobody is asked for a second one then. */
  async #refuse(brought: BroughtUpto, refusal: string): Promise<Outcome> {
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

/** Finds the money of a permit that was taken before a restore, which its claim is lost by. */
async function findLost({
  payment,
  method,
}: BroughtUpto): Promise<{ readonly unmatched: UnmatchedTransfer } | undefined> {
  if (method.restoredAt === undefined) return undefined
  const taken = await method.upto?.findTaken(payment)
  if (taken === undefined) return undefined
  const paid = { ...payment, payload: { ...payment.payload, value: taken.amount } }
  return { unmatched: { payment: paid, method, why: 'it was taken before' } }
}

/** Finds the reason why a payment that failed is not tried anew: such a try keeps no promise of earlier prices. */
async function refuseRetry(
  offer: Offer,
  brought: BroughtUpto,
  found: Claim,
): Promise<string | undefined> {
  offer.refuseUndeliverable?.()
  const terms = await brought.resolveTerms()
  if (typeof terms === 'string') return terms
  const isSame = encodePrices(terms.prices) === encodePrices(decodeClaimTerms(found).prices)
  return isSame ? undefined : 'The price has changed since the payment was made: sign another one'
}

function computeCost({ prices }: Terms, { sizes }: Delivery): bigint {
  return computeDue(prices, sizes).reduce((sum, cost) => sum + cost, 0n)
}
