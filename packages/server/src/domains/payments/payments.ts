import { requestHash } from '@tollbase/verify/receipt'
import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import { oneHeader, type RequestFacts } from '../../http/request.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import { decodePayment } from '../../x402/payment-header.ts'
import type { Payment } from '../../x402/protocol.ts'
import { type Claim, findClaim, insertClaim, setClaim, transactionTaken } from './claim-store.ts'
import { Delivering } from './delivering.ts'
import type { Offer } from './offer.ts'
import { Once } from './once.ts'
import { paidReply } from './paid-reply.ts'
import type { Paid, PaymentPorts, Purchase, Way } from './purchase.ts'
import { askForPayment, requirementOf, termsOfClaim, termsOfPayment } from './quoting.ts'
import { paymentText, storedPayment } from './stored-payment.ts'

type Settled =
  | {
      readonly ok: true
      readonly transaction: string
      readonly claim: Claim
      readonly isFresh: boolean
    }
  | { readonly ok: false; readonly reason: string }

/** What a mere deposit is for, in place of a request's hash. */
const depositPurpose = 'deposit'

/**
 * The payment states, each durable before the next: quoted (a MAC, no row) -> claimed -> settled ->
 * delivered. One payment is charged once and buys exactly the request it was made for; the same request
 * with the same payment gets the same answer again. What is not known is never guessed.
 */
export class Payments {
  readonly ports: PaymentPorts
  readonly #delivering: Delivering
  readonly #once = new Once()

  constructor(ports: PaymentPorts) {
    this.ports = ports
    this.#delivering = new Delivering(ports)
  }

