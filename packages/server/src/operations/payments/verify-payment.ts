import type { SentRequirements } from '../../services/payments/facilitating/foreign-requirement.ts'
import { makeSettler } from '../../services/payments/purchase.ts'
import { makeRequirement } from '../../services/payments/quotes/quoting.ts'
import type { Operation } from '../operation.ts'
import { findFacilitating } from './facilitate.ts'
import { parseFacilitatorBody, requireSignedPayment } from './facilitator-request.ts'

export const verifyPayment: Operation<'verifyPayment', 'payments' | 'facilitating'> = async (
  { service, caller },
  { body },
) => {
  const requirements: SentRequirements = { ...body.paymentRequirements }
  const others = findFacilitating(service.facilitating, caller, requirements)
  const presented = parseFacilitatorBody(body)
  if (others !== undefined && !('transaction' in presented)) {
    const problem = await others.verify(presented, requirements)
    const { from: payer } = presented.payload
    if (problem === undefined) return { isValid: true, payer }
    const { refusal: invalidReason, detail: invalidMessage } = problem
    return { isValid: false, invalidReason, ...(invalidMessage && { invalidMessage }), payer }
  }
  const { payment, method } = requireSignedPayment(service.payments, presented)
  const requirement = makeRequirement(method.network, {
    amount: payment.payload.value,
    quoteId: '',
    expiresAt: 0,
  })
  const { ports } = service.payments
  const verdict = await makeSettler(ports, method, { payment, requirement }).verify()
  const payer = payment.payload.from
  return verdict.ok
    ? { isValid: true, payer }
    : { isValid: false, invalidReason: verdict.reason, payer }
}
