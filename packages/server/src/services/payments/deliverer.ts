import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import { assert, requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { Queryable } from '../../database/database.ts'
import type { SoldUse } from '../../projections/metered.ts'
import { takeFromAccount } from './accounts/account-lock.ts'
import {
  applyEvent,
  applyEventToAll,
  keepAnswer,
  noteEvent,
  tryEvent,
} from './claims/claim-steps.ts'
import { type Claim, findClaim, getPayerAccount, setWriteAfter } from './claims/claim-store.ts'
import { dropReplies, findReply, type KeptReply } from './claims/reply-store.ts'
import { describeDeposit, getDepositAccount, isNamedDeposit } from './deposits/booked-deposit.ts'
import { makeDepositEntry, makeSaleEntry, type Part } from './ledger-entries.ts'
import { computeDue, computeMeteredSale, isMetered, type MeteredSale } from './meters/meter.ts'
import { dropUses, putUse } from './meters/use-store.ts'
import { makePendingFault } from './payment-faults.ts'
import { depositOperation, type PaymentPorts, type Purchase } from './purchase.ts'
import type { Delivery, Payee } from './quotes/offer.ts'
import { digestOffer } from './quotes/terms.ts'
import type { BoughtReply } from './replies/bought-reply.ts'
import { decodeSoldFile, soldFileType } from './replies/sold-file.ts'
import { toPaymentFault } from './to-payment-fault.ts'

/** A claim whose money has arrived, or is held for it. */
export type FundedClaim = {
  readonly claim: Claim
  /** The transaction that moved its own money; null where the payer's balance is charged instead. */
  readonly transaction: string | null
  /** The claim was made by this very request, so nothing can have been kept or booked for it. */
  readonly isFresh: boolean
}

const tidyIntervalMs = 60_000
const markIntervalMs = 100

/** Turns money that arrived, or is held, into an answer that has been charged for. */
export class Deliverer {
  readonly #ports: PaymentPorts
  #charged: Pick<Claim, 'id' | 'state'>[] = []

  constructor(ports: PaymentPorts) {
    this.#ports = ports
  }

  /**
   * Returns what the payment bought: the kept reply where there is one, otherwise one made now, kept, then charged.
   */
  async deliver(purchase: Purchase, funded: FundedClaim): Promise<BoughtReply> {
    const payment = { payment_id: funded.claim.id }
    if (isNamedDeposit(funded.claim)) return this.#deliverDeposit(funded)
    const earlier = funded.isFresh ? undefined : await this.findBoughtReply(funded)
    if (earlier !== undefined) return earlier
    let delivery: Delivery
    try {
      delivery = await this.#makeDelivery(purchase, funded.claim)
      this.#ports.world.failpoint?.('payment.delivered')
    } catch (error) {
      // Should this fail too, the claim stays open, and reconciliation ends it.
      await this.#giveUp(funded).catch(() => undefined)
      throw toPaymentFault(error, { ...payment, charged: '0' })
    }
    try {
      return await this.#charge(purchase, funded, delivery)
    } catch (error) {
      throw toPaymentFault(error, payment)
    }
  }

  /**
   * Finds the kept reply, and charges for it if that was not done; 410 where it was charged and is not kept any
   * more.
   */
  async findBoughtReply(funded: FundedClaim): Promise<BoughtReply | undefined> {
    const { claim } = funded
    if (isNamedDeposit(claim)) return this.#deliverDeposit(funded)
    const { database, tenants } = this.#ports
    const { chain, ledger, schema } = tenants.system
    await chain.whenApplied(chain.head().height)
    // In this order: an answer is kept before it is charged for, and another process may do both at this moment.
    const isSold = (await ledger.findSale(database, schema, claim.id)) !== undefined
    const kept = await findReply(database, claim.id)
    if (kept === undefined) {
      if (isSold) throw new Fault('PAYMENT_REPLY_GONE', { details: { payment_id: claim.id } })
      return undefined
    }
    if (isSold) {
      this.#charged.push(claim)
      return toBoughtReply(claim, kept)
    }
    // Its money is on the payer's balance, and is held before it is charged.
    if (claim.state === 'deposited') return undefined
    try {
      return await this.#chargeKept(funded, kept)
    } catch (error) {
      throw toPaymentFault(error, { payment_id: claim.id })
    }
  }

  /**
   * Books the payment's own money as the payer's balance, unless it was booked before. That of a purchase is held until
   * it is certain that its request made nothing that must be charged for.
   */
  async bookDeposit({ claim, transaction, isFresh }: FundedClaim): Promise<void> {
    const settledBy = requirePresent(transaction, 'the transaction of money that came')
    if (claim.operation === depositOperation) {
      await this.#appendDeposit({ claim, transaction, isFresh })
      await applyEvent(this.#ports, claim, { event: 'booked', settledBy })
    } else {
      const step = await applyEvent(this.#ports, claim, { event: 'reserved', settledBy })
      if (!step.effects.includes('book deposit')) return
      await this.#appendDeposit({ claim, transaction, isFresh })
      if (step.effects.includes('end hold')) return this.endHold(claim)
      await applyEvent(this.#ports, { ...claim, state: step.to }, { event: 'booked', settledBy })
    }
    this.#ports.onState?.('settled')
  }

  /**
   * Gives back what is held for a claim that was not answered, unless its request has written, or may still: then it
   * stays held until who asks again is answered and charged.
   */
  async endHold({ id }: Pick<Claim, 'id'>): Promise<void> {
    const claim = await findClaim(this.#ports.database, { id })
    if (claim?.state !== 'held') return
    const { settled_by: settledBy, write_after: writeAfter } = claim
    if (settledBy !== null)
      await this.#appendDeposit({ claim, transaction: settledBy, isFresh: false })
    if (writeAfter !== null && (await this.#hasWritten(claim, writeAfter))) return
    const event = settledBy === null ? 'released' : 'freed'
    noteEvent(this.#ports, claim.state, event)
    const isFree = await tryEvent(this.#ports, claim, { event, writeAfter })
    if (isFree) this.#ports.onState?.(settledBy === null ? 'failed' : 'settled')
  }

  /** Brings an open claim up to what the ledger says; false where this leaves a question open. */
  async syncWithLedger(claim: Claim): Promise<boolean> {
    const { database } = this.#ports
    const { chain, ledger, schema } = this.#ports.tenants.system
    await chain.whenApplied(chain.head().height)
    const deposit = await ledger.findDeposit(database, schema, claim.identity)
    const isSold = (await ledger.findSale(database, schema, claim.id)) !== undefined
    let { state } = claim
    if (deposit !== undefined) {
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
    const { world, database } = this.#ports
    const stopMarks = world.every(markIntervalMs, () => void this.#mark())
    const stopTidying = world.every(tidyIntervalMs, () => {
      const bounds = { nowMs: world.now(), bytesMax: limits.keptRepliesBytesMax }
      dropReplies(database, bounds).catch(() => undefined)
      dropUses(database).catch(() => undefined)
    })
    return async () => {
      stopMarks()
      stopTidying()
      await this.#mark()
    }
  }

  /** A deposit's answer is what the ledger says of it, however often it is asked for. */
  async #deliverDeposit(funded: FundedClaim): Promise<BoughtReply> {
    const { claim, transaction } = funded
    const { database, tenants } = this.#ports
    try {
      if (claim.state !== 'deposited') await this.bookDeposit(funded)
      await tenants.system.chain.whenApplied(tenants.system.chain.head().height)
      const body = await describeDeposit(database, tenants.system, claim)
      const sold = { paymentId: claim.id, status: 200, body, contentType: undefined, transaction }
      return { ...sold, charge: 0n, hasReceipt: false }
    } catch (error) {
      throw toPaymentFault(error, { payment_id: claim.id })
    }
  }

  /** Money that came is booked; what was held of the payer's balance is given back. */
  #giveUp(funded: FundedClaim): Promise<void> {
    if (funded.claim.state === 'held') return this.endHold(funded.claim)
    return this.bookDeposit(funded)
  }

  async #appendDeposit({ claim, transaction, isFresh }: FundedClaim): Promise<void> {
    if (!isFresh && (await this.#isDeposited(claim))) return
    const deposit = makeClaimDeposit(claim, transaction)
    await this.#ports.tenants.system.chain.append([deposit], { isOwed: true })
  }

  /**
   * Returns true where the claim's request has written. Its chain is ours when the log is read, so that nobody else who
   * is at work on the same request can write any more; in this process nobody is.
   */
  async #hasWritten({ id, app }: Claim, afterHeight: bigint): Promise<boolean> {
    const { chain } = await this.#ports.tenants.load(app)
    await chain.confirmHeld()
    await chain.flushed()
    for await (const block of chain.blocksFrom(Number(afterHeight) + 1))
      if (block.entries.some((one) => one?.header.payment === id)) return true
    return false
  }

  async #isDeposited(claim: Claim): Promise<boolean> {
    const { chain, ledger, schema } = this.#ports.tenants.system
    await chain.whenApplied(chain.head().height)
    return (await ledger.findDeposit(this.#ports.database, schema, claim.identity)) !== undefined
  }

  async #makeDelivery({ offer, terms }: Purchase, claim: Claim): Promise<Delivery> {
    const { prices, meaning } = terms
    if (offer.recover !== undefined && claim.write_after !== null) {
      const earlier = await offer.recover(prices, claim.id, Number(claim.write_after))
      if (earlier !== undefined) return earlier
    }
    // The claim may be older than what its request names now.
    const now = { ...offer, meaning: offer.meaningBefore?.(claim.id) ?? offer.meaning }
    if (meaning !== digestOffer(this.#ports.quoteSecret, now)) throw new Fault('OFFER_CHANGED')
    if (offer.recover !== undefined) {
      const { chain } = requirePresent(offer.tenant, 'the application of a write')
      if (!(await setWriteAfter(this.#ports.database, claim, chain.head().height)))
        throw makePendingFault(claim.id, 'another process gave it up')
      this.#ports.world.failpoint?.('payment.writeNoted')
    }
    return offer.deliver(prices, claim.id)
  }

  async #charge(purchase: Purchase, funded: FundedClaim, delivery: Delivery): Promise<BoughtReply> {
    const { claim } = funded
    const { world, split, database, tenants } = this.#ports
    const { budget, prices, payees } = purchase.terms
    const makeReply = ({ due, uses }: MeteredSale): KeptReply => {
      const facts = makeReceiptFacts(purchase, funded, { ...delivery, due, nowMs: world.now() })
      const parts = listParts(due, payees)
      const { pass } = purchase.offer
      const sale = { identity: claim.identity, facts, split, parts, budget, uses, pass }
      return {
        status: delivery.status,
        body: delivery.body,
        contentType: delivery.contentType ?? null,
        sale: makeSaleEntry(sale).body,
      }
    }
    if (!isMetered(prices))
      return this.#chargeKept(funded, makeReply({ due: computeDue(prices, delivery.sizes) }))
    const account = getPayerAccount(claim)
    const metered = { id: claim.id, account, terms: purchase.terms, nowMs: world.now() }
    const { chain } = tenants.system
    await chain.whenApplied(chain.head().height)
    // Nobody else of this account counts on the same rest of a quota before this answer and its uses are kept.
    const kept = await takeFromAccount(database, account, async (tx) => {
      const { atMs, ...sale } = await computeMeteredSale(tx, metered, delivery.sizes)
      const keeping = await this.#keep(tx, funded, makeReply(sale))
      if (keeping.kept === undefined) return keeping
      const { uses = [] }: { uses?: readonly SoldUse[] } = JSON.parse(keeping.kept.sale)
      await putUse(tx, { id: claim.id, account, atMs, uses })
      return keeping
    })
    return this.#bookKept(funded, kept)
  }

  /** Keeps the answer, where none is kept yet, and books the charge for what is kept. */
  async #chargeKept(funded: FundedClaim, reply: KeptReply): Promise<BoughtReply> {
    return this.#bookKept(funded, await this.#keep(this.#ports.database, funded, reply))
  }

  #keep(database: Queryable, { claim, transaction }: FundedClaim, reply: KeptReply) {
    const expiresAtMs = this.#ports.world.now() + limits.keptReplySeconds * 1000
    const keeping = { ...reply, settledBy: transaction, expiresAtMs }
    return keepAnswer({ ...this.#ports, database }, claim, keeping)
  }

  async #bookKept(
    funded: FundedClaim,
    { state, kept }: Awaited<ReturnType<typeof keepAnswer>>,
  ): Promise<BoughtReply> {
    const { claim } = funded
    const { world } = this.#ports
    world.failpoint?.('payment.replyKept')
    if (kept === undefined)
      return requirePresent(await this.findBoughtReply(funded), 'the answer of a delivered payment')
    await this.#book({ ...funded, claim: { ...claim, state } }, kept.sale)
    return toBoughtReply(claim, kept)
  }

  /** Deposit and sale in one group, so one block. The ledger takes each once, should the outcome be in doubt. */
  async #book({ claim, isFresh }: FundedClaim, body: string): Promise<void> {
    const sale = { header: { type: 'ledger' }, body }
    const { transaction }: ReceiptFacts = JSON.parse(body)
    const isDeposited = transaction === null || (!isFresh && (await this.#isDeposited(claim)))
    const entries = isDeposited ? [sale] : [makeClaimDeposit(claim, transaction), sale]
    await this.#ports.tenants.system.chain.append(entries, { isOwed: true })
    this.#ports.world.failpoint?.('payment.booked')
    this.#charged.push(claim)
    this.#ports.onState?.('delivered')
  }

  /** The state `delivered` only saves work: the ledger says the same, so it may be written late and together. */
  async #mark(): Promise<void> {
    if (this.#charged.length === 0) return
    const claims = this.#charged
    this.#charged = []
    const { chain } = this.#ports.tenants.system
    try {
      // The money that is held counts until the tables have its sale: it is not let go sooner, nor where they stop.
      await chain.whenApplied(chain.head().height)
      await applyEventToAll(this.#ports, claims, 'charged')
    } catch {
      // A claim that is not marked is found in the ledger by reconciliation, or by who asks again.
    }
    this.#ports.world.failpoint?.('payment.marked')
  }
}

/** The sale says how it was paid; what becomes of the payment's own money later changes no answer. */
function toBoughtReply({ id }: Claim, { status, body, contentType, sale }: KeptReply): BoughtReply {
  const { transaction, amount }: ReceiptFacts = JSON.parse(sale)
  const charge = BigInt(amount)
  return { paymentId: id, status, body, contentType: contentType ?? undefined, transaction, charge }
}

function makeClaimDeposit(claim: Claim, moved: string | null) {
  const transaction = requirePresent(moved, 'the transaction of money that came')
  const [network = '', asset = '', payer = ''] = claim.identity.split('/')
  return makeDepositEntry({
    paymentId: claim.id,
    identity: claim.identity,
    payer,
    ...(isNamedDeposit(claim) && { account: getDepositAccount(claim) }),
    amount: claim.amount,
    network,
    asset,
    transaction,
  })
}

function makeReceiptFacts(
  purchase: Purchase,
  { claim, transaction }: FundedClaim,
  delivery: Delivery & { due: readonly bigint[]; nowMs: number },
): ReceiptFacts {
  const { network } = purchase.requirement
  const charge = delivery.due.reduce((sum, amount) => sum + amount, 0n)
  const isFromBalance = transaction === null
  // An error costs nothing: its money is the payer's balance, as all that is not charged.
  assert(charge <= claim.cap, 'no charge is above its quote')
  return {
    payment_id: claim.id,
    request_hash: claim.request_hash,
    quote_hash: claim.quote_id && hashSha256(claim.quote_id),
    payer: purchase.payment.payload.from,
    payee: `app:${claim.app}`,
    amount: String(charge),
    deposited: String(isFromBalance ? 0n : claim.amount),
    change: String(isFromBalance ? 0n : claim.amount - charge),
    asset: network.asset.address,
    network: network.id,
    transaction,
    ...(isFromBalance && { paid_from: 'balance' }),
    app: claim.app,
    operation: claim.operation,
    as_of: delivery.asOf,
    row_count: delivery.rows,
    result_hash: hashResult(delivery),
    delivered_at: new Date(delivery.nowMs).toISOString(),
  }
}

/** Lists the parts of a charge, each with its owner and what it is paid for. */
function listParts(due: readonly bigint[], payees: readonly Payee[]): readonly Part[] {
  return payees.map(({ account, platformBasisPoints, item }, at) => ({
    amount: due[at] ?? 0n,
    platformBasisPoints: BigInt(platformBasisPoints),
    account,
    item,
  }))
}

function hashSha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A file's hash is its name; every other answer is hashed as it goes out. */
function hashResult({ body, contentType }: Delivery): string {
  return contentType === soldFileType ? decodeSoldFile(body).sha256 : hashSha256(body)
}
