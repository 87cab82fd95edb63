import type { ReceiptFacts } from '@tollbase/verify/receipt'
import type { SoldUse } from '@tollbase/verify/sale-details'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { runWithCommitNoteAgain } from '../../chain/commit-notes.ts'
import type { Queryable } from '../../database/database.ts'
import { Gatherer } from '../../database/gatherer.ts'
import { computeDue } from '../../model/compute-cost.ts'
import { isMetered } from '../../model/compute-metered-cost.ts'
import { takeFromAccount } from './accounts/account-lock.ts'
import { noteCheapSale, refuseCheapSale } from './accounts/cheap-sales.ts'
import { balanceNetwork } from './budgets/paying-key.ts'
import { readVoucher } from './channels/voucher-payment.ts'
import { applyEvent, keepAnswer } from './claims/claim-steps.ts'
import { type Claim, findClaim, getBuyerAccount, setWriteAfter } from './claims/claim-store.ts'
import { decodeClaimTerms } from './claims/claim-terms.ts'
import {
  countBytes,
  findReply,
  type KeepOrder,
  type KeptReply,
  keepReplies,
  keepReply,
  requireOwed,
} from './claims/reply-store.ts'
import { decodeStoredPayment } from './claims/stored-payment.ts'
import { describeDeposit, isNamedDeposit, makeClaimDeposit } from './deposits/claim-deposit.ts'
import { DepositBook } from './deposits/deposit-book.ts'
import {
  fillTransaction,
  makeKeptReply,
  type SalePayment,
  toReplyToKeep,
  toSalePayment,
} from './make-sale.ts'
import { computeMeteredSale, type MeteredSale } from './meters/meter.ts'
import { putUse } from './meters/use-store.ts'
import { makePendingFault, toPaymentFault } from './payment-faults.ts'
import type { PaymentPorts } from './payment-ports.ts'
import {
  type AnswerPlan,
  canAnswerFirst,
  checkOffer,
  type Delivery,
  type FundedClaim,
  type PlannedAnswer,
  type Purchase,
  type Terms,
} from './purchase.ts'
import { decodeWriteForm, encodeWriteForm, type WriteForm } from './quotes/write-answer-form.ts'
import { type BoughtReply, toBoughtReply } from './replies/bought-reply.ts'
import { SaleUpkeep } from './sale-upkeep.ts'
import { findWritten, makeWriteDelivery } from './write-delivery.ts'

/** Turns money that arrived, or is held, into an answer that has been charged for. */
export class Deliverer {
  readonly deposits: DepositBook
  readonly #ports: PaymentPorts
  readonly #keeping: Gatherer<KeepOrder, KeptReply | undefined>
  readonly #upkeep: SaleUpkeep

  constructor(ports: PaymentPorts) {
    this.#ports = ports
    this.deposits = new DepositBook(ports)
    this.#upkeep = new SaleUpkeep(ports)
    this.#keeping = new Gatherer((orders) => keepReplies(ports.database, orders), countBytes)
  }

  /**
   * Returns what the payment bought: the kept reply where there is one, otherwise one made now, kept, then charged.
   */
  async deliver(purchase: Purchase, funded: FundedClaim): Promise<BoughtReply> {
    const payment = { payment_id: funded.claim.id }
    if (isNamedDeposit(funded.claim)) return this.#deliverDeposit(funded)
    if (funded.kept !== undefined)
      return funded.claim.state === 'sold'
        ? this.#endSale(funded.claim, funded.kept)
        : this.#bookAnswer(funded, funded.kept.keeping)
    const earlier = funded.isFresh ? undefined : await this.findReplyAndCharge(funded)
    if (earlier !== undefined) return earlier
    let delivery: Delivery
    try {
      delivery = await this.#makeDelivery(purchase, funded)
      this.#ports.world.failpoint?.('payment.delivered')
    } catch (error) {
      // Should this fail too, the claim stays open, and reconciliation ends it.
      const isFree = await this.deposits.giveUp(funded).catch(() => false)
      throw toPaymentFault(error, { ...payment, ...(isFree && { charged: '0' }) })
    }
    try {
      return await this.#charge(toSalePayment(purchase), funded, delivery)
    } catch (error) {
      throw toPaymentFault(error, payment)
    }
  }

