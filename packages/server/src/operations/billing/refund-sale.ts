import { currency, toUsd } from '../../services/payments/currency.ts'
import { refundOnce } from '../../services/payments/refunds/refund-once.ts'
import type { Operation } from '../operation.ts'

export const refundSale: Operation<'refundSale', 'database' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const { app, payment_id: paymentId } = params
  service.tenants.requireRecord(app)
  const amount = body.amount === undefined ? undefined : BigInt(body.amount)
  const done = await refundOnce(service, { app, paymentId, amount })
  return {
    refund_id: done.id,
    payment_id: done.payment_id,
    buyer: done.buyer,
    amount: done.amount,
    ...currency,
    usd: toUsd({ amount: done.amount }),
    time: new Date(Number(done.time_ms)).toISOString(),
  }
}
