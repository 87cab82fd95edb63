import { refuseOtherWallet } from '../../services/access/refuse-other-wallet.ts'
import { listPayerTransactions } from '../../services/payments/transactions.ts'
import type { Operation } from '../operation.ts'
import { answerTransactions, parseCursor } from './answer-transactions.ts'

export const listWalletTransactions: Operation<
  'listWalletTransactions',
  'database' | 'tenants' | 'payments'
> = async ({ service, requestInfo, caller }, { params, query }) => {
  const payer = params.address.toLowerCase()
  refuseOtherWallet(caller, payer)
  const { limit = 100 } = query
  const page = { payer, before: parseCursor(query.cursor), limit: limit + 1 }
  const { chain } = service.tenants.system
  await chain.whenApplied(chain.head().height)
  const found = await listPayerTransactions(service.database, page)
  return answerTransactions({ service, requestInfo }, { found, limit, format: query.format })
}
