import { makeInvalidFault } from '../../base/fault.ts'
import type { Uses } from '../../services/call.ts'
import { readFunds } from '../../services/payments/accounts/account-lock.ts'
import { currency, toUsd } from '../../services/payments/currency.ts'
import { describeMovement } from '../../services/payments/describe-movement.ts'

/**
 * Reads the balance of a ledger account, and how much of it is on its way: held for sales, or going out. Movements
 * of blocks not yet projected are waited for.
 */
export async function readWalletBalance(service: Uses<'database' | 'tenants'>, account: string) {
  const { chain } = service.tenants.system
  await chain.whenApplied(chain.head().height)
  const { available, pending } = await readFunds(service.database, account)
  const amounts = { available: String(available), pending: String(pending) }
  return { ...amounts, ...currency, usd: toUsd(amounts) }
}

const cursorForm = /^(\d{1,18})\.(\d{1,9})$/

/** Reads a page of movements on an account, newest first. */
export async function readWalletEntries(
  service: Uses<'database' | 'tenants'>,
  account: string,
  page: { limit?: number; cursor?: string },
) {
  const [, leaf, line] = cursorForm.exec(page.cursor ?? '') ?? []
  if (page.cursor !== undefined && (leaf === undefined || line === undefined))
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  const before =
    leaf === undefined || line === undefined
      ? undefined
      : { leaf: BigInt(leaf), line: Number(line) }
  const limit = page.limit ?? 100
  const { chain, ledger, schema } = service.tenants.system
  await chain.whenApplied(chain.head().height)
  const found = await ledger.listMovements(service.database, schema, {
    account,
    before,
    limit: limit + 1,
  })
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return {
    entries: rows.map(describeMovement),
    next_cursor: last === undefined ? null : `${last.leaf}.${last.line}`,
  }
}
