import type { NativeProof, SignedPayment } from '../../x402/protocol.ts'
import type { Service } from '../call.ts'
import type { Operation } from '../operation.ts'
import { facilitated, presentedIn } from './facilitate.ts'
import type { Way } from './purchase.ts'
import { transferOfProof } from './tender.ts'

/** Every deposit costs gas, so what is worth less than that is not taken; atomic units. */
const depositAtomicMin = 1_000n

export const settlePayment: Operation<'settlePayment'> = async ({ service }, { body }) => {
  const presented = presentedIn(body)
  if ('transaction' in presented) return settleTransfer(service, presented)
  return settleSigned(service, facilitated(service, presented))
}

async function settleSigned(service: Service, paid: { payment: SignedPayment; way: Way }) {
  const { payment, way } = paid
  const about = { network: way.network.id, payer: payment.payload.from }
  const { minimumPayment } = way.network
  const least = minimumPayment > depositAtomicMin ? minimumPayment : depositAtomicMin
  if (payment.payload.value < least) {
    const errorReason = `The payment was refused: payload.authorization.value must be at least ${least}`
    return { success: false, transaction: '', errorReason, ...about }
  }
  return outcomeOf(await service.payments.deposit(payment, way), about)
}

/** What came in for a quote that cannot be used any more becomes the sender's balance. */
async function settleTransfer(service: Service, proof: NativeProof) {
  const found = await transferOfProof(service.payments.ports, proof)
  if ('refusal' in found)
    return outcomeOf(`The payment was refused: ${found.refusal}`, { network: proof.network ?? '' })
  const { payment, way } = found
  const about = { network: way.network.id, payer: payment.payload.from }
  return outcomeOf(await service.payments.deposit(payment, way), about)
}

function outcomeOf(
  outcome: { paymentId: string; transaction: string } | string,
  about: { network: string; payer?: string },
) {
  if (typeof outcome === 'string')
    return { success: false, transaction: '', errorReason: outcome, ...about }
  const { transaction, paymentId } = outcome
  return { success: true, transaction, payment_id: paymentId, ...about }
}
