import { makeRequirement } from '../../services/payments/quotes/quoting.ts'
import { makeSettler } from '../../services/payments/settling/settler.ts'
import type { Operation } from '../operation.ts'
import { parseFacilitatorBody, requireSignedPayment } from './facilitator-request.ts'

export const verifyPayment: Operation<'verifyPayment', 'payments'> = async (
  { service },
  { body },
) => {
  const { payment, method } = requireSignedPayment(service.payments, parseFacilitatorBody(body))
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
