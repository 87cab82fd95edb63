import { requestHash } from '@tollbase/verify/receipt'
import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import { oneHeader, type RequestFacts } from '../../http/request.ts'
import type { Settlement } from '../../x402/facilitator.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import { decodePayment } from '../../x402/payment-header.ts'
import type { Payment } from '../../x402/protocol.ts'
import {
  type Claim,
  findClaim,
  insertClaim,
  reopen,
  setFailed,
  takeTransaction,
} from './claim-store.ts'
import { Delivering, type Settled } from './delivering.ts'
import type { Delivery, Offer } from './offer.ts'
import { Once } from './once.ts'
import { freeReply, paidReply, type Sold } from './paid-reply.ts'
import type { Paid, PaymentPorts, Purchase, Way } from './purchase.ts'
import { askForPayment, capNow, requirementOf, termsOfClaim, termsOfPayment } from './quoting.ts'
import { paymentText, proofOf, storedPayment } from './stored-payment.ts'

/** What a mere deposit is for, in place of a request's hash. */
const depositPurpose = 'deposit'

type Purpose = { readonly app: string; readonly operation: string; readonly ruleVersion: number }
type Bought = { readonly sold: Sold } | { readonly free: Delivery } | { readonly refusal: string }

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

  /** Sells: answers 402 without a payment, and what was bought with a good one; what costs nothing is given. */
  async sell(facts: RequestFacts, offer: Offer): Promise<HttpReply> {
    const hash = requestHash({
      method: facts.method,
      path: facts.path,
      query: facts.queryText,
      body: facts.bodyBytes,
    })
    const ask = (error: string) => askForPayment(this.ports, { facts, offer, hash, error })
    const payment = paymentOf(facts)
    if (payment === undefined) {
      if (capNow(offer) === 0n) return freeReply(await give(offer))
      return ask('Payment is required')
    }
    const way = this.ports.ways.find(({ network }) => network.id === payment.network)
    if (way === undefined) return ask(`The payment's network, ${payment.network}, is not accepted`)
    const identity = identityOf(way.network, payment)
    const bought = await this.#once.run(identity, `${hash} ${proofOf(payment)}`, () =>
      this.#buy(offer, { payment, way, hash, identity }),
    )
    if ('refusal' in bought) return ask(bought.refusal)
    return 'free' in bought ? freeReply(bought.free) : paidReply(payment, way.network, bought.sold)
  }

  /** Settles a payment for nothing but the payer's balance; repeated, it answers the same. */
  async deposit(
    payment: Payment,
    way: Way,
  ): Promise<{ paymentId: string; transaction: string } | string> {
    const identity = identityOf(way.network, payment)
    const terms = { amount: payment.payload.value, quoteId: '', expiresAt: 0 }
    const paid: Paid = {
      payment,
      requirement: requirementOf(way.network, terms),
      facilitator: way.facilitator,
      identity,
      requestHash: depositPurpose,
    }
    const purpose = { app: 'system', operation: depositPurpose, ruleVersion: 0 }
    return this.#once.run(identity, `${depositPurpose} ${proofOf(payment)}`, async () => {
      const found = await this.#findClaim(paid)
      const settled = settledBefore(found) ?? (await this.#settle(paid, purpose, found))
      if (typeof settled === 'string') return settled
      if (settled.claim.state !== 'settled') await this.#delivering.bookDeposit(settled)
      return { paymentId: settled.claim.id, transaction: settled.transaction }
    })
  }

  /**
   * Finds out what became of a payment whose request went away, and books it if the money arrived; the buyer
   * can still fetch the answer.
   */
  async reconcile({ id, identity }: Claim): Promise<void> {
    if (this.#once.has(identity)) return
    await this.#once.run(identity, 'reconcile', async () => {
      // Its request may have finished since it was listed.
      const claim = await findClaim(this.ports.database, { id })
      if (claim === undefined || claim.state === 'settled' || claim.state === 'delivered') return
      if (await this.#delivering.settleByLedger(claim)) return
      const settled = settledBefore(claim) ?? (await this.#lookUp(claim))
      if (settled !== undefined) await this.#delivering.bookDeposit(settled)
    })
  }

  /** Starts what is done now and then; the returned function ends it. */
  startUpkeep(): () => Promise<void> {
    return this.#delivering.startUpkeep()
  }

  async #buy(
    offer: Offer,
    bought: { payment: Payment; way: Way; hash: string; identity: string },
  ): Promise<Bought> {
    const { payment, way, hash, identity } = bought
    const found = await this.#findClaim({ identity, requestHash: hash, payment })
    if (found === undefined && capNow(offer) === 0n) return { free: await give(offer) }
    // A failed try keeps no promise of earlier prices.
    const terms =
      found === undefined || found.state === 'failed'
        ? termsOfPayment(this.ports, offer, { payment, network: way.network, hash })
        : termsOfClaim(this.ports, offer, found)
    if (typeof terms === 'string') return { refusal: terms }
    const purchase: Purchase = {
      offer,
      payment,
      requirement: requirementOf(way.network, terms),
      facilitator: way.facilitator,
      requestHash: hash,
      identity,
      catalog: terms.catalog,
    }
    const purpose = {
      app: offer.tenant.application.app_id,
      operation: offer.operation,
      ruleVersion: terms.catalog.version,
    }
    const settled = settledBefore(found) ?? (await this.#settle(purchase, purpose, found))
    if (typeof settled === 'string') return { refusal: settled }
    return { sold: await this.#delivering.deliver(purchase, settled) }
  }

  /** The payment's claim; 409 where it was made for something else, or is not repeated exactly. */
  async #findClaim(
    paid: Pick<Paid, 'identity' | 'requestHash' | 'payment'>,
  ): Promise<Claim | undefined> {
    const found = await findClaim(this.ports.database, { identity: paid.identity })
    if (found === undefined) return undefined
    if (found.request_hash !== paid.requestHash) throw new Fault('PAYMENT_ALREADY_USED')
    if (proofOf(storedPayment(found.payment)) !== proofOf(paid.payment)) {
      throw new Fault('PAYMENT_ALREADY_USED', {
        message: 'This payment was made before; repeat it exactly as it was sent.',
      })
    }
    return found
  }

  /** Claims the payment for its purpose, durably, and only then lets money move; the reason where it did not. */
  async #settle(paid: Paid, purpose: Purpose, found: Claim | undefined): Promise<Settled | string> {
    const { payment, requirement, facilitator } = paid
    let isUsed = false
    if (found?.state !== 'claimed') {
      const verdict = await facilitator.verify(payment, requirement)
      isUsed = !verdict.ok && verdict.reason === 'authorization_used'
      if (!verdict.ok && !isUsed) return refusalText(verdict)
    }
    const claim = await this.#hold(paid, purpose, found)
    // A used authorization may be this very payment, handed in by a third party; sent again it could only fail.
    const outcome = isUsed
      ? await facilitator.lookup(claim.id, payment, requirement)
      : await facilitator.settle(claim.id, payment, requirement)
    if (outcome.state === 'pending') throw pending(claim.id, outcome.reason)
    const transaction = await this.#conclude(claim, outcome)
    if (transaction !== undefined) return { claim, transaction, isFresh: found === undefined }
    if (outcome.state === 'settled') throw new Fault('PAYMENT_ALREADY_USED')
    return `The payment was not settled: ${outcome.reason}`
  }

  /** The claim, made or opened again. */
  async #hold(paid: Paid, purpose: Purpose, found: Claim | undefined): Promise<Claim> {
    const { database } = this.ports
    const claim = this.#claimOf(paid, purpose, found)
    if (found?.state === 'failed') await reopen(database, claim)
    if (found !== undefined || (await insertClaim(database, claim))) return claim
    // Another process was first. With what it does the same request may go on; any other is refused.
    const other = await this.#findClaim(paid)
    if (other === undefined) throw new Fault('PAYMENT_ALREADY_USED')
    throw pending(other.id, 'another process settles it')
  }

  async #lookUp(claim: Claim): Promise<Settled | undefined> {
    const payment = storedPayment(claim.payment)
    const way = this.ports.ways.find(({ network }) => network.id === payment.network)
    if (way === undefined) return undefined
    const terms = { amount: claim.amount, quoteId: claim.quote_id ?? '', expiresAt: 0 }
    const requirement = requirementOf(way.network, terms)
    const outcome = await way.facilitator.lookup(claim.id, payment, requirement)
    if (outcome.state === 'pending' || (outcome.state === 'failed' && !outcome.final))
      return undefined
    const transaction = await this.#conclude(claim, outcome)
    return transaction === undefined ? undefined : { claim, transaction, isFresh: false }
  }

  /** The transaction by which the money came, if it did; where it did not the claim has failed. */
  async #conclude(
    { id }: Claim,
    outcome: Exclude<Settlement, { state: 'pending' }>,
  ): Promise<string | undefined> {
    const { database } = this.ports
    if (outcome.state === 'failed') {
      await setFailed(database, id, { reason: outcome.reason, isFinal: outcome.final })
      return undefined
    }
    const { transaction, blockNumber } = outcome
    // A block number is there where the chain itself was asked, and showed this very payment.
    if (blockNumber !== undefined || (await takeTransaction(database, id, transaction)))
      return transaction
    const reason = `its transaction ${transaction} settled another payment`
    await setFailed(database, id, { reason, isFinal: true })
    return undefined
  }

  #claimOf(paid: Paid, purpose: Purpose, found: Claim | undefined): Claim {
    const terms = {
      quote_id: paid.requirement.quoteId === '' ? null : paid.requirement.quoteId,
      rule_version: purpose.ruleVersion,
    }
    if (found !== undefined) return { ...found, ...terms, state: 'claimed' }
    return {
      ...terms,
      id: `pay_${this.ports.world.randomBytes(16).toString('hex')}`,
      identity: paid.identity,
      request_hash: paid.requestHash,
      app: purpose.app,
      operation: purpose.operation,
      amount: paid.requirement.amount,
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

/** What costs nothing is delivered without a payment. */
function give(offer: Offer): Promise<Delivery> {
  return offer.deliver(offer.tenant.data.catalog, undefined)
}

function settledBefore(claim: Claim | undefined): Settled | undefined {
  if (claim === undefined || claim.settled_by === null) return undefined
  return { claim, transaction: claim.settled_by, isFresh: false }
}

function pending(paymentId: string, internal: string): Fault {
  return new Fault('PAYMENT_PENDING', {
    retryAfterSeconds: 2,
    internal,
    details: { payment_id: paymentId, status: 'pending' },
  })
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
