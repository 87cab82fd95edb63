import type { Operation } from '../operation.ts'
import { facilitated } from './facilitate.ts'

export const settlePayment: Operation<'settlePayment'> = async ({ service }, { body }) => {
  const { payment, way } = facilitated(service, body)
  const outcome = await service.payments.deposit(payment, way)
  const about = { network: way.network.id, payer: payment.payload.from }
  if (typeof outcome === 'string')
    return { success: false, transaction: '', errorReason: outcome, ...about }
  return {
    success: true,
    transaction: outcome.transaction,
    payment_id: outcome.paymentId,
    ...about,
  }
}
