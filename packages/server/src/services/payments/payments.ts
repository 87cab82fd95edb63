import { requirePresent } from '../../base/assert.ts'
import { formatUnits } from '../../base/format-usd.ts'
import { Singleflight } from '../../base/singleflight.ts'
import { runWithoutCommitNote } from '../../chain/commit-notes.ts'
import type { HttpReply } from '../../http/reply.ts'
import { type ChannelPayment, isChannelPayment } from '../../x402/channels/channel-payment.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import { isNative, type Payment } from '../../x402/protocol.ts'
import { isUpto } from '../../x402/upto/upto.ts'
import type { Asking } from '../access/access.ts'
import { type BalancePayer, findBalancePayer } from './budgets/balance-payer.ts'
import { BalancePayments } from './budgets/balance-payments.ts'
import { ChannelPayments } from './channels/channel-payments.ts'
import { makeChannelReply } from './channels/channel-reply.ts'
import type { Repeatable } from './claims/claim-finder.ts'
import { listOpenPayments } from './claims/claim-lists.ts'
import { takeStep } from './claims/claim-steps.ts'
import { type Claim, findClaim } from './claims/claim-store.ts'
import { decodeClaimTerms } from './claims/claim-terms.ts'
import { Claims, toFunded } from './claims/claims.ts'
import { NamedPayments } from './claims/named-payments.ts'
import { isUntried } from './claims/payment-states.ts'
import { formatPaymentProof, getPaymentIdentity, isRepetition } from './claims/stored-payment.ts'
import { Deliverer } from './deliverer.ts'
import { findPromiseEnd } from './deposits/find-promise-end.ts'
import { refuseHeld } from './deposits/held-money.ts'
import { DirectPayees, isToOtherAddress } from './direct/direct-payees.ts'
import { DirectPayments } from './direct/direct-payments.ts'
import type { PaymentMethod, PaymentPorts } from './payment-ports.ts'
import {
  canUseBalance,
  findPresentedPayment,
  hashPaidRequest,
  hashSender,
  isByPayer,
  matchPayment,
} from './presented/presented-payment.ts'
import {
  computeCap,
  type Delivery,
  depositOperation,
  isFreeNow,
  type MatchedPayment,
  makeFreeDelivery,
  makePurchase,
  makePurpose,
  makeSettler,
  type Offer,
  type Paid,
  type UnmatchedTransfer,
} from './purchase.ts'
import { AskedTerms } from './quotes/asked-terms.ts'
import {
  askForPayment,
  makeAskedRequirement,
  makeRequirement,
  type QuotePorts,
} from './quotes/quoting.ts'
import { type BoughtReply, makeFreeReply, toHttpReply } from './replies/bought-reply.ts'
import { takeTurn } from './take-turn.ts'
import { UptoPayments } from './upto/upto-payments.ts'

/** The outcome of a request that was brought with a payment. */
type SaleOutcome =
  | { readonly bought: BoughtReply }
  | { readonly free: Delivery }
  | { readonly refusal: string }
  | { readonly unmatched: UnmatchedTransfer }

