import { makeInvalidFault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { Call, Uses } from '../../services/call.ts'
import { isCsvAsked, makeCsvReply } from '../../services/listing/pages.ts'
import type { Transaction, TransactionPlace } from '../../services/payments/transactions.ts'
import { describeTransaction } from './describe-transaction.ts'

/** Answers a page of transactions, of which one more was read than is given, as JSON or CSV. */
export function answerTransactions(
  { service, requestInfo }: { readonly service: Uses<'payments'> } & Pick<Call, 'requestInfo'>,
  page: {
    readonly found: readonly Transaction[]
    readonly limit: number
    readonly format: string | undefined
  },
) {
  const { found, limit, format } = page
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  const transactions = rows.map((row) => describeTransaction(service.payments, row))
  const next = last === undefined ? null : `${last.created_at_ms}.${last.id}`
  return isCsvAsked(requestInfo, format)
    ? formatTransactions(transactions, next)
    : { transactions, next_cursor: next }
}

/** A cursor is a time and an id; that of a refund ends with the id of its application. */
export function parseCursor(cursor: string | undefined): TransactionPlace | undefined {
  if (cursor === undefined) return undefined
  const [, at, id] = /^(\d{1,18})\.([\w-]{1,180})$/.exec(cursor) ?? []
  if (at === undefined || id === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { at: BigInt(at), id }
}

function formatTransactions(
  rows: readonly ReturnType<typeof describeTransaction>[],
  next: string | null,
): Promise<HttpReply> {
  const columns = ['id', 'kind', 'status', 'app_id', 'operation', 'amount', 'network'] as const
  const rest = ['from', 'to', 'transaction_hash', 'error', 'created_at'] as const
  const names = [...columns, ...rest]
  return makeCsvReply([...names, 'receipt', 'explorer'], rows, {
    next,
    toCells: (one) => [
      ...names.map((name) => one[name]),
      one.links.receipt ?? null,
      one.links.explorer ?? null,
    ],
  })
}
