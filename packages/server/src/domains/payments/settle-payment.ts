import type { Operation } from '../operation.ts'
import { facilitated } from './facilitate.ts'

/** Every deposit costs gas, so what is worth less than that is not taken; atomic units. */
const depositAtomicMin = 1_000n

export const settlePayment: Operation<'settlePayment'> = async ({ service }, { body }) => {
  const { payment, way } = facilitated(service, body)
  const about = { network: way.network.id, payer: payment.payload.from }
  if (payment.payload.value < depositAtomicMin) {
    const errorReason = `The payment was refused: payload.authorization.value must be at least ${depositAtomicMin}`
    return { success: false, transaction: '', errorReason, ...about }
  }
  const outcome = await service.payments.deposit(payment, way)
  if (typeof outcome === 'string')
    return { success: false, transaction: '', errorReason: outcome, ...about }
  return {
    success: true,
    transaction: outcome.transaction,
    payment_id: outcome.paymentId,
    ...about,
  }
}
