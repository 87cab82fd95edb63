import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { Settlement } from '../../x402/facilitator.ts'
import { isNative, type Payment } from '../../x402/protocol.ts'
import { AskedTerms } from './asked-terms.ts'
import {
  type Claim,
  findClaim,
  insertClaim,
  openPaymentsOf,
  reopen,
  setFailed,
  takeTransaction,
} from './claim-store.ts'
import { Delivering, type Settled } from './delivering.ts'
import type { Delivery, Offer } from './offer.ts'
import { Once } from './once.ts'
import { freeReply, paidReply, type Sold } from './paid-reply.ts'
import { type Asking, isByPayer, presentedOf, requestHashOf } from './presented.ts'
import {
  depositPurpose,
  type Paid,
  type PaymentPorts,
  type Purchase,
  type Way,
} from './purchase.ts'
import {
  askedOf,
  askForPayment,
  capNow,
  isFreeNow,
  type QuotePorts,
  requirementOf,
} from './quoting.ts'
import { pending, refusalText, unconfirmed, usedOtherwise } from './refusals.ts'
import { settlerOf } from './settler.ts'
import {
  bondOf,
  identityOf,
  isRepetition,
  paymentText,
  proofOf,
  storedPayment,
  transferName,
} from './stored-payment.ts'
import { type Stray, type Tender, tenderOf } from './tender.ts'
import { type Terms, termsOfClaim, termsText } from './terms.ts'

type Purpose = {
  readonly app: string
  readonly operation: string
  /** Undefined of a mere deposit. */
  readonly terms?: Terms
}
type Repeatable = Pick<Paid, 'identity' | 'requestHash' | 'payment' | 'isPayer'>
type Bought =
  | { readonly sold: Sold }
  | { readonly free: Delivery }
  | { readonly refusal: string }
  | { readonly stray: Stray }

/**
 * The payment states, each durable before the next: quoted (a MAC, no row) -> claimed -> settled ->
 * delivered. One payment is charged once and buys exactly the request it was made for; the same request
 * with the same payment gets the same answer again. What is not known is never guessed.
 */
export class Payments {
  readonly ports: PaymentPorts
  readonly #delivering: Delivering
  readonly #once = new Once()
  readonly #quotes: QuotePorts

  constructor(ports: PaymentPorts) {
    this.ports = ports
    this.#quotes = { ...ports, asked: new AskedTerms(ports.world.now()) }
    this.#delivering = new Delivering(ports)
  }

