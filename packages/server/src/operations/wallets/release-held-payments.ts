import { Fault } from '../../base/fault.ts'
import { releaseHeld } from '../../services/payments/deposits/release-held.ts'
import type { Operation } from '../operation.ts'
import { describeHeld } from './describe-held.ts'

export const releaseHeldPayments: Operation<'releaseHeldPayments', 'database' | 'tenants'> = async (
  { service },
  { body },
) => {
  const { payment_id: paymentId, payer } = body
  const released = await releaseHeld(service, { paymentId, payer: payer?.toLowerCase() })
  if (paymentId !== undefined && released.payments.length === 0)
    throw new Fault('PAYMENT_NOT_FOUND', { message: `Nothing is held of a payment ${paymentId}` })
  return describeHeld(released)
}
