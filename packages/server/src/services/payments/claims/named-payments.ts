import { Fault } from '../../../base/fault.ts'
import { getNowSeconds, isSigned, isSound } from '../../../x402/facilitator.ts'
import { isNative, type Payment, type SignedPayment } from '../../../x402/protocol.ts'
import type { Deliverer } from '../deliverer.ts'
import { toPaidNetwork } from '../direct/direct-payees.ts'
import { makePendingFault } from '../payment-faults.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { makeRequirement } from '../quotes/quoting.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'
import { Singleflight } from '../singleflight.ts'
import { findNamedClaim } from './claim-lists.ts'
import { toFunded } from './claims.ts'

/**
 * Payments to which their payer has given a name (the extension `payment-identifier`). The same request under the same
 * name is bought once, whatever signature pays for it: a client that lost its first one, and signs anew, gets the answer
 * of the first and pays nothing.
 */
export class NamedPayments {
  readonly #ports: PaymentPorts
  readonly #deliverer: Deliverer
  readonly #turns = new Singleflight()

  constructor(ports: PaymentPorts, deliverer: Deliverer) {
    this.#ports = ports
    this.#deliverer = deliverer
  }

  /** Runs the work on a payment while no other one of its name is at work in this process. */
  run<T>(payment: Payment, task: string, work: () => Promise<T>): Promise<T> {
    const name = findName(payment)
    return name === undefined ? work() : this.#turns.run(name.join('/'), task, work)
  }

  /**
   * Finds the reply that another payment of this name bought; 409 where that was for another request, 503 where its
   * outcome is not known yet. Undefined where there is none, or where its money is free on the payer's balance.
   */
  async findBoughtReply(
    payment: SignedPayment,
    { network, facilitator }: PaymentMethod,
    brought: {
      readonly identity: string
      readonly hash: string
      /** The payment was claimed before, and is repeated by its sender. */
      readonly isKnown: boolean
      /** It goes straight to the wallet of its seller. */
      readonly isDirect: boolean
    },
  ): Promise<BoughtReply | undefined> {
    const { identity: besides, hash, isKnown, isDirect } = brought
    const name = findName(payment)
    const claim = name && (await findNamedClaim(this.#ports.database, { name, besides }))
    if (claim === undefined) return undefined
    const { value: amount } = payment.payload
    const paid = isDirect ? toPaidNetwork(network, payment) : network
    const requirement = makeRequirement(paid, { amount, quoteId: '', expiresAt: 0 })
    // Anybody can write an address, or find a signature that was used, or was for somebody else, or is over: only the
    // payer itself has one that would pay here and now.
    const isPayer = isKnown
      ? isSigned(payment, requirement)
      : isSound(payment, requirement, getNowSeconds(this.#ports.world)) &&
        !(await facilitator.isUsed(payment, requirement))
    if (!isPayer) return undefined
    if (claim.request_hash !== hash)
      throw new Fault('IDEMPOTENCY_KEY_USED', {
        message:
          'This payment-identifier was used for another request; a new request needs a new one.',
      })
    const funded = toFunded(claim)
    const bought = funded && (await this.#deliverer.findBoughtReply(funded))
    if (bought === undefined && claim.state !== 'deposited')
      throw makePendingFault(claim.id, 'another payment of this name is under way')
    return bought
  }
}

/** Finds the payer's address and its name for the payment. */
function findName(payment: Payment): readonly [payer: string, identifier: string] | undefined {
  if (isNative(payment) || payment.identifier === undefined) return undefined
  return [payment.payload.from, payment.identifier]
}