/**
 * Takes payments through their states, each durable before the next; payment-states.ts decides every step. One
 * payment is charged once and buys exactly the request it was made for; the same request with the same payment gets
 * the same answer again. An unknown outcome is never guessed.
 *
 * A paid read on its way, for example `POST /list` of 3 rows at 1 each, asked for at most 10:
 * 1. `sell` finds no payment in it: `askForPayment` (`quotes/quoting.ts`) answers 402 with a quote for the cap, 10.
 * 2. It comes again with a payment. Before the operation runs, `findEarlierReply` (`replies/earlier-reply.ts`) looks for the
 *    reply that this payment bought: there is none yet. `presented/presented-payment.ts` reads the payment; if it is new,
 *    `quotes/quoting.ts` resolves its terms by its quote.
 * 3. `Claims.fund` has the payment's settler (`makeSettler`, `purchase.ts`) verify its signature, binds it to this request in a
 *    row, the claim (state `claimed`), and has the settler move its money. A settler asks `x402/evm-facilitator.ts`, which
 *    sends the payment by `x402/sender.ts` and decides by its receipt whether it is settled.
 * 4. `Deliverer.deliver` makes the answer, keeps it in a row with what its sale will say (`make-sale.ts`; `answered`), and
 *    only then charges 3: deposit (`deposits/claim-deposit.ts`) and sale go into the ledger as one group of entries.
 *    `sale-upkeep.ts` marks the claim as `delivered` soon after.
 * 5. `toHttpReply` makes the reply of the kept answer, with the id of its receipt. Asked once more, `findEarlierReply` gives
 *    the same bytes.
 * 6. `claims/reconciler.ts` brings to its end what was cut off between any two of these.
 * 7. `operations/payments/get-receipt.ts` makes the receipt from the ledger's entry when it is asked for.
 *
 * Where the payer's balance covers the cap, the answer is made before step 3 (`claims/balance-claims.ts`); then claim, kept
 * answer and sale are one commit (`accounts/sale-desk.ts`), and no transaction is sent.
 *
 * Where the seller's own wallet is paid (`direct/direct-payments.ts`), the money moves after step 4: from there nothing
 * could be given back if the answer failed.
 */
export class Payments {
  readonly ports: PaymentPorts
  /** Work on the payments that are under way in this process: on each of them one at a time. */
  readonly turns = new Singleflight()
  readonly #claims: Claims
  readonly #deliverer: Deliverer
  readonly #named: NamedPayments
  readonly #quotes: QuotePorts
  readonly #channels: ChannelPayments
  readonly #balances: BalancePayments
  readonly #uptos: UptoPayments
  readonly #payees: DirectPayees
  readonly #directs: DirectPayments

