import { limits } from '@tollbase/contract/limits'
import {
  type HeldFilter,
  type HeldPayment,
  listHeldPayments,
} from '../../../projections/held-payments.ts'
import { type LedgerBody, listPostings } from '../../../projections/ledger-entry.ts'
import type { Uses } from '../../call.ts'

/** A page of held payments, and the id after which there are more; null where there are none. */
export type HeldPage = { readonly payments: HeldPayment[]; readonly next: string | null }

/** Reads held payments by their ids, with all that was booked until now. */
export async function readHeldPage(
  { database, tenants }: Uses<'database' | 'tenants'>,
  filter: HeldFilter,
): Promise<HeldPage> {
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  const found = await listHeldPayments(database, schema, { ...filter, limit: filter.limit + 1 })
  const payments = found.slice(0, filter.limit)
  const last = found.length > filter.limit ? payments.at(-1) : undefined
  return { payments, next: last?.payment_id ?? null }
}

/**
 * Puts the money of held payments on the accounts that they are held for, each by an entry that counts once. Money
 * that its chain does not have stays unspent there: its hold counts from this entry on.
 */
export async function releaseHeld(
  service: Uses<'database' | 'tenants'>,
  filter: Pick<HeldFilter, 'paymentId' | 'payer'>,
): Promise<HeldPage> {
  const page = await readHeldPage(service, { ...filter, limit: limits.heldReleasedMax })
  const { chain } = service.tenants.system
  if (page.payments.length > 0) await chain.append(page.payments.map(makeReleaseEntry))
  await chain.whenApplied(chain.head().height)
  return page
}

/** Makes the entry that puts the held money of a payment on the account that it is held for. */
function makeReleaseEntry({ payment_id, identity, held_on, account, amount }: HeldPayment) {
  const body: LedgerBody = {
    kind: 'release',
    payment_id,
    identity,
    amount,
    postings: listPostings([
      [held_on, -BigInt(amount)],
      [account, BigInt(amount)],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}
