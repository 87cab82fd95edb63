import type { Service } from '../../services/call.ts'
import { transferOfProof } from '../../services/payments/parse-payment.ts'
import type { Way } from '../../services/payments/purchase.ts'
import { requirementOf } from '../../services/payments/quoting.ts'
import { settlerOf } from '../../services/payments/settler.ts'
import type { NativeProof, SignedPayment } from '../../x402/protocol.ts'
import type { Operation } from '../operation.ts'
import { facilitated, presentedIn } from './facilitator-request.ts'

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
  if (payment.payload.value < least && !(await isHere(service, paid))) {
    const errorReason = `The payment was refused: payload.authorization.value must be at least ${least}`
    return { success: false, transaction: '', errorReason, ...about }
  }
  return outcomeOf(await service.payments.deposit(payment, way), about)
}

/** What an authorization has moved already is its payer's, however little; it costs no gas any more. */
async function isHere(
  { payments }: Service,
  { payment, way }: { payment: SignedPayment; way: Way },
): Promise<boolean> {
  const { value: amount } = payment.payload
  if (amount === 0n) return false
  const requirement = requirementOf(way.network, { amount, quoteId: '', expiresAt: 0 })
  const verdict = await settlerOf(payments.ports, way, { payment, requirement }).verify()
  return !verdict.ok && verdict.reason === 'authorization_used'
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
