import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { Settlement } from '../../x402/facilitator.ts'
import { isNative, type Payment } from '../../x402/protocol.ts'
import { AskedTerms } from './asked-terms.ts'
import {
  type Claim,
  findClaim,
  insertClaim,
  listOpenPayments,
  reopenClaim,
  setFailed,
  takeTransaction,
} from './claim-store.ts'
import { Deliverer, type Settled } from './deliverer.ts'
import type { Delivery, Offer } from './offer.ts'
import { makeFreeReply, makePaidReply, type Sold } from './paid-reply.ts'
import { type ParsedPayment, parsePayment, type UnmatchedTransfer } from './parse-payment.ts'
import {
  formatRefusal,
  makePendingFault,
  makeUnconfirmedFault,
  makeUsedFault,
} from './payment-faults.ts'
import {
  type Asking,
  findPresentedPayment,
  hashPaidRequest,
  isByPayer,
} from './presented-payment.ts'
import {
  depositPurpose,
  type Paid,
  type PaymentMethod,
  type PaymentPorts,
  type Purchase,
} from './purchase.ts'
import {
  askForPayment,
  computeCap,
  isFreeNow,
  makeAskedRequirement,
  makeRequirement,
  type QuotePorts,
} from './quoting.ts'
import { makeSettler } from './settler.ts'
import { Singleflight } from './singleflight.ts'
import {
  decodeStoredPayment,
  encodeStoredPayment,
  formatPaymentProof,
  formatTransferName,
  getPayerBinding,
  getPaymentIdentity,
  isRepetition,
} from './stored-payment.ts'
import { decodeClaimTerms, encodeTerms, type Terms } from './terms.ts'

type Purpose = {
  readonly app: string
  readonly operation: string
  /** Undefined for a mere deposit. */
  readonly terms?: Terms
}
type Repeatable = Pick<Paid, 'identity' | 'requestHash' | 'payment' | 'isPayer'>
type Bought =
  | { readonly sold: Sold }
  | { readonly free: Delivery }
  | { readonly refusal: string }
  | { readonly unmatched: UnmatchedTransfer }

/**
 * The payment states, each durable before the next: quoted (a MAC, no row) -> claimed -> settled -> delivered. One
 * payment is charged once and buys exactly the request it was made for; the same request with the same payment gets
 * the same answer again. An unknown outcome is never guessed.
 */
export class Payments {
  readonly ports: PaymentPorts
  readonly #deliverer: Deliverer
  readonly #singleflight = new Singleflight()
  readonly #quotes: QuotePorts

  constructor(ports: PaymentPorts) {
    this.ports = ports
    this.#quotes = { ...ports, asked: new AskedTerms(ports.world.now()) }
    this.#deliverer = new Deliverer(ports)
  }

