import { requirementOf } from '../../services/payments/quoting.ts'
import { settlerOf } from '../../services/payments/settler.ts'
import type { Operation } from '../operation.ts'
import { facilitated, presentedIn } from './facilitator-request.ts'

export const verifyPayment: Operation<'verifyPayment'> = async ({ service }, { body }) => {
  const { payment, way } = facilitated(service, presentedIn(body))
  const requirement = requirementOf(way.network, {
    amount: payment.payload.value,
    quoteId: '',
    expiresAt: 0,
  })
  const { ports } = service.payments
  const verdict = await settlerOf(ports, way, { payment, requirement }).verify()
  const payer = payment.payload.from
  return verdict.ok
    ? { isValid: true, payer }
    : { isValid: false, invalidReason: verdict.reason, payer }
}