  /**
   * Plans the answer of a purchase that a balance pays and that may be answered first: it is made before anything is
   * held, so that claim, hold and kept answer are one commit. Undefined where the money must be here before.
   */
  planAnswer(purchase: Purchase): AnswerPlan {
    const { offer, terms } = purchase
    // The use of its buyer before is known for certain once it is held.
    if (!canAnswerFirst(offer) || isMetered(terms.prices)) return undefined
    return async (claim) => {
      try {
        const funded = { claim, transaction: null }
        const delivery = await this.#makeDelivery(purchase, funded)
        this.#ports.world.failpoint?.('payment.delivered')
        const due = computeDue(terms.prices, delivery.sizes)
        const sale = { by: toSalePayment(purchase), funded, delivery }
        const keeping = toReplyToKeep(
          this.#ports.world,
          funded,
          makeKeptReply(this.#ports, sale, { due }),
        )
        return { keeping, charge: due.reduce((sum, cost) => sum + cost, 0n) }
      } catch (error) {
        throw toPaymentFault(error, { charged: '0' })
      }
    }
  }

  /**
   * Finds the kept reply, and charges for it if that was not done; 410 where it was charged and is not kept any
   * more.
   */
  async findReplyAndCharge(funded: FundedClaim): Promise<BoughtReply | undefined> {
    const { claim } = funded
    if (isNamedDeposit(claim)) return this.#deliverDeposit(funded)
    const { database, tenants } = this.#ports
    const { chain, ledger, schema } = tenants.system
    await chain.whenApplied(chain.head().height)
    // In this order: an answer is kept before it is charged for, and another process may do both at this moment.
    const sold = await ledger.findSale(database, schema, claim.id)
    const kept = await findReply(database, claim.id)
    if (kept === undefined) {
      if (sold !== undefined)
        throw new Fault('PAYMENT_REPLY_GONE', { details: { payment_id: claim.id } })
      return undefined
    }
    if (sold !== undefined) {
      this.#upkeep.noteCharged(claim)
      return toBoughtReply(claim, { ...kept, sale: sold.body })
    }
    // Its money is on the payer's balance, and is held before it is charged.
    if (claim.state === 'deposited') return undefined
    // The block that sold it was another process's last one, which this one does not know of yet.
    if (claim.state === 'sold')
      throw makePendingFault(claim.id, 'its sale is not in the tables yet')
    try {
      return await this.#chargeKept(funded, fillTransaction(funded, requireOwed(kept)))
    } catch (error) {
      throw toPaymentFault(error, { payment_id: claim.id })
    }
  }

  /**
   * Answers and charges a write whose buyer has not asked again. The log and the claim have everything that this takes.
   * A later request gets the answer that is kept here.
   */
  async bookWritten({ id }: Pick<Claim, 'id'>): Promise<void> {
    const { database, methods } = this.#ports
    const claim = await findClaim(database, { id })
    // A claim from before forms were kept waits for its buyer.
    if (claim?.state !== 'held' || claim.write_form === null) return
    const form = decodeWriteForm(claim.write_form)
    const payment = decodeStoredPayment(claim.payment)
    const isByKey = payment.network === balanceNetwork
    const method = methods.find(({ network }) => isByKey || network.id === payment.network)
    if (method === undefined) return
    const terms = decodeClaimTerms(claim)
    const delivery = await this.#findEarlierWrite(claim, { form, terms })
    if (delivery === undefined) return
    const funded = { claim, transaction: claim.settled_by, isFresh: false }
    const channel = readVoucher(payment)
    const by = { payment, network: method.network, terms, ...(channel && { channel }) }
    await this.#charge(by, funded, delivery)
  }

  /** Brings an open claim up to what the ledger says; false where this leaves a question open. */
  async syncWithLedger(claim: Claim): Promise<boolean> {
    const { database } = this.#ports
    const { chain, ledger, schema } = this.#ports.tenants.system
    await chain.whenApplied(chain.head().height)
    const deposit = await ledger.findDeposit(database, schema, claim.identity)
    const isSold = (await ledger.findSale(database, schema, claim.id)) !== undefined
    let { state } = claim
    // Both are of one block. A claim that was moved by one after the other would say, if this process died in between, that
    // its money is free on a balance: of a payment to its seller's own wallet it never was.
    if (deposit !== undefined && !(isSold && state === 'answered')) {
      const booked = { event: 'booked', settledBy: deposit.transaction } as const
      state = (await applyEvent(this.#ports, claim, booked)).to
    }
    // A sale alone does not say whether the payment's own money comes.
    if (isSold && state !== 'sold')
      state = (await applyEvent(this.#ports, { ...claim, state }, { event: 'charged' })).to
    // An answer that is kept for a balance is yet to be charged, whatever came on that before.
    return state !== claim.state
  }

  /** Starts the periodic work; the returned function ends it. */
  startUpkeep(): () => Promise<void> {
    return this.#upkeep.start()
  }

  /** A deposit's answer is what the ledger says of it, however often it is asked for. */
  async #deliverDeposit(funded: FundedClaim): Promise<BoughtReply> {
    const { claim, transaction } = funded
    const { database, tenants } = this.#ports
    try {
      if (claim.state !== 'deposited') await this.deposits.book(funded)
      await tenants.system.chain.whenApplied(tenants.system.chain.head().height)
      const body = await describeDeposit(database, tenants.system, claim)
      const sold = { paymentId: claim.id, status: 200, body, contentType: undefined, transaction }
      return { ...sold, charge: 0n, paysForEntry: true, hasReceipt: false }
    } catch (error) {
      throw toPaymentFault(error, { payment_id: claim.id })
    }
  }

  async #makeDelivery(
    { offer, terms }: Purchase,
    { claim, transaction }: Pick<FundedClaim, 'claim' | 'transaction'>,
  ): Promise<Delivery> {
    const { prices } = terms
    const { writes: form } = offer
    const earlier = form && (await this.#findEarlierWrite(claim, { form, terms }))
    if (earlier !== undefined) return earlier
    // The claim may be older than what its request names now.
    const before = offer.meaningBefore?.(claim.id)
    const now = before === undefined ? offer : { ...offer, meaning: before }
    checkOffer(this.#ports, now, terms)
    if (form !== undefined) {
      const { chain } = requirePresent(offer.tenant, 'the application of a write')
      const note = { height: chain.head().height, form: encodeWriteForm(form) }
      if (!(await setWriteAfter(this.#ports.database, claim, note)))
        throw makePendingFault(claim.id, 'another process gave it up')
      this.#ports.world.failpoint?.('payment.writeNoted')
      // Under its Idempotency-Key nobody buys it again by another payment.
      return runWithCommitNoteAgain(() => offer.deliver(prices, claim.id))
    }
    const delivery = await offer.deliver(prices, claim.id)
    if (transaction === null && canAnswerFirst(offer))
      await refuseCheapSale(this.#ports, { claim, terms }, () => delivery.sizes)
    return delivery
  }

  /** Answers what an earlier try of this request has written. */
  async #findEarlierWrite(
    claim: Claim,
    { form, terms }: { readonly form: WriteForm; readonly terms: Terms },
  ): Promise<Delivery | undefined> {
    const written = await findWritten(this.#ports.tenants, claim, form)
    if (written === undefined) return undefined
    const reply = await this.#ports.answerPaidWrite(written.tenant, form, written.group)
    return makeWriteDelivery(reply, form, terms.prices)
  }

  async #charge(by: SalePayment, funded: FundedClaim, delivery: Delivery): Promise<BoughtReply> {
    const { claim } = funded
    const { world, database, tenants } = this.#ports
    const { prices } = by.terms
    const makeReply = (sale: MeteredSale) =>
      makeKeptReply(this.#ports, { by, funded, delivery }, sale)
    if (!isMetered(prices))
      return this.#chargeKept(funded, makeReply({ due: computeDue(prices, delivery.sizes) }))
    const account = getBuyerAccount(claim)
    const metered = { id: claim.id, account, terms: by.terms, nowMs: world.now() }
    const { chain } = tenants.system
    await chain.whenApplied(chain.head().height)
    // Nobody else of this account counts on the same rest of a quota before this answer and its uses are kept.
    const kept = await takeFromAccount(database, account, async (tx) => {
      const { atMs, ...sale } = await computeMeteredSale(tx, metered, delivery.sizes)
      // An earlier try held what another answer would have cost.
      if (sale.due.reduce((sum, cost) => sum + cost, 0n) > claim.cap)
        throw new Fault('OFFER_CHANGED')
      const keep = (order: KeepOrder) => keepReply(tx, order)
      const keeping = await this.#keep(funded, makeReply(sale), { database: tx, keep })
      if (keeping.kept === undefined) return keeping
      const { uses = [] }: { uses?: readonly SoldUse[] } = JSON.parse(keeping.kept.sale)
      await putUse(tx, { id: claim.id, account, atMs, uses })
      return keeping
    })
    return this.#bookKept(funded, kept)
  }

  /** Keeps the answer, where none is kept yet, and books the charge for what is kept. */
  async #chargeKept(funded: FundedClaim, reply: KeptReply): Promise<BoughtReply> {
    const { database } = this.#ports
    const keep = (order: KeepOrder) => this.#keeping.add(order)
    return this.#bookKept(funded, await this.#keep(funded, reply, { database, keep }))
  }

  #keep(
    { claim, transaction }: FundedClaim,
    reply: KeptReply,
    by: {
      readonly database: Queryable
      readonly keep: (order: KeepOrder) => Promise<KeptReply | undefined>
    },
  ) {
    const keeping = toReplyToKeep(this.#ports.world, { transaction }, reply)
    return keepAnswer({ ...this.#ports, ...by }, claim, keeping)
  }

  /** Charges for an answer that was kept when its claim was made. */
  async #bookAnswer(funded: FundedClaim, kept: KeptReply): Promise<BoughtReply> {
    try {
      return await this.#bookKept(funded, { state: funded.claim.state, kept })
    } catch (error) {
      throw toPaymentFault(error, { payment_id: funded.claim.id })
    }
  }

  async #bookKept(
    funded: FundedClaim,
    { state, kept }: Awaited<ReturnType<typeof keepAnswer>>,
  ): Promise<BoughtReply> {
    const { claim } = funded
    const { world } = this.#ports
    world.failpoint?.('payment.replyKept')
    if (kept === undefined)
      return requirePresent(
        await this.findReplyAndCharge(funded),
        'the answer of a delivered payment',
      )
    await this.#book({ ...funded, claim: { ...claim, state } }, kept.sale)
    return this.#noteSale(claim, kept)
  }

  /** Answers what was charged in the commit that kept it. */
  #endSale(claim: Claim, { keeping }: PlannedAnswer): BoughtReply {
    const { world, onState } = this.#ports
    world.failpoint?.('payment.replyKept')
    world.failpoint?.('payment.booked')
    onState?.('delivered')
    this.#upkeep.noteBlockHolds()
    return this.#noteSale(claim, keeping)
  }

  #noteSale(claim: Claim, kept: KeptReply): BoughtReply {
    const bought = toBoughtReply(claim, kept)
    noteCheapSale(this.#ports, claim, bought)
    return bought
  }

  /** Deposit and sale in one group, so one block. The ledger takes each once, should the outcome be in doubt. */
  async #book({ claim, isFresh }: FundedClaim, body: string): Promise<void> {
    const sale = { header: { type: 'ledger' }, body }
    const { transaction, paid_to: paidTo }: ReceiptFacts = JSON.parse(body)
    const isDeposited = transaction === null || (!isFresh && (await this.deposits.isBooked(claim)))
    const entries = isDeposited ? [sale] : [makeClaimDeposit(claim, transaction), sale]
    await this.#ports.tenants.system.chain.append(entries, { isOwed: true })
    this.#ports.world.failpoint?.('payment.booked')
    this.#upkeep.noteCharged(claim, { hasFee: paidTo !== undefined })
    this.#ports.onState?.('delivered')
  }
}
