import { makeInvalidFault } from '../../base/fault.ts'
import {
  listTransactions as readTransactions,
  type TransactionPlace,
} from '../../services/payments/transactions.ts'
import type { Operation } from '../operation.ts'
import { describeTransaction } from './describe-transaction.ts'

export const listTransactions: Operation<'listTransactions', 'database' | 'tenants'> = async (
  { service },
  { params, query },
) => {
  service.tenants.requireRecord(params.app)
  const { limit = 100 } = query
  const page = { app: params.app, before: parseCursor(query.cursor), limit: limit + 1 }
  const found = await readTransactions(service.database, page)
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return {
    transactions: rows.map(describeTransaction),
    next_cursor: last === undefined ? null : `${last.created_at_ms}.${last.id}`,
  }
}

function parseCursor(cursor: string | undefined): TransactionPlace | undefined {
  if (cursor === undefined) return undefined
  const [, at, id] = /^(\d{1,18})\.(\w{1,180})$/.exec(cursor) ?? []
  if (at === undefined || id === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { at: BigInt(at), id }
}
