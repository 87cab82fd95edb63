import { Fault } from '../../base/fault.ts'
import { findTransaction } from '../../services/payments/transactions.ts'
import type { Operation } from '../operation.ts'
import { describeTransaction } from './describe-transaction.ts'

export const getTransaction: Operation<'getTransaction', 'database' | 'payments'> = async (
  { service },
  { params },
) => {
  const found = await findTransaction(service.database, params.id)
  if (found === undefined)
    throw new Fault('TRANSACTION_NOT_FOUND', { message: `There is no transaction ${params.id}` })
  return describeTransaction(service.payments, found)
}
