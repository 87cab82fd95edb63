import { findLeastDeposit } from '../../services/payments/deposits/deposit-minimum.ts'
import type { SentRequirements } from '../../services/payments/facilitating/foreign-requirement.ts'
import type { PaymentMethod } from '../../services/payments/payment-ports.ts'
import type { Payments } from '../../services/payments/payments.ts'
import { findProofTransfer } from '../../services/payments/presented/match-transfer.ts'
import { makeSettler } from '../../services/payments/purchase.ts'
import { makeRequirement } from '../../services/payments/quotes/quoting.ts'
import type { NativeProof, SignedPayment } from '../../x402/protocol.ts'
import type { Operation } from '../operation.ts'
import { findFacilitating, formatSettlement, identifyCaller } from './facilitate.ts'
import { parseFacilitatorBody, requireSignedPayment } from './facilitator-request.ts'

export const settlePayment: Operation<'settlePayment', 'payments' | 'facilitating'> = async (
  { service, caller, requestInfo },
  { body },
) => {
  const requirements: SentRequirements = { ...body.paymentRequirements }
  const others = findFacilitating(service.facilitating, caller, requirements)
  const presented = parseFacilitatorBody(body)
  if (others !== undefined && !('transaction' in presented)) {
    const name = identifyCaller(caller, requestInfo)
    const outcome = await others.settle(name, presented, requirements)
    return formatSettlement(outcome, { payment: presented, requirements })
  }
  if ('transaction' in presented) return settleTransfer(service.payments, presented)
  return settleSigned(service.payments, requireSignedPayment(service.payments, presented))
}

async function settleSigned(
  payments: Payments,
  paid: { payment: SignedPayment; method: PaymentMethod },
) {
  const { payment, method } = paid
  const about = { network: method.network.id, payer: payment.payload.from }
  const least = findLeastDeposit(method.network)
  if (payment.payload.value < least && !(await isHere(payments, paid))) {
    const errorReason = `The payment was refused: payload.authorization.value must be at least ${least}`
    return { success: false, transaction: '', errorReason, ...about }
  }
  return toReply(await payments.deposit(payment, method), about)
}

/** Money that an authorization has moved already is its payer's, however little; it costs no gas any more. */
async function isHere(
  payments: Payments,
  { payment, method }: { payment: SignedPayment; method: PaymentMethod },
): Promise<boolean> {
  const { value: amount } = payment.payload
  if (amount === 0n) return false
  const requirement = makeRequirement(method.network, { amount, quoteId: '', expiresAt: 0 })
  const verdict = await makeSettler(payments.ports, method, { payment, requirement }).verify()
  return !verdict.ok && verdict.reason === 'authorization_used'
}

/** Books a transfer for a quote that can no longer be used as the sender's balance. */
async function settleTransfer(payments: Payments, proof: NativeProof) {
  const found = await findProofTransfer(payments.ports, proof)
  if ('refusal' in found)
    return toReply(
      { refusal: `The payment was refused: ${found.refusal}` },
      { network: proof.network ?? '' },
    )
  const { payment, method } = found
  const about = { network: method.network.id, payer: payment.payload.from }
  return toReply(await payments.deposit(payment, method), about)
}

function toReply(
  outcome: Awaited<ReturnType<Payments['deposit']>>,
  about: { network: string; payer?: string },
) {
  if ('refusal' in outcome)
    return { success: false, transaction: '', errorReason: outcome.refusal, ...about }
  const { transaction, paymentId } = outcome
  return { success: true, transaction, payment_id: paymentId, ...about }
}
