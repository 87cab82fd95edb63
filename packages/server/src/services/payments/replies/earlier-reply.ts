import { Fault } from '../../../base/fault.ts'
import type { HttpReply } from '../../../http/reply.ts'
import { type ChannelPayment, isChannelPayment } from '../../../x402/channels/channel-payment.ts'
import type { Payment, PresentedPayment } from '../../../x402/protocol.ts'
import type { Asking } from '../../access/access.ts'
import type { Call } from '../../call.ts'
import { findBalancePayer } from '../budgets/balance-payer.ts'
import { hasSignInHeader } from '../budgets/sign-in.ts'
import { getPaymentIdentity } from '../claims/stored-payment.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { removeProofInTurns } from '../presented/body-proof.ts'
import { findProofClaim } from '../presented/match-transfer.ts'
import { findPresentedPayment, hashPaidRequest, isByPayer } from '../presented/presented-payment.ts'
import { toHttpReply } from './bought-reply.ts'

/**
 * Finds the reply that this very request bought before with this very payment. `http/implement.ts` calls it before the
 * operation looks at anything: a paid reply is delivered even if the collection is gone, private or free by now, and a write is not
 * repeated. A payment that is not known, or not repeated exactly, is left to the operation.
 */
export async function findEarlierReply(call: Call<'payments'>): Promise<HttpReply | undefined> {
  const { payments } = call.service
  const read = await findReadablePayment(call)
  if (read === undefined) return findKeyReply(call)
  if (isChannelPayment(read.presented)) return payments.findChannelReply(call, read.presented)
  const paid = await findPayment(payments.ports, read.presented)
  if (paid === undefined) return undefined
  const { payment, method } = paid
  const identity = getPaymentIdentity(method.network, payment)
  const isPayer = isByPayer(call, payment)
  const bought = await payments.findBoughtReply({
    identity,
    requestHash: read.hash,
    payment,
    isPayer,
  })
  return bought && toHttpReply(payments.ports, { payment, network: method.network }, bought)
}

/** The same for a request that a key, or a wallet that signed in, paid for, by its Idempotency-Key or that sign-in. */
async function findKeyReply(call: Call<'payments'>): Promise<HttpReply | undefined> {
  const { ports } = call.service.payments
  const [method] = ports.methods
  const isNamed = call.requestInfo.headers['idempotency-key'] !== undefined
  const mayPay = call.caller.payer !== undefined || hasSignInHeader(call.requestInfo)
  if (!mayPay || method === undefined) return undefined
  if (!isNamed && !hasSignInHeader(call.requestInfo)) return undefined
  const by = await findBalancePayer(ports, call)
  if (by === undefined || 'refusal' in by) return undefined
  const { payment, identity } = by
  const requestHash = hashPaidRequest(call.requestInfo)
  const bought = await call.service.payments.findBoughtReply({
    ...{ identity, requestHash, payment, isPayer: true },
  })
  return bought && toHttpReply(ports, { payment, network: method.network }, bought)
}

/** A transfer without a quote is left to the operation, which decides for whom the caller acts. */
async function findPayment(
  ports: PaymentPorts,
  presented: PresentedPayment,
): Promise<{ payment: Payment; method: PaymentMethod } | undefined> {
  if ('transaction' in presented) return findProofClaim(ports, presented)
  const method = ports.methods.find(({ network }) => network.id === presented.network)
  return method && { payment: presented, method }
}

/**
 * A payment that cannot be read is left to the operation, which refuses it after it has checked the caller and the
 * target.
 */
async function findReadablePayment(
  asking: Asking,
): Promise<{ presented: PresentedPayment | ChannelPayment; hash: string } | undefined> {
  try {
    await removeProofInTurns(asking.requestInfo)
    const presented = findPresentedPayment(asking)
    return presented && { presented, hash: hashPaidRequest(asking.requestInfo) }
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}