  /** Sells: answers 402 without a payment, and what was bought with a good one. */
  async sell(facts: RequestFacts, offer: Offer): Promise<HttpReply> {
    const hash = requestHash({
      method: facts.method,
      path: facts.path,
      query: facts.queryText,
      body: facts.bodyBytes,
    })
    const ask = (error: string) => askForPayment(this.ports, { facts, offer, hash, error })
    const payment = paymentOf(facts)
    if (payment === undefined) return ask('Payment is required')
    const way = this.ports.ways.find(({ network }) => network.id === payment.network)
    if (way === undefined) return ask(`Payments on ${payment.network} are not accepted`)
    const identity = identityOf(way.network, payment)
    return this.#once.run(identity, hash, async () => {
      const sold = await this.#buy(offer, { payment, way, hash, identity })
      return typeof sold === 'string' ? ask(sold) : sold
    })
  }

  /** Settles a payment for nothing but the payer's balance; repeated, it answers the same. */
  async deposit(
    payment: Payment,
    way: Way,
  ): Promise<{ paymentId: string; transaction: string } | string> {
    const identity = identityOf(way.network, payment)
    const requirement = requirementOf(way.network, {
      amount: payment.payload.value,
      quoteId: '',
      expiresAt: 0,
    })
    const paid: Paid = {
      payment,
      requirement,
      facilitator: way.facilitator,
      identity,
      requestHash: depositPurpose,
    }
    return this.#once.run(identity, depositPurpose, async () => {
      const found = await this.#findClaim(paid)
      if (found?.state === 'settled')
        return { paymentId: found.id, transaction: found.settled_by ?? '' }
      const settled = await this.#settle(paid, {
        app: 'system',
        operation: 'deposit',
        ruleVersion: 0,
      })
      if (!settled.ok) return settled.reason
      await this.#delivering.bookDeposit(settled.claim, settled.transaction)
      return { paymentId: settled.claim.id, transaction: settled.transaction }
    })
  }

  /**
   * Finds out what became of a payment whose request went away, and books it if the money arrived; the buyer
   * can still fetch the answer.
   */
  async reconcile(claim: Claim): Promise<void> {
    if (this.#once.has(claim.identity)) return
    await this.#once.run(claim.identity, 'reconcile', async () => {
      const payment = storedPayment(claim.payment)
      const way = this.ports.ways.find(({ network }) => network.id === payment.network)
      if (way === undefined) return
      const requirement = requirementOf(way.network, {
        amount: claim.amount,
        quoteId: claim.quote_id ?? '',
        expiresAt: 0,
      })
      const outcome = await way.facilitator.lookup(claim.id, payment, requirement)
      if (outcome.state === 'settled')
        await this.#delivering.bookDeposit(claim, outcome.transaction)
      if (outcome.state === 'failed' && outcome.final) {
        await setClaim(this.ports.database, claim.id, { state: 'failed', reason: outcome.reason })
      }
    })
  }

  async #buy(
    offer: Offer,
    bought: { payment: Payment; way: Way; hash: string; identity: string },
  ): Promise<HttpReply | string> {
    const { payment, way, hash, identity } = bought
    const found = await this.#findClaim({ identity, requestHash: hash })
    const terms = found
      ? termsOfClaim(this.ports, offer, found)
      : termsOfPayment(this.ports, offer, { payment, network: way.network, hash })
    if (typeof terms === 'string') return terms
    const purchase: Purchase = {
      offer,
      payment,
      requirement: requirementOf(way.network, terms),
      facilitator: way.facilitator,
      requestHash: hash,
      identity,
      catalog: terms.catalog,
    }
    if (found?.state === 'settled' || found?.state === 'delivered') {
      return paidReply(purchase, await this.#delivering.resume(purchase, found))
    }
    const settled = await this.#settle(purchase, {
      app: offer.tenant.application.app_id,
      operation: offer.operation,
      ruleVersion: terms.catalog.version,
    })
    if (!settled.ok) return settled.reason
    return paidReply(purchase, await this.#delivering.first(purchase, settled))
  }

  /** The payment's claim; 409 where it was made for something else. */
  async #findClaim(paid: Pick<Paid, 'identity' | 'requestHash'>): Promise<Claim | undefined> {
    const found = await findClaim(this.ports.database, { identity: paid.identity })
    if (found !== undefined && found.request_hash !== paid.requestHash)
      throw new Fault('PAYMENT_ALREADY_USED')
    return found
  }

  /** Claims the payment for its purpose, durably, and only then lets money move. */
  async #settle(
    paid: Paid,
    purpose: { app: string; operation: string; ruleVersion: number },
  ): Promise<Settled> {
    const { database } = this.ports
    const found = await this.#findClaim(paid)
    if (found?.state !== 'claimed') {
      const verdict = await paid.facilitator.verify(paid.payment, paid.requirement)
      // A used authorization may be this very payment, handed in by a third party: settling finds out.
      if (!verdict.ok && verdict.reason !== 'authorization_used') {
        return { ok: false, reason: refusalText(verdict) }
      }
    }
    const claim = found ?? this.#newClaim(paid, purpose)
    if (found === undefined && !(await insertClaim(database, claim)))
      throw new Fault('PAYMENT_ALREADY_USED')
    if (found?.state === 'failed') await setClaim(database, claim.id, { state: 'claimed' })
    const outcome = await paid.facilitator.settle(claim.id, paid.payment, paid.requirement)
    if (outcome.state === 'pending') {
      throw new Fault('PAYMENT_PENDING', {
        retryAfterSeconds: 2,
        internal: outcome.reason,
        details: { payment_id: claim.id, status: 'pending' },
      })
    }
    if (outcome.state === 'failed') {
      await setClaim(database, claim.id, { state: 'failed', reason: outcome.reason })
      return { ok: false, reason: `The payment was not settled: ${outcome.reason}` }
    }
    if (await transactionTaken(database, claim.id, outcome.transaction)) {
      await setClaim(database, claim.id, {
        state: 'failed',
        reason: 'its transaction settled another payment',
      })
      throw new Fault('PAYMENT_ALREADY_USED')
    }
    return { ok: true, transaction: outcome.transaction, claim, isFresh: found === undefined }
  }

  #newClaim(paid: Paid, purpose: { app: string; operation: string; ruleVersion: number }): Claim {
    return {
      id: `pay_${this.ports.world.randomBytes(16).toString('hex')}`,
      identity: paid.identity,
      request_hash: paid.requestHash,
      app: purpose.app,
      operation: purpose.operation,
      amount: paid.requirement.amount,
      quote_id: paid.requirement.quoteId === '' ? null : paid.requirement.quoteId,
      rule_version: purpose.ruleVersion,
      valid_before: paid.payment.payload.validBefore,
      payment: paymentText(paid.payment),
      state: 'claimed',
      reason: null,
      settled_by: null,
      write_after: null,
      created_at_ms: BigInt(this.ports.world.now()),
    }
  }
}

/** The payment that the request carries, if any; two headers of one kind are refused. */
function paymentOf(facts: RequestFacts): Payment | undefined {
  const xPayment = oneHeader(facts, 'x-payment')
  const paymentSignature = oneHeader(facts, 'payment-signature')
  return decodePayment({
    ...(xPayment !== undefined && { xPayment }),
    ...(paymentSignature !== undefined && { paymentSignature }),
  })
}

/** Names a payment for ever: the token takes each nonce of a payer once. */
function identityOf(network: PaymentNetwork, payment: Payment): string {
  return `${network.id}/${network.asset.address}/${payment.payload.from}/${payment.payload.nonce}`
}

function refusalText(verdict: { reason: string; field?: string; detail?: string }): string {
  const where = [verdict.field, verdict.detail].filter((part) => part !== undefined).join(' ')
  return `The payment was refused: ${verdict.reason}${where === '' ? '' : ` (${where})`}`
}
