import { Fault } from '../../base/fault.ts'
import { findPaymentId } from '../../services/payments/replies/receipt-id.ts'
import type { Operation } from '../operation.ts'
import { findReceipt } from './find-receipt.ts'

export const getReceipt: Operation<'getReceipt', 'database' | 'tenants'> = async (
  { service },
  { params },
) => {
  const paymentId = findPaymentId(params.id)
  const receipt = paymentId && (await findReceipt(service, paymentId))
  if (!receipt)
    throw new Fault('RECEIPT_NOT_FOUND', { message: `There is no receipt ${params.id}` })
  return receipt
}