  /**
   * Sells an offer: answers 402 without a payment, and with the bought reply to a good one; an offer that costs
   * nothing is delivered at once.
   */
  async sell(asking: Asking, offer: Offer): Promise<HttpReply> {
    const { requestInfo } = asking
    const hash = hashPaidRequest(requestInfo)
    // Nobody is asked for a payment of zero, whatever was wrong with the payment sent.
    const ask = async (error: string) =>
      computeCap(offer) === 0n
        ? makeFreeReply(await deliverFree(offer))
        : askForPayment(this.#quotes, { requestInfo, offer, hash, error })
    const presented = findPresentedPayment(asking)
    const parsed = presented && (await parsePayment(this.#quotes, offer, { presented, hash }))
    if (parsed === 'nothing') return makeFreeReply(await deliverFree(offer))
    if (parsed === undefined || 'refusal' in parsed) {
      offer.admit?.()
      return ask(parsed?.refusal ?? 'Payment is required')
    }
    if ('unmatched' in parsed) return ask(await this.#keepUnmatched(parsed.unmatched))
    const { payment, method } = parsed
    const identity = getPaymentIdentity(method.network, payment)
    const isPayer = isByPayer(asking, payment)
    const purpose = `${hash} ${formatPaymentProof(payment)}${isPayer ? ' payer' : ''}`
    const bought = await this.#singleflight.run(identity, purpose, () =>
      this.#buy(offer, { ...parsed, hash, identity, isPayer }),
    )
    this.ports.world.failpoint?.('payment.beforeReply')
    if ('refusal' in bought) return ask(bought.refusal)
    if ('unmatched' in bought) return ask(await this.#keepUnmatched(bought.unmatched))
    return 'free' in bought
      ? makeFreeReply(bought.free)
      : makePaidReply(payment, method.network, bought.sold)
  }

  /**
   * Finds the sale of this payment for this very request while its reply is kept. Anyone who repeats both exactly
   * gets it, and so does the payer, whatever has become of the offer and its price since.
   */
  findEarlierSale(paid: Repeatable): Promise<Sold | undefined> {
    const { identity, requestHash: hash, payment, isPayer } = paid
    const purpose = `again ${hash} ${isPayer ? 'payer' : formatPaymentProof(payment)}`
    return this.#singleflight.run(identity, purpose, async () => {
      const found = await findClaim(this.ports.database, { identity })
      if (found === undefined || found.request_hash !== hash) return undefined
      if (!isPayer && !isRepetition(found.payment, paid)) return undefined
      const settled = findSettled(found)
      return settled && this.#deliverer.findEarlier(settled)
    })
  }

  /** Settles a payment for nothing but the payer's balance; repeated, it answers the same. */
  async deposit(
    payment: Payment,
    method: PaymentMethod,
  ): Promise<{ paymentId: string; transaction: string } | string> {
    const identity = getPaymentIdentity(method.network, payment)
    const quoteId = isNative(payment) ? (payment.quoteId ?? '') : ''
    const terms = { amount: payment.payload.value, quoteId, expiresAt: 0 }
    const requirement = makeRequirement(method.network, terms)
    const paid: Paid = {
      payment,
      requirement,
      settler: makeSettler(this.ports, method, { payment, requirement }),
      identity,
      requestHash: depositPurpose,
      isPayer: false,
    }
    const purpose = { app: 'system', operation: depositPurpose }
    return this.#singleflight.run(
      identity,
      `${depositPurpose} ${formatPaymentProof(payment)}`,
      async () => {
        const found = await this.#findClaim(paid)
        const settled =
          findSettled(found) ??
          (await this.#settle(paid, purpose, found)) ??
          (await this.#adopt(paid, purpose))
        if (typeof settled === 'string') return settled
        if (settled.claim.state !== 'settled') await this.#deliverer.bookDeposit(settled)
        return { paymentId: settled.claim.id, transaction: settled.transaction }
      },
    )
  }

  /**
   * Finds the outcome of a payment whose request went away, and books it if the money arrived; the buyer can still
   * fetch the answer.
   */
  async reconcile({ id, identity }: Claim): Promise<void> {
    if (this.#singleflight.has(identity)) return
    await this.#singleflight.run(identity, 'reconcile', async () => {
      // Its request may have finished since it was listed.
      const claim = await findClaim(this.ports.database, { id })
      if (claim === undefined || claim.state === 'settled' || claim.state === 'delivered') return
      if (await this.#deliverer.settleByLedger(claim)) return
      const settled = findSettled(claim) ?? (await this.#lookUp(claim))
      if (settled !== undefined) await this.#deliverer.bookDeposit(settled)
    })
  }

  /** Payments to an application that were claimed since then and whose money is not known to be here; the first hundred. */
  listOpenPayments(app: string, sinceMs: number): Promise<string[]> {
    return listOpenPayments(this.ports.database, app, sinceMs)
  }

  /** Payments that this process is working on. */
  countInFlight(): number {
    return this.#singleflight.size
  }

  /** Starts the periodic work; the returned function ends it. */
  startUpkeep(): () => Promise<void> {
    return this.#deliverer.startUpkeep()
  }

  /** Books money that buys nothing as the payer's balance, and says so. */
  async #keepUnmatched({ payment, method, why }: UnmatchedTransfer): Promise<string> {
    const kept = await this.deposit(payment, method)
    if (typeof kept === 'string') return kept
    const { value, from } = payment.payload
    return `The payment was refused: ${why}; its ${value} atomic units are on the balance of ${from} (payment ${kept.paymentId})`
  }

  async #buy(
    offer: Offer,
    bought: ParsedPayment & { hash: string; identity: string; isPayer: boolean },
  ): Promise<Bought> {
    const { payment, method, hash, identity, isPayer } = bought
    const found = await this.#findClaim({ identity, requestHash: hash, payment, isPayer })
    // A failed try keeps no promise of earlier prices.
    const isOpen = found === undefined || found.state === 'failed'
    // A transfer has been made already, and is worth what its quote says.
    if (isOpen && !isNative(payment) && isFreeNow(offer)) return { free: await deliverFree(offer) }
    const terms = isOpen ? await bought.terms() : decodeClaimTerms(found)
    if (typeof terms === 'string') return { refusal: terms }
    // The amount of a payment under way was fixed when it was claimed.
    const requirement = isOpen
      ? makeAskedRequirement(method.network, terms)
      : makeRequirement(method.network, { ...terms, amount: found.amount })
    const purchase: Purchase = {
      offer,
      payment,
      requirement,
      settler: makeSettler(this.ports, method, { payment, requirement }),
      requestHash: hash,
      identity,
      isPayer,
      terms,
    }
    // A payment under way is brought to its end; money that has moved becomes the payer's balance.
    if (isOpen && !isNative(payment)) offer.admit?.()
    const app = offer.sellerUnder(terms.prices)
    const purpose = { app, operation: offer.operation, terms }
    const settled = findSettled(found) ?? (await this.#settle(purchase, purpose, found))
    if (settled === undefined)
      return { unmatched: { payment, method, why: 'it was used before it was sent here' } }
    if (typeof settled === 'string') return { refusal: settled }
    return { sold: await this.#deliverer.deliver(purchase, settled) }
  }

  /**
   * The payment's claim; 409 where it was made for another request, or is not repeated exactly. What could not buy its
   * request may become a deposit: its money may be here after all, and nobody else asks for it.
   */
  async #findClaim(paid: Repeatable): Promise<Claim | undefined> {
    const found = await findClaim(this.ports.database, { identity: paid.identity })
    if (found === undefined) return undefined
    const isTakenOver = found.state === 'failed' && paid.requestHash === depositPurpose
    if (found.request_hash !== paid.requestHash && !isTakenOver) throw makeUsedFault(found)
    if (!isRepetition(found.payment, paid)) {
      throw new Fault('PAYMENT_ALREADY_USED', {
        message:
          'This payment was made before; repeat it exactly as it was sent, one without a quoteId also from the same address, with the same key, or with a wallet signature of the payer.',
      })
    }
    return found
  }

  /**
   * Claims the payment for its purpose, durably, and only then lets money move; returns the reason where it did
   * not. Undefined where the payment was used before it was claimed: its sender may have read it from the chain.
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
      if (!verdict.ok && !isUsed) return formatRefusal(verdict)
      if (isUsed && found === undefined) return this.#refuseClaimed(paid)
      world.failpoint?.('payment.verified')
    }
    const claim = await this.#holdClaim(paid, purpose, found)
    world.failpoint?.('payment.claimed')
    // Claimed in an earlier try, it may have been handed in by a third party; sent again it could only fail.
    const outcome = isUsed ? await settler.lookup(claim.id) : await settler.settle(claim.id)
    world.failpoint?.('payment.settled')
    if (outcome.state === 'pending') {
      // A payer that never comes back must not leave the claim open: an authorization may be valid for ever.
      if (outcome.isUnsent === true)
        await this.#conclude(claim, { state: 'failed', reason: outcome.reason, final: false })
      throw makePendingFault(claim.id, outcome.reason)
    }
    const transaction = await this.#conclude(claim, outcome)
    if (transaction !== undefined) return { claim, transaction, isFresh: found === undefined }
    if (outcome.state === 'settled') throw new Fault('PAYMENT_ALREADY_USED')
    return `The payment was not settled: ${outcome.reason}`
  }

  /** Another process may have claimed and used the payment after this one looked. */
  async #refuseClaimed(paid: Paid): Promise<undefined> {
    const other = await this.#findClaim(paid)
    if (other !== undefined) throw makePendingFault(other.id, 'another process settled it')
  }

  /** Claims a payment whose money came without us, once the chain shows that it did; otherwise returns the reason. */
  async #adopt(paid: Paid, purpose: Purpose): Promise<Settled | string> {
    const use = await paid.settler.findUse()
    if (use.state === 'pending') throw makeUnconfirmedFault(use.transaction)
    if (use.state === 'failed')
      return `The payment was refused: it was used before it was sent here (${use.reason})`
    const claim = await this.#holdClaim(paid, purpose, undefined)
    return { claim, transaction: use.transaction, isFresh: true }
  }

  /** The claim, made or opened again. */
  async #holdClaim(paid: Paid, purpose: Purpose, found: Claim | undefined): Promise<Claim> {
    const { database } = this.ports
    const claim = this.#makeClaim(paid, purpose, found)
    const isOurs =
      found === undefined
        ? await insertClaim(database, claim)
        : found.state !== 'failed' || (await reopenClaim(database, claim))
    if (isOurs) {
      this.ports.onState?.('claimed')
      return claim
    }
    // Another process was first. With what it does the same request may go on; any other is refused.
    const other = await this.#findClaim(paid)
    if (other === undefined) throw new Fault('PAYMENT_ALREADY_USED')
    throw makePendingFault(other.id, 'another process settles it')
  }

