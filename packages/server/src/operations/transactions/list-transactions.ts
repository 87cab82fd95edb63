import { makeInvalidFault } from '../../base/fault.ts'
import { isCsvAsked } from '../../services/listing/pages.ts'
import {
  listTransactions as readTransactions,
  type TransactionPlace,
} from '../../services/payments/transactions.ts'
import type { Operation } from '../operation.ts'
import { describeTransaction, formatTransactions } from './describe-transaction.ts'

export const listTransactions: Operation<
  'listTransactions',
  'database' | 'tenants' | 'payments'
> = async ({ service, requestInfo }, { params, query }) => {
  service.tenants.requireRecord(params.app)
  const { limit = 100 } = query
  const page = { app: params.app, before: parseCursor(query.cursor), limit: limit + 1 }
  const found = await readTransactions(service.database, page)
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  const transactions = rows.map((row) => describeTransaction(service.payments, row))
  const next = last === undefined ? null : `${last.created_at_ms}.${last.id}`
  return isCsvAsked(requestInfo, query.format)
    ? formatTransactions(transactions, next)
    : { transactions, next_cursor: next }
}

function parseCursor(cursor: string | undefined): TransactionPlace | undefined {
  if (cursor === undefined) return undefined
  const [, at, id] = /^(\d{1,18})\.(\w{1,180})$/.exec(cursor) ?? []
  if (at === undefined || id === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { at: BigInt(at), id }
}