  constructor(ports: PaymentPorts) {
    this.ports = ports
    this.#quotes = { ...ports, askedTerms: new AskedTerms(ports.world.now()) }
    this.#claims = new Claims(ports)
    this.#deliverer = new Deliverer(ports)
    this.#named = new NamedPayments(this.#quotes, {
      deliverer: this.#deliverer,
      payments: this.turns,
    })
    const parts = { ports, claims: this.#claims, deliverer: this.#deliverer }
    this.#balances = new BalancePayments(parts)
    this.#uptos = new UptoPayments(parts)
    this.#payees = new DirectPayees(ports)
    this.#directs = new DirectPayments({ ...parts, payees: this.#payees })
    this.#channels = new ChannelPayments({
      ports: this.#quotes,
      claims: this.#claims,
      deliverer: this.#deliverer,
      payments: this.turns,
    })
  }

  /**
   * Sells an offer: answers 402 without a payment, and with the bought reply to a good one; an offer that costs
   * nothing is delivered at once.
   */
  async sell(asking: Asking, offer: Offer): Promise<HttpReply> {
    const { requestInfo } = asking
    const hash = hashPaidRequest(requestInfo)
    const usesBalance = canUseBalance(requestInfo)
    // Nobody is asked for a payment of zero, whatever was wrong with the payment sent.
    const ask = async (error: string) =>
      computeCap(offer) === 0n
        ? makeFreeReply(this.ports, await makeFreeDelivery(offer))
        : askForPayment(this.#askingPorts, { requestInfo, offer, hash, error })
    const presented = findPresentedPayment(asking)
    if (presented !== undefined && isChannelPayment(presented))
      return this.#sellByChannel(asking, offer, presented)
    const [first] = this.ports.methods
    const mayUseBalance = presented === undefined && usesBalance && offer.onlyByPayment !== true
    const by = mayUseBalance ? await findBalancePayer(this.ports, asking) : undefined
    if (by !== undefined && first !== undefined)
      return 'refusal' in by
        ? ask(by.refusal)
        : this.#sellFromBalance(offer, { ...by, network: first.network, hash }, ask)
    const matched = presented && (await matchPayment(this.#quotes, offer, { presented, hash }))
    if (matched === 'nothing') return makeFreeReply(this.ports, await makeFreeDelivery(offer))
    if (matched === undefined || 'refusal' in matched) {
      offer.refuseUndeliverable?.()
      return ask(matched?.refusal ?? 'Payment is required')
    }
    if ('unmatched' in matched) return ask(await this.#keepUnmatched(matched.unmatched))
    const { payment, method } = matched
    const identity = getPaymentIdentity(method.network, payment)
    const isPayer = isByPayer(asking, payment)
    // Requests share one outcome if they are the same, and pay alike.
    const ways = [...(isPayer ? ['payer'] : []), ...(usesBalance ? ['balance'] : [])]
    const task = [hash, formatPaymentProof(payment), ...ways].join(' ')
    // Payments of one name take turns; most have none.
    const outcome = await this.#named.runInTurn(payment, `${identity} ${task}`, () =>
      takeTurn(this.turns, { identity, task }, () =>
        this.#buy(offer, { ...matched, hash, identity, isPayer, usesBalance }),
      ),
    )
    this.ports.world.failpoint?.('payment.beforeReply')
    if ('refusal' in outcome) return ask(outcome.refusal)
    if ('unmatched' in outcome) return ask(await this.#keepUnmatched(outcome.unmatched))
    return 'free' in outcome
      ? makeFreeReply(this.ports, outcome.free)
      : toHttpReply(this.ports, { payment, network: method.network }, outcome.bought)
  }

  /** Sells an offer to who pays out of a balance in place of a payment. */
  async #sellFromBalance(
    offer: Offer,
    by: BalancePayer & { readonly network: PaymentNetwork; readonly hash: string },
    ask: (error: string) => Promise<HttpReply>,
  ): Promise<HttpReply> {
    const { payment, network } = by
    // Sign-ins of one name share no refusal: one may be for more than another, or used for something else.
    const task = [by.hash, by.signedIn?.most ?? '', by.signedIn?.isUsed ?? ''].join(' ')
    const { identity } = by
    const outcome = await takeTurn(this.turns, { identity, task }, () =>
      this.#balances.take(offer, by),
    )
    this.ports.world.failpoint?.('payment.beforeReply')
    if ('refusal' in outcome) return ask(outcome.refusal)
    return 'free' in outcome
      ? makeFreeReply(this.ports, outcome.free)
      : toHttpReply(this.ports, { payment, network }, outcome.bought)
  }

  /** Sells an offer for a voucher of a payment channel. */
  async #sellByChannel(asking: Asking, offer: Offer, payment: ChannelPayment): Promise<HttpReply> {
    const { requestInfo } = asking
    const hash = hashPaidRequest(requestInfo)
    const brought = { payment, hash, ...identifySender(asking, payment) }
    const outcome =
      offer.operation === depositOperation
        ? { refusal: 'A deposit is made by a payment of its own' }
        : await runWithoutCommitNote(() => this.#channels.take(offer, brought))
    this.ports.world.failpoint?.('payment.beforeReply')
    return makeChannelReply(this.ports, outcome, ({ error, correction }) =>
      computeCap(offer) === 0n
        ? makeFreeDelivery(offer).then((delivery) => makeFreeReply(this.ports, delivery))
        : askForPayment(this.#askingPorts, {
            ...{ requestInfo, offer, hash, error },
            ...(correction && { correction }),
          }),
    )
  }

  /** Finds the reply that this very request bought with this very voucher, for as long as no other one follows it. */
  async findChannelReply(asking: Asking, payment: ChannelPayment): Promise<HttpReply | undefined> {
    const hash = hashPaidRequest(asking.requestInfo)
    const brought = { payment, hash, ...identifySender(asking, payment) }
    const found = await this.#channels.findBoughtReply(brought)
    return found && makeChannelReply(this.ports, found)
  }

  /**
   * Finds the sale of this payment for this very request while its reply is kept. Anyone who repeats both exactly
   * gets it, and so does the payer, whatever has become of the offer and its price since.
   */
  findBoughtReply(paid: Repeatable): Promise<BoughtReply | undefined> {
    const { identity, requestHash: hash, payment, isPayer } = paid
    const task = `again ${hash} ${isPayer ? 'payer' : formatPaymentProof(payment)}`
    return takeTurn(this.turns, { identity, task }, async () => {
      const found = await this.#claims.finder.lookUpFirst(identity)
      if (found === undefined) return this.#named.findSoldReply(paid)
      if (found.request_hash !== hash) return undefined
      if (!isPayer && !isRepetition(found.payment, paid)) return undefined
      const funded = this.#claims.findFunded(found)
      return funded && this.#deliverer.findReplyAndCharge(funded)
    })
  }

  /** Settles a payment for nothing but the payer's balance; repeated, it answers the same. 409 where its money is held. */
  async deposit(
    payment: Payment,
    method: PaymentMethod,
  ): Promise<
    { readonly paymentId: string; readonly transaction: string } | { readonly refusal: string }
  > {
    const identity = getPaymentIdentity(method.network, payment)
    const quoteId = isNative(payment) ? (payment.quoteId ?? '') : ''
    const terms = { amount: payment.payload.value, quoteId, expiresAt: 0 }
    const requirement = makeRequirement(method.network, terms)
    const paid: Paid = {
      payment,
      requirement,
      settler: makeSettler(this.ports, method, { payment, requirement }),
      identity,
      requestHash: depositOperation,
      isPayer: false,
    }
    const purpose = { app: 'system', operation: depositOperation }
    const task = `${depositOperation} ${formatPaymentProof(payment)}`
    return takeTurn(this.turns, { identity, task }, async () => {
      const found = await this.#claims.finder.findOrRefuse(paid)
      const known = this.#claims.findFunded(found)
      const asked = known
        ? { funded: known }
        : await this.#claims.claimAndSettle(paid, purpose, found)
      const funding = 'isUsedBefore' in asked ? await this.#claims.adopt(paid, purpose) : asked
      if ('refusal' in funding) return funding
      const { funded } = funding
      if (funded.claim.state !== 'deposited') await this.#deliverer.deposits.book(funded)
      await refuseHeld(this.ports, funded.claim)
      const transaction = requirePresent(funded.transaction, 'the transaction of a deposit')
      return { paymentId: funded.claim.id, transaction }
    })
  }

  /**
   * Finds the outcome of a payment whose request went away: money that arrived is booked and waits for the request to
   * be sent again, what was held and not used is given back, and an answer that is kept is charged for; the buyer can
   * still fetch it.
   */
  async reconcile({ id, identity }: Claim): Promise<void> {
    if (this.turns.has(identity)) return
    await this.turns.run(identity, 'reconcile', async () => {
      // Its request may have finished since it was listed.
      const claim = await findClaim(this.ports.database, { id })
      if (claim === undefined) return
      const { effects } = takeStep(this.ports, claim.state, 'revisited')
      if (effects.includes('check ledger') && (await this.#deliverer.syncWithLedger(claim))) return
      const ending = { waitsForRetry: true }
      if (effects.includes('end hold') && !(await this.#deliverer.deposits.endHold(claim, ending)))
        await this.#deliverer.bookWritten(claim)
      if (effects.includes('book sale'))
        await this.#deliverer.findReplyAndCharge(
          requirePresent(toFunded(claim), 'a claim with an answer'),
        )
      if (!effects.includes('look up')) return
      const funded = await this.#claims.lookUp(claim)
      if (funded?.claim.state === 'ready') await this.#deliverer.findReplyAndCharge(funded)
      else if (funded !== undefined) await this.#deliverer.deposits.book(funded, ending)
    })
  }

  /** Payments to an application that were claimed since then and whose money is not known to be here; the first hundred. */
  listOpenPayments(app: string, sinceMs: number): Promise<string[]> {
    return listOpenPayments(this.ports.database, app, sinceMs)
  }

  /** Payments that this process is working on. */
  countInFlight(): number {
    return this.turns.size
  }

  /** Starts the periodic work; the returned function ends it. */
  startUpkeep(): () => Promise<void> {
    return this.#deliverer.startUpkeep()
  }

  /** Books money that buys nothing as the payer's balance, and says so. Nothing that the request asks for is done by it. */
  async #keepUnmatched({ payment, method, why }: UnmatchedTransfer): Promise<string> {
    const kept = await runWithoutCommitNote(() => this.deposit(payment, method))
    if ('refusal' in kept) return kept.refusal
    const { value, from } = payment.payload
    return `The payment was refused: ${why}; its ${formatUnits(value)} are on the balance of ${from} (payment ${kept.paymentId})`
  }

  get #askingPorts() {
    return { ...this.#quotes, payees: this.#payees }
  }

  async #buy(
    offer: Offer,
    brought: MatchedPayment & {
      hash: string
      identity: string
      isPayer: boolean
      usesBalance: boolean
    },
  ): Promise<SaleOutcome> {
    const { payment, method, hash, identity, isPayer } = brought
    if (isUpto(payment))
      return runWithoutCommitNote(() => this.#uptos.take(offer, { ...brought, payment }))
    const paid = { identity, requestHash: hash, payment, isPayer }
    const found = await this.#claims.finder.findOrRefuse(paid)
    // A failed try keeps no promise of earlier prices.
    const isNew = found === undefined || isUntried(found.state)
    if ((isNew || found.state === 'deposited') && !isNative(payment)) {
      const isKnown = found !== undefined
      const named = { identity, hash, isKnown, isDirect: brought.isDirect === true }
      const earlier = await this.#named.findReplyByName(payment, method, named)
      if (earlier !== undefined) return { bought: earlier }
    }
    // A payment that is claimed was asked for by a 402, even if its quote is forgotten.
    const wasAsked = brought.isDirect === true || found !== undefined
    if (wasAsked && isToOtherAddress(payment, method.network))
      return runWithoutCommitNote(() => this.#directs.take(offer, { ...brought, payment }))
    const isOver = found && (await findPromiseEnd(this.ports, offer, found))
    if (isOver !== undefined) return { refusal: isOver }
    // A transfer has been made already, and is worth what its quote says.
    if (isNew && !isNative(payment) && isFreeNow(offer))
      return { free: await makeFreeDelivery(offer) }
    const terms = isNew ? await brought.resolveTerms() : decodeClaimTerms(found)
    if (typeof terms === 'string') return { refusal: terms }
    // The amount of a payment under way was fixed when it was claimed.
    const requirement = isNew
      ? makeAskedRequirement(method.network, terms)
      : makeRequirement(method.network, { ...terms, amount: found.amount })
    const purchase = makePurchase(this.ports, brought, { offer, terms, requirement })
    // A payment under way is brought to its end; money that has moved becomes the payer's balance.
    if (isNew && !isNative(payment)) offer.refuseUndeliverable?.()
    const purpose = makePurpose(offer, terms)
    const isDeposit = offer.operation === depositOperation
    const usesBalance = isNew && brought.usesBalance && !isNative(payment) && !isDeposit
    // A repeated request is recognized by its payment, and needs no note beside its entries.
    return runWithoutCommitNote(async () => {
      const plan = this.#deliverer.planAnswer(purchase)
      const funding = await this.#claims.fund(purchase, purpose, { found, usesBalance, plan })
      if ('refusal' in funding) return funding
      if ('isUsedBefore' in funding)
        return { unmatched: { payment, method, why: 'it was used before it was sent here' } }
      return { bought: await this.#deliverer.deliver(purchase, funding.funded) }
    })
  }
}

/** Tells who sends a payment by a channel. */
function identifySender(
  asking: Asking,
  { voucher, config }: ChannelPayment,
): { readonly origin: string; readonly isPayer: boolean } {
  const { caller } = asking
  const isPayer = caller.kind === 'wallet' && caller.address === config.payer
  return { origin: hashSender(asking, voucher.channelId), isPayer }
}
