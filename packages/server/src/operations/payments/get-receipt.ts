import { Fault } from '../../base/fault.ts'
import { paymentIdOf } from '../../services/payments/receipt-id.ts'
import type { Operation } from '../operation.ts'
import { receiptOf } from './receipt.ts'

export const getReceipt: Operation<'getReceipt'> = async ({ service }, { params }) => {
  const paymentId = paymentIdOf(params.id)
  const receipt = paymentId && (await receiptOf(service, paymentId))
  if (!receipt)
    throw new Fault('RECEIPT_NOT_FOUND', { message: `There is no receipt ${params.id}` })
  return receipt
}
