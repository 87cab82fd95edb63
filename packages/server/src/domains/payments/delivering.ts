import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import { assert } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import {
  type Claim,
  dropReplies,
  findReply,
  type KeptReply,
  keepReply,
  markDelivered,
  setClaim,
  setWriteAfter,
} from './claim-store.ts'
import { depositEntry, saleEntry } from './entries.ts'
import type { Delivery } from './offer.ts'
import type { PaymentPorts, Purchase } from './purchase.ts'

type Sold = { paymentId: string; status: number; body: Buffer; transaction: string }

const tidyIntervalMs = 60_000
const markIntervalMs = 100

/** From money that has arrived to an answer that has been charged for. */
export class Delivering {
  readonly #ports: PaymentPorts
  #delivered: string[] = []

  constructor(ports: PaymentPorts) {
    this.#ports = ports
    ports.world.every(markIntervalMs, () => void this.#mark())
    ports.world.every(tidyIntervalMs, () => {
      dropReplies(ports.database, {
        nowMs: ports.world.now(),
        bytesMax: limits.keptRepliesBytesMax,
      }).catch(() => undefined)
    })
  }

  /** The first delivery after settlement: deposit and sale are booked in one block. */
  async first(
    purchase: Purchase,
    settled: { claim: Claim; transaction: string; isFresh: boolean },
  ): Promise<Sold> {
    const { claim, transaction } = settled
    let delivery: Delivery
    try {
      delivery = await this.#deliver(purchase, claim)
    } catch (error) {
      await this.bookDeposit(claim, transaction)
      throw error instanceof Fault ? withPayment(error, claim.id) : error
    }
    // A fresh claim cannot have been booked; one that a crash left behind may have been.
    const isDeposited = settled.isFresh ? false : await this.#isDeposited(claim)
    return this.#charge(purchase, { claim, transaction, delivery, isDeposited })
  }

  /** Carries on with a payment that was settled before: gives the kept answer, or makes it now. */
  async resume(purchase: Purchase, claim: Claim): Promise<Sold> {
    const { database, tenancy } = this.#ports
    const { chain, ledger, schema } = tenancy.system
    const transaction = claim.settled_by
    assert(transaction !== null, 'a settled payment has a transaction')
    await chain.whenApplied(chain.head().height)
    const kept = await findReply(database, claim.id)
    const isSold = (await ledger.sale(database, schema, claim.id)) !== undefined
    if (kept === undefined && isSold)
      throw new Fault('PAYMENT_REPLY_GONE', { details: { payment_id: claim.id } })
    if (kept !== undefined) {
      if (!isSold)
        await this.#book(claim, {
          transaction,
          sale: kept.sale,
          isDeposited: await this.#isDeposited(claim),
        })
      return { paymentId: claim.id, status: kept.status, body: kept.body, transaction }
    }
    const delivery = await this.#deliver(purchase, claim).catch((error: unknown) => {
      throw error instanceof Fault ? withPayment(error, claim.id) : error
    })
    const isDeposited = await this.#isDeposited(claim)
    return this.#charge(purchase, { claim, transaction, delivery, isDeposited })
  }

  /** Books the payment as the payer's balance, unless it was booked before. */
  async bookDeposit(claim: Claim, transaction: string): Promise<void> {
    const { chain } = this.#ports.tenancy.system
    if (!(await this.#isDeposited(claim))) await chain.append([this.#deposit(claim, transaction)])
    await setClaim(this.#ports.database, claim.id, { state: 'settled', settledBy: transaction })
  }

  async #isDeposited(claim: Claim): Promise<boolean> {
    const { chain, ledger, schema } = this.#ports.tenancy.system
    await chain.whenApplied(chain.head().height)
    return ledger.isSettled(this.#ports.database, schema, claim.identity)
  }

  async #deliver(purchase: Purchase, claim: Claim): Promise<Delivery> {
    const { offer, catalog } = purchase
    if (offer.recover === undefined) return offer.deliver(catalog, claim.id)
    if (claim.write_after !== null) {
      const earlier = await offer.recover(catalog, claim.id, Number(claim.write_after))
      if (earlier !== undefined) return earlier
    } else {
      await setWriteAfter(this.#ports.database, claim.id, offer.tenant.chain.head().height)
    }
    return offer.deliver(catalog, claim.id)
  }

  async #charge(
    purchase: Purchase,
    sale: { claim: Claim; transaction: string; delivery: Delivery; isDeposited: boolean },
  ): Promise<Sold> {
    const { claim, transaction, delivery } = sale
    const facts = factsOf(purchase, { ...sale, nowMs: this.#ports.world.now() })
    const entry = saleEntry({ identity: claim.identity, facts, split: this.#ports.split })
    const kept: KeptReply = { status: delivery.status, body: delivery.body, sale: entry.body }
    const expiresAtMs = this.#ports.world.now() + limits.keptReplySeconds * 1000
    await keepReply(this.#ports.database, {
      ...kept,
      paymentId: claim.id,
      settledBy: transaction,
      expiresAtMs,
    })
    await this.#book(claim, { transaction, sale: entry.body, isDeposited: sale.isDeposited })
    return { paymentId: claim.id, status: delivery.status, body: delivery.body, transaction }
  }

  async #book(
    claim: Claim,
    booked: { transaction: string; sale: string; isDeposited: boolean },
  ): Promise<void> {
    const sale = { header: { type: 'ledger' }, body: booked.sale }
    const entries = booked.isDeposited ? [sale] : [this.#deposit(claim, booked.transaction), sale]
    await this.#ports.tenancy.system.chain.append(entries)
    this.#delivered.push(claim.id)
  }

  #deposit(claim: Claim, transaction: string) {
    const [network = '', asset = '', payer = ''] = claim.identity.split('/')
    return depositEntry({
      paymentId: claim.id,
      identity: claim.identity,
      payer,
      amount: claim.amount,
      network,
      asset,
      transaction,
    })
  }

  /** The state `delivered` only saves work: the ledger says the same, so it may be written late and together. */
  async #mark(): Promise<void> {
    if (this.#delivered.length === 0) return
    const ids = this.#delivered
    this.#delivered = []
    await markDelivered(this.#ports.database, ids).catch(() => undefined)
  }
}

function factsOf(
  purchase: Purchase,
  sale: { claim: Claim; transaction: string; delivery: Delivery; nowMs: number },
): ReceiptFacts {
  const { claim, delivery } = sale
  const { network } = purchase.requirement
  assert(
    delivery.charge >= 0n && delivery.charge <= claim.amount,
    'a charge is at most what was quoted',
  )
  return {
    payment_id: claim.id,
    request_hash: claim.request_hash,
    quote_id: claim.quote_id,
    payer: purchase.payment.payload.from,
    payee: `app:${claim.app}`,
    amount: String(delivery.charge),
    deposited: String(claim.amount),
    change: String(claim.amount - delivery.charge),
    asset: network.asset.address,
    network: network.id,
    transaction: sale.transaction,
    app: claim.app,
    operation: claim.operation,
    as_of: delivery.asOf,
    row_count: delivery.rows,
    result_hash: createHash('sha256').update(delivery.body).digest('hex'),
    delivered_at: new Date(sale.nowMs).toISOString(),
  }
}

/** Errors after settlement cost nothing: the money is the payer's balance, and the caller learns where. */
function withPayment(fault: Fault, paymentId: string): Fault {
  return new Fault(fault.code, {
    message: fault.message,
    details: { ...fault.details, payment_id: paymentId, charged: '0' },
    ...(fault.internal !== undefined && { internal: fault.internal }),
  })
}
