import { makeInvalidFault } from '../../base/fault.ts'
import { isCsvAsked, makeCsvReply } from '../../services/listing/pages.ts'
import { toUsd } from '../../services/payments/currency.ts'
import { findExplorerLink } from '../../services/payments/explorer-link.ts'
import type { Payments } from '../../services/payments/payments.ts'
import {
  listSignedTransactions,
  type SignedTransaction,
  type SignedWork,
} from '../../services/payments/signed-transactions.ts'
import type { JournalPlace } from '../../x402/list-journal.ts'
import type { Operation } from '../operation.ts'

export const listPlatformTransactions: Operation<
  'listPlatformTransactions',
  'database' | 'payments'
> = async ({ service, requestInfo }, { query }) => {
  const { limit = 100 } = query
  const page = { before: parseCursor(query.cursor), limit: limit + 1 }
  const found = await listSignedTransactions(service.database, page)
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  const transactions = rows.map((row) => describe(service.payments, row))
  const next =
    last === undefined
      ? null
      : Buffer.from(`${last.created_at_ms}.${last.id}`).toString('base64url')
  return isCsvAsked(requestInfo, query.format)
    ? formatSigned(transactions, next)
    : { transactions, next_cursor: next }
}

/** A cursor is a time and a name; names have characters that an address would have to escape. */
function parseCursor(cursor: string | undefined): JournalPlace | undefined {
  if (cursor === undefined) return undefined
  const text = Buffer.from(cursor, 'base64url').toString()
  const [, at, id] = /^(\d{1,18})\.(\S{1,400})$/.exec(text) ?? []
  if (at === undefined || id === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { at: BigInt(at), id }
}

const statuses = {
  signed: 'pending',
  mined: 'confirmed',
  reverted: 'failed',
  replaced: 'failed',
} as const

function describe(payments: Pick<Payments, 'ports'>, one: SignedTransaction) {
  const explorer = findExplorerLink(payments, one)
  return {
    id: one.id,
    status: statuses[one.state],
    network: one.network,
    signer: one.signer,
    nonce: String(one.nonce),
    transaction_hash: one.hash,
    replaced_hashes: [...one.earlier_hashes],
    block_number: one.block_number === null ? null : String(one.block_number),
    created_at: new Date(Number(one.created_at_ms)).toISOString(),
    makes: one.makes.map(describeWork),
    links: explorer === undefined ? {} : { explorer },
  }
}

/** Makes the CSV: a line for each thing that a transaction is for. */
function formatSigned(rows: readonly ReturnType<typeof describe>[], next: string | null) {
  const names = ['id', 'status', 'network', 'signer', 'nonce', 'transaction_hash'] as const
  const lines = rows.flatMap((one) => one.makes.map((work) => ({ one, work })))
  const columns = ['block_number', 'created_at', 'kind', 'made_id', 'amount', 'explorer']
  return makeCsvReply([...names, ...columns], lines, {
    next,
    toCells: ({ one, work: { kind, id, amount } }) => [
      ...names.map((name) => one[name]),
      ...[one.block_number, one.created_at, kind, id, amount, one.links.explorer ?? null],
    ],
  })
}

function describeWork({ kind, id, amount }: SignedWork) {
  return {
    kind,
    id,
    amount,
    usd: amount === null ? { amount: null } : toUsd({ amount }),
    links: id === null ? {} : { transaction: `/api/transactions/${id}` },
  }
}
