import { Fault } from '../../../base/fault.ts'
import { Singleflight } from '../../../base/singleflight.ts'
import { isSigned, isSound } from '../../../x402/check-exact-payment.ts'
import { isNative, type Payment, type SignedPayment } from '../../../x402/protocol.ts'
import { getNowSeconds } from '../../../x402/validity.ts'
import type { Deliverer } from '../deliverer.ts'
import { toPaidNetwork } from '../direct/direct-payees.ts'
import { makePendingFault } from '../payment-faults.ts'
import type { PaymentMethod } from '../payment-ports.ts'
import { isDirect } from '../presented/presented-payment.ts'
import { makeRequirement, type QuotePorts } from '../quotes/quoting.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'
import { takeTurn } from '../take-turn.ts'
import { findNamedClaim, type Repeatable } from './claim-finder.ts'
import { toFunded } from './claims.ts'
import { findPaymentName } from './stored-payment.ts'

/** Payments that wait for one of their name: a client may sign anew each time that it repeats its request. */
const waitingMax = 16

/**
 * Payments to which their payer has given a name (the extension `payment-identifier`). The same request under the same
 * name is bought once, whatever signature pays for it: a client that lost its first one, and signs anew, gets the answer
 * of the first and pays nothing.
 */
export class NamedPayments {
  readonly #ports: QuotePorts
  readonly #deliverer: Deliverer
  readonly #payments: Singleflight
  readonly #turns = new Singleflight()

  constructor(
    ports: QuotePorts,
    parts: { readonly deliverer: Deliverer; readonly payments: Singleflight },
  ) {
    this.#ports = ports
    this.#deliverer = parts.deliverer
    this.#payments = parts.payments
  }

  /** Runs the work on a payment while no other one of its name is at work in this process. */
  runInTurn<T>(payment: Payment, task: string, work: () => Promise<T>): Promise<T> {
    const name = findPaymentName(payment)
    if (name === undefined) return work()
    return takeTurn(this.#turns, { identity: name.join('/'), task, waitingMax }, work)
  }

  /**
   * Finds the reply that another payment of this name bought; 409 where that was for another request, 503 where its
   * outcome is not known yet. Undefined where there is none, or where its money is free on the payer's balance.
   */
  async findReplyByName(
    payment: SignedPayment,
    method: PaymentMethod,
    brought: {
      readonly identity: string
      readonly hash: string
      /** The payment was claimed before, and is repeated by its sender. */
      readonly isKnown: boolean
      /** It is a direct payment: its own money goes to the wallet of its seller. */
      readonly isDirect: boolean
    },
  ): Promise<BoughtReply | undefined> {
    const { identity: besides, hash } = brought
    const name = findPaymentName(payment)
    const claim = name && (await findNamedClaim(this.#ports.database, { name, besides }))
    if (claim === undefined) return undefined
    if (!(await this.#isPayer(payment, method, brought))) return undefined
    if (claim.request_hash !== hash)
      throw new Fault('IDEMPOTENCY_KEY_USED', {
        message:
          'This payment-identifier was used for another request; a new request needs a new one.',
      })
    const funded = toFunded(claim)
    const bought = funded && (await this.#deliverer.findReplyAndCharge(funded))
    if (bought === undefined && claim.state !== 'deposited')
      throw makePendingFault(claim.id, 'another payment of this name is under way')
    return bought
  }

  /**
   * Finds the reply that another payment of this name bought for this very request, whatever has become of its offer
   * since. Undefined where anything else is to be said, which the operation does.
   */
  async findSoldReply({ identity, requestHash: hash, payment }: Repeatable) {
    const name = findPaymentName(payment)
    const method = this.#ports.methods.find(({ network }) => network.id === payment.network)
    if (name === undefined || method === undefined || isNative(payment)) return undefined
    const claim = await findNamedClaim(this.#ports.database, { name, besides: identity })
    const funded = claim && toFunded(claim)
    // One that is at work takes turns with this payment where that buys.
    if (claim === undefined || funded === undefined || this.#payments.has(claim.identity))
      return undefined
    if (claim.request_hash !== hash) return undefined
    const { network } = method
    const brought = { isKnown: false, isDirect: isDirect(this.#ports, { payment, network, hash }) }
    if (!(await this.#isPayer(payment, method, brought))) return undefined
    return this.#deliverer.findReplyAndCharge(funded)
  }

  /**
   * Anybody can write an address, or find a signature that was used, or was for somebody else, or is over: only the payer
   * itself has one that would pay here and now.
   */
  async #isPayer(
    payment: SignedPayment,
    method: PaymentMethod,
    brought: { readonly isKnown: boolean; readonly isDirect: boolean },
  ): Promise<boolean> {
    const { facilitator } = method
    const { value: amount } = payment.payload
    const network = brought.isDirect ? toPaidNetwork(method.network, payment) : method.network
    const requirement = makeRequirement(network, { amount, quoteId: '', expiresAt: 0 })
    if (brought.isKnown) return isSigned(payment, requirement)
    const nowSeconds = getNowSeconds(this.#ports.world)
    if (!isSound(payment, requirement, nowSeconds)) return false
    return !(await facilitator.isUsed(payment, requirement))
  }
}
