import { listTransactions as readTransactions } from '../../services/payments/transactions.ts'
import type { Operation } from '../operation.ts'
import { answerTransactions, parseCursor } from './answer-transactions.ts'

export const listTransactions: Operation<
  'listTransactions',
  'database' | 'tenants' | 'payments'
> = async ({ service, requestInfo }, { params, query }) => {
  service.tenants.requireRecord(params.app)
  const { limit = 100 } = query
  const page = { app: params.app, before: parseCursor(query.cursor), limit: limit + 1 }
  const found = await readTransactions(service.database, page)
  return answerTransactions({ service, requestInfo }, { found, limit, format: query.format })
}