  /** Sells: answers 402 without a payment, and what was bought with a good one; what costs nothing is given. */
  async sell(asking: Asking, offer: Offer): Promise<HttpReply> {
    const { facts } = asking
    const hash = requestHashOf(facts)
    // Nobody is asked for nothing, whatever was wrong with what he sent.
    const ask = async (error: string) =>
      capNow(offer) === 0n
        ? freeReply(await give(offer))
        : askForPayment(this.#quotes, { facts, offer, hash, error })
    const presented = presentedOf(asking)
    const tender = presented && (await tenderOf(this.#quotes, offer, { presented, hash }))
    if (tender === 'nothing') return freeReply(await give(offer))
    if (tender === undefined || 'refusal' in tender) {
      offer.admit?.()
      return ask(tender?.refusal ?? 'Payment is required')
    }
    if ('stray' in tender) return ask(await this.#keep(tender.stray))
    const { payment, way } = tender
    const identity = identityOf(way.network, payment)
    const isPayer = isByPayer(asking, payment)
    const purpose = `${hash} ${proofOf(payment)}${isPayer ? ' payer' : ''}`
    const bought = await this.#once.run(identity, purpose, () =>
      this.#buy(offer, { ...tender, hash, identity, isPayer }),
    )
    this.ports.world.reach?.('payment.beforeReply')
    if ('refusal' in bought) return ask(bought.refusal)
    if ('stray' in bought) return ask(await this.#keep(bought.stray))
    return 'free' in bought ? freeReply(bought.free) : paidReply(payment, way.network, bought.sold)
  }

  /**
   * What this payment bought before for this very request, while its answer is kept: whoever repeats both exactly gets
   * it, and so does the payer, whatever has become of the thing and its price since.
   */
  soldBefore(paid: Repeatable): Promise<Sold | undefined> {
    const { identity, requestHash: hash, payment, isPayer } = paid
    const purpose = `again ${hash} ${isPayer ? 'payer' : proofOf(payment)}`
    return this.#once.run(identity, purpose, async () => {
      const found = await findClaim(this.ports.database, { identity })
      if (found === undefined || found.request_hash !== hash) return undefined
      if (!isPayer && !isRepetition(found.payment, paid)) return undefined
      const settled = settledBefore(found)
      return settled && this.#delivering.earlier(settled)
    })
  }

  /** Settles a payment for nothing but the payer's balance; repeated, it answers the same. */
  async deposit(
    payment: Payment,
    way: Way,
  ): Promise<{ paymentId: string; transaction: string } | string> {
    const identity = identityOf(way.network, payment)
    const quoteId = isNative(payment) ? (payment.quoteId ?? '') : ''
    const terms = { amount: payment.payload.value, quoteId, expiresAt: 0 }
    const requirement = requirementOf(way.network, terms)
    const paid: Paid = {
      payment,
      requirement,
      settler: settlerOf(this.ports, way, { payment, requirement }),
      identity,
      requestHash: depositPurpose,
      isPayer: false,
    }
    const purpose = { app: 'system', operation: depositPurpose }
    return this.#once.run(identity, `${depositPurpose} ${proofOf(payment)}`, async () => {
      const found = await this.#findClaim(paid)
      const settled =
        settledBefore(found) ??
        (await this.#settle(paid, purpose, found)) ??
        (await this.#adopt(paid, purpose))
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

  /** Payments to an application that were claimed since then and whose money is not known to be here; the first hundred. */
  openFor(app: string, sinceMs: number): Promise<string[]> {
    return openPaymentsOf(this.ports.database, app, sinceMs)
  }

  /** Payments that this process is working on. */
  inFlight(): number {
    return this.#once.size
  }

  /** Starts what is done now and then; the returned function ends it. */
  startUpkeep(): () => Promise<void> {
    return this.#delivering.startUpkeep()
  }

  /** Books money that buys nothing as the payer's balance, and says so. */
  async #keep({ payment, way, why }: Stray): Promise<string> {
    const kept = await this.deposit(payment, way)
    if (typeof kept === 'string') return kept
    const { value, from } = payment.payload
    return `The payment was refused: ${why}; its ${value} atomic units are on the balance of ${from} (payment ${kept.paymentId})`
  }

  async #buy(
    offer: Offer,
    bought: Tender & { hash: string; identity: string; isPayer: boolean },
  ): Promise<Bought> {
    const { payment, way, hash, identity, isPayer } = bought
    const found = await this.#findClaim({ identity, requestHash: hash, payment, isPayer })
    // A failed try keeps no promise of earlier prices.
    const isOpen = found === undefined || found.state === 'failed'
    // A transfer has been made already, and is worth what its quote says.
    if (isOpen && !isNative(payment) && isFreeNow(offer)) return { free: await give(offer) }
    const terms = isOpen ? await bought.terms() : termsOfClaim(found)
    if (typeof terms === 'string') return { refusal: terms }
    // What a payment that is under way moves was settled when it was claimed.
    const requirement = isOpen
      ? askedOf(way.network, terms)
      : requirementOf(way.network, { ...terms, amount: found.amount })
    const purchase: Purchase = {
      offer,
      payment,
      requirement,
      settler: settlerOf(this.ports, way, { payment, requirement }),
      requestHash: hash,
      identity,
      isPayer,
      terms,
    }
    // What is under way already is brought to its end; money that has moved becomes the payer's balance.
    if (isOpen && !isNative(payment)) offer.admit?.()
    const app = offer.sellerUnder(terms.prices)
    const purpose = { app, operation: offer.operation, terms }
    const settled = settledBefore(found) ?? (await this.#settle(purchase, purpose, found))
    if (settled === undefined)
      return { stray: { payment, way, why: 'it was used before it was sent here' } }
    if (typeof settled === 'string') return { refusal: settled }
    return { sold: await this.#delivering.deliver(purchase, settled) }
  }

  /**
   * The payment's claim; 409 where it was made for another request, or is not repeated exactly. What could not buy its
   * request may become a deposit: its money may be here after all, and nobody else asks for it.
   */
  async #findClaim(paid: Repeatable): Promise<Claim | undefined> {
    const found = await findClaim(this.ports.database, { identity: paid.identity })
    if (found === undefined) return undefined
    const isTakenOver = found.state === 'failed' && paid.requestHash === depositPurpose
    if (found.request_hash !== paid.requestHash && !isTakenOver) throw usedOtherwise(found)
    if (!isRepetition(found.payment, paid)) {
      throw new Fault('PAYMENT_ALREADY_USED', {
        message:
          'This payment was made before; repeat it exactly as it was sent, one without a quoteId also from the same address, with the same key, or with a wallet signature of the payer.',
      })
    }
    return found
  }

  /**
   * Claims the payment for its purpose, durably, and only then lets money move; the reason where it did not.
   * Undefined where the payment was used before it was claimed: whoever has it may have read it from the chain.
   */
  async #settle(
    paid: Paid,
    purpose: Purpose,
    found: Claim | undefined,
  ): Promise<Settled | string | undefined> {
    const { world } = this.ports
    const { settler } = paid
    let isUsed = false
    if (found?.state !== 'claimed') {
      this.ports.admit?.()
      const verdict = await settler.verify()
      isUsed = !verdict.ok && verdict.reason === 'authorization_used'
      if (!verdict.ok && !isUsed) return refusalText(verdict)
      if (isUsed && found === undefined) return this.#refuseClaimed(paid)
      world.reach?.('payment.verified')
    }
    const claim = await this.#hold(paid, purpose, found)
    world.reach?.('payment.claimed')
    // Claimed in an earlier try, it may have been handed in by a third party; sent again it could only fail.
    const outcome = isUsed ? await settler.lookup(claim.id) : await settler.settle(claim.id)
    world.reach?.('payment.settled')
    if (outcome.state === 'pending') {
      // Who never comes back must not leave it open: an authorization may be valid for ever.
      if (outcome.isUnsent === true)
        await this.#conclude(claim, { state: 'failed', reason: outcome.reason, final: false })
      throw pending(claim.id, outcome.reason)
    }
    const transaction = await this.#conclude(claim, outcome)
    if (transaction !== undefined) return { claim, transaction, isFresh: found === undefined }
    if (outcome.state === 'settled') throw new Fault('PAYMENT_ALREADY_USED')
    return `The payment was not settled: ${outcome.reason}`
  }

  /** Another process may have claimed and used the payment after this one looked. */
  async #refuseClaimed(paid: Paid): Promise<undefined> {
    const other = await this.#findClaim(paid)
    if (other !== undefined) throw pending(other.id, 'another process settled it')
  }

  /** Claims a payment whose money came without us, once the chain shows that it did; otherwise the reason. */
  async #adopt(paid: Paid, purpose: Purpose): Promise<Settled | string> {
    const use = await paid.settler.findUse()
    if (use.state === 'pending') throw unconfirmed(use.transaction)
    if (use.state === 'failed')
      return `The payment was refused: it was used before it was sent here (${use.reason})`
    const claim = await this.#hold(paid, purpose, undefined)
    return { claim, transaction: use.transaction, isFresh: true }
  }

  /** The claim, made or opened again. */
  async #hold(paid: Paid, purpose: Purpose, found: Claim | undefined): Promise<Claim> {
    const { database } = this.ports
    const claim = this.#claimOf(paid, purpose, found)
    const isOurs =
      found === undefined
        ? await insertClaim(database, claim)
        : found.state !== 'failed' || (await reopen(database, claim))
    if (isOurs) {
      this.ports.onState?.('claimed')
      return claim
    }
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
    const outcome = await settlerOf(this.ports, way, { payment, requirement }).lookup(claim.id)
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
      this.ports.onState?.('failed')
      return undefined
    }
    const { transaction, blockNumber } = outcome
    // A block number is there where the chain itself was asked, and showed this very payment.
    if (blockNumber !== undefined || (await takeTransaction(database, id, transaction)))
      return transaction
    const reason = `its transaction ${transaction} settled another payment`
    await setFailed(database, id, { reason, isFinal: true })
    this.ports.onState?.('failed')
    return undefined
  }

  #claimOf(paid: Paid, purpose: Purpose, found: Claim | undefined): Claim {
    const { payment } = paid
    const use = {
      request_hash: paid.requestHash,
      app: purpose.app,
      operation: purpose.operation,
      quote_id: paid.requirement.quoteId === '' ? null : paid.requirement.quoteId,
      terms: purpose.terms === undefined ? null : termsText(purpose.terms),
      cap: purpose.terms?.amount ?? paid.requirement.amount,
    }
    if (found !== undefined) return { ...found, ...use, state: 'claimed' }
    return {
      ...use,
      id: `pay_${this.ports.world.randomBytes(16).toString('hex')}`,
      identity: paid.identity,
      amount: payment.payload.value,
      transfer: isNative(payment)
        ? transferName(payment.network, payment.payload.transaction, bondOf(payment))
        : null,
      valid_before: isNative(payment) ? payment.payload.blockTime : payment.payload.validBefore,
      payment: paymentText(payment),
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
  return offer.deliver(offer.pricesNow(), undefined)
}

function settledBefore(claim: Claim | undefined): Settled | undefined {
  if (claim === undefined || claim.settled_by === null) return undefined
  return { claim, transaction: claim.settled_by, isFresh: false }
}