  async #lookUp(claim: Claim): Promise<Settled | undefined> {
    const payment = decodeStoredPayment(claim.payment)
    const method = this.ports.methods.find(({ network }) => network.id === payment.network)
    if (method === undefined) return undefined
    const terms = { amount: claim.amount, quoteId: claim.quote_id ?? '', expiresAt: 0 }
    const requirement = makeRequirement(method.network, terms)
    const outcome = await makeSettler(this.ports, method, { payment, requirement }).lookup(claim.id)
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

  #makeClaim(paid: Paid, purpose: Purpose, found: Claim | undefined): Claim {
    const { payment } = paid
    const use = {
      request_hash: paid.requestHash,
      app: purpose.app,
      operation: purpose.operation,
      quote_id: paid.requirement.quoteId === '' ? null : paid.requirement.quoteId,
      terms: purpose.terms === undefined ? null : encodeTerms(purpose.terms),
      cap: purpose.terms?.amount ?? paid.requirement.amount,
    }
    if (found !== undefined) return { ...found, ...use, state: 'claimed' }
    return {
      ...use,
      id: `pay_${this.ports.world.randomBytes(16).toString('hex')}`,
      identity: paid.identity,
      amount: payment.payload.value,
      transfer: isNative(payment)
        ? formatTransferName(payment.network, payment.payload.transaction, getPayerBinding(payment))
        : null,
      valid_before: isNative(payment) ? payment.payload.blockTime : payment.payload.validBefore,
      payment: encodeStoredPayment(payment),
      state: 'claimed',
      reason: null,
      settled_by: null,
      write_after: null,
      created_at_ms: BigInt(this.ports.world.now()),
    }
  }
}

/** Delivers, without a payment, an offer that costs nothing. */
function deliverFree(offer: Offer): Promise<Delivery> {
  return offer.deliver(offer.pricesNow(), undefined)
}

function findSettled(claim: Claim | undefined): Settled | undefined {
  if (claim === undefined || claim.settled_by === null) return undefined
  return { claim, transaction: claim.settled_by, isFresh: false }
}
