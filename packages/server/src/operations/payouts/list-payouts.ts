import { makeInvalidFault } from '../../base/fault.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { TransferCursor } from '../../services/payments/transfers/transfer-store.ts'
import type { Operation } from '../operation.ts'
import { describePayout } from './describe-payout.ts'

export const listPayouts: Operation<'listPayouts', 'tenants' | 'transfers'> = async (
  { service },
  { params, query },
) => {
  service.tenants.requireRecord(params.app)
  const { limit = 100 } = query
  const before = parseCursor(query.cursor)
  const found = await service.transfers.list({
    account: toApplicationAccount(params.app),
    kind: 'payout',
    ...(before && { before }),
    limit: limit + 1,
  })
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  const signed = await Promise.all(rows.map((one) => service.transfers.listSigned(one)))
  return {
    payouts: rows.map((one, at) => ({
      ...describePayout(one),
      transaction_hash: one.transaction,
      signed_transactions: (signed[at] ?? []).map(({ transaction, atMs }) => ({
        transaction_hash: transaction,
        signed_at: new Date(Number(atMs)).toISOString(),
      })),
      reason: one.reason,
      created_at: new Date(Number(one.created_at_ms)).toISOString(),
    })),
    next_cursor: last === undefined ? null : `${last.created_at_ms}.${last.id}`,
  }
}

function parseCursor(cursor: string | undefined): TransferCursor | undefined {
  if (cursor === undefined) return undefined
  const [, at, id] = /^(\d{1,18})\.(\w{1,180})$/.exec(cursor) ?? []
  if (at === undefined || id === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { at: BigInt(at), id }
}
