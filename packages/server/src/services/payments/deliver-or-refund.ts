import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import { assert, requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { applyEvent, applyEventToAll, keepAnswer, takeStep } from './claims/claim-steps.ts'
import {
  type Claim,
  dropReplies,
  findReply,
  type KeptReply,
  setWriteAfter,
} from './claims/claim-store.ts'
import { hasArrived } from './claims/payment-states.ts'
import { describeDeposit, getDepositAccount, isNamedDeposit } from './deposits/booked-deposit.ts'
import { makeDepositEntry, makeSaleEntry, type Part } from './ledger-entries.ts'
import type { PaymentPorts, Purchase } from './purchase.ts'
import type { Delivery, Payee } from './quotes/offer.ts'
import { digestOffer } from './quotes/terms.ts'
import type { Sold } from './replies/paid-reply.ts'
import { decodeSoldFile, soldFileType } from './replies/sold-file.ts'
import { toPaymentFault } from './to-payment-fault.ts'

/** A claim whose money has arrived. */
export type Settled = {
  readonly claim: Claim
  readonly transaction: string
  /** The claim was made by this very request, so nothing can have been kept or booked for it. */
  readonly isFresh: boolean
}

const tidyIntervalMs = 60_000
const markIntervalMs = 100

/** Turns arrived money into an answer that has been charged for. */
export class Deliverer {
  readonly #ports: PaymentPorts
  #charged: Pick<Claim, 'id' | 'state'>[] = []

  constructor(ports: PaymentPorts) {
    this.#ports = ports
  }

  /**
   * Returns what the payment bought: the kept reply where there is one, otherwise one made now, kept, then charged.
   */
  async deliver(purchase: Purchase, settled: Settled): Promise<Sold> {
    const payment = { payment_id: settled.claim.id }
    if (isNamedDeposit(settled.claim)) return this.#deliverDeposit(settled)
    const earlier = settled.isFresh ? undefined : await this.findEarlier(settled)
    if (earlier !== undefined) return earlier
    let delivery: Delivery
    try {
      delivery = await this.#makeDelivery(purchase, settled.claim)
      this.#ports.world.failpoint?.('payment.delivered')
    } catch (error) {
      // Should this fail too, the claim stays open, and reconciliation books it.
      await this.bookDeposit(settled).catch(() => undefined)
      throw toPaymentFault(error, { ...payment, charged: '0' })
    }
    try {
      return await this.#charge(purchase, settled, delivery)
    } catch (error) {
      throw toPaymentFault(error, payment)
    }
  }

  /**
   * Finds the kept reply, and charges for it if that was not done; 410 where it was charged and is not kept any
   * more.
   */
  async findEarlier(settled: Settled): Promise<Sold | undefined> {
    const { claim } = settled
    if (isNamedDeposit(claim)) return this.#deliverDeposit(settled)
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
    // Another process may have kept it after the claim was read.
    const { to: state } = takeStep(this.#ports, claim.state, 'kept')
    assert(hasArrived(state), 'what was bought is kept once its money is here')
    if (isSold) this.#charged.push({ id: claim.id, state })
    else {
      await this.#book({ ...settled, claim: { ...claim, state } }, kept.sale).catch(
        (error: unknown) => {
          throw toPaymentFault(error, { payment_id: claim.id })
        },
      )
    }
    return toSold(kept, settled)
  }

  /** Books the payment as the payer's balance, unless it was booked before. */
  async bookDeposit({ claim, transaction, isFresh }: Settled): Promise<void> {
    if (isFresh || !(await this.#isDeposited(claim)))
      await this.#ports.tenants.system.chain.append([makeClaimDeposit(claim, transaction)], {
        isOwed: true,
      })
    await applyEvent(this.#ports, claim, { event: 'booked', settledBy: transaction })
    this.#ports.onState?.('settled')
  }

  /** Brings an open claim up to what the ledger says; false where the ledger does not know the payment. */
  async settleByLedger(claim: Claim): Promise<boolean> {
    const { database } = this.#ports
    const { chain, ledger, schema } = this.#ports.tenants.system
    await chain.whenApplied(chain.head().height)
    const deposit = await ledger.findDeposit(database, schema, claim.identity)
    if (deposit === undefined) return false
    const settledBy = deposit.transaction
    const { to } = await applyEvent(this.#ports, claim, { event: 'booked', settledBy })
    if ((await ledger.findSale(database, schema, claim.id)) !== undefined)
      await applyEvent(this.#ports, { ...claim, state: to }, { event: 'charged' })
    return true
  }

  /** Starts the periodic work; the returned function ends it. */
  startUpkeep(): () => Promise<void> {
    const { world, database } = this.#ports
    const stopMarks = world.every(markIntervalMs, () => void this.#mark())
    const stopTidying = world.every(tidyIntervalMs, () => {
      const bounds = { nowMs: world.now(), bytesMax: limits.keptRepliesBytesMax }
      dropReplies(database, bounds).catch(() => undefined)
    })
    return async () => {
      stopMarks()
      stopTidying()
      await this.#mark()
    }
  }

  /** A deposit's answer is what the ledger says of it, however often it is asked for. */
  async #deliverDeposit(settled: Settled): Promise<Sold> {
    const { claim, transaction } = settled
    const { database, tenants } = this.#ports
    try {
      if (claim.state !== 'settled') await this.bookDeposit(settled)
      await tenants.system.chain.whenApplied(tenants.system.chain.head().height)
      const body = await describeDeposit(database, tenants.system, claim)
      const sold = { paymentId: claim.id, status: 200, body, contentType: undefined, transaction }
      return { ...sold, hasReceipt: false }
    } catch (error) {
      throw toPaymentFault(error, { payment_id: claim.id })
    }
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
    if (offer.recover !== undefined && claim.write_after === null) {
      await setWriteAfter(
        this.#ports.database,
        claim.id,
        requirePresent(offer.tenant, 'the application of a write').chain.head().height,
      )
      this.#ports.world.failpoint?.('payment.writeNoted')
    }
    return offer.deliver(prices, claim.id)
  }

  async #charge(purchase: Purchase, settled: Settled, delivery: Delivery): Promise<Sold> {
    const { claim, transaction } = settled
    const { world, split } = this.#ports
    const facts = makeReceiptFacts(purchase, settled, { ...delivery, nowMs: world.now() })
    const parts = listParts(delivery.due, purchase.terms.payees)
    const entry = makeSaleEntry({ identity: claim.identity, facts, split, parts })
    const { state, kept } = await keepAnswer(this.#ports, claim, {
      status: delivery.status,
      body: delivery.body,
      contentType: delivery.contentType ?? null,
      sale: entry.body,
      settledBy: transaction,
      expiresAtMs: world.now() + limits.keptReplySeconds * 1000,
    })
    world.failpoint?.('payment.replyKept')
    if (kept === undefined)
      return requirePresent(await this.findEarlier(settled), 'the answer of a delivered payment')
    await this.#book({ ...settled, claim: { ...claim, state } }, kept.sale)
    return toSold(kept, settled)
  }

  /** Deposit and sale in one group, so one block. The ledger takes each once, should the outcome be in doubt. */
  async #book({ claim, transaction, isFresh }: Settled, body: string): Promise<void> {
    const sale = { header: { type: 'ledger' }, body }
    const isDeposited = isFresh ? false : await this.#isDeposited(claim)
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
    // A claim that is not marked is found in the ledger by reconciliation, or by who asks again.
    await applyEventToAll(this.#ports, claims, 'charged').catch(() => undefined)
    this.#ports.world.failpoint?.('payment.marked')
  }
}

function toSold(kept: KeptReply, { claim, transaction }: Settled): Sold {
  const { status, body, contentType } = kept
  return { paymentId: claim.id, status, body, contentType: contentType ?? undefined, transaction }
}

function makeClaimDeposit(claim: Claim, transaction: string) {
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
  { claim, transaction }: Settled,
  delivery: Delivery & { nowMs: number },
): ReceiptFacts {
  const { network } = purchase.requirement
  const charge = delivery.due.reduce((sum, amount) => sum + amount, 0n)
  // An error costs nothing: its money is the payer's balance, as all that is not charged.
  assert(charge <= claim.cap, 'no charge is above its quote')
  return {
    payment_id: claim.id,
    request_hash: claim.request_hash,
    quote_hash: claim.quote_id && hashSha256(claim.quote_id),
    payer: purchase.payment.payload.from,
    payee: `app:${claim.app}`,
    amount: String(charge),
    deposited: String(claim.amount),
    change: String(claim.amount - charge),
    asset: network.asset.address,
    network: network.id,
    transaction,
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
