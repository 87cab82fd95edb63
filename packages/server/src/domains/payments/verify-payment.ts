import type { Operation } from '../operation.ts'
import { facilitated } from './facilitate.ts'
import { requirementOf } from './quoting.ts'

export const verifyPayment: Operation<'verifyPayment'> = async ({ service }, { body }) => {
  const { payment, way } = facilitated(service, body)
  const requirement = requirementOf(way.network, {
    amount: payment.payload.value,
    quoteId: '',
    expiresAt: 0,
  })
  const verdict = await way.facilitator.verify(payment, requirement)
  const payer = payment.payload.from
  return verdict.ok
    ? { isValid: true, payer }
    : { isValid: false, invalidReason: verdict.reason, payer }
}
