import { limits } from '@tollbase/contract/limits'
import { computeDue, type Size } from '../../../model/compute-cost.ts'
import { isMetered } from '../../../model/compute-metered-cost.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import { type Claim, getBuyerAccount, getPayerAccount } from '../claims/claim-store.ts'
import { computeShare, listParts } from '../make-sale.ts'
import { computeMeteredSale } from '../meters/meter.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Terms } from '../purchase.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'

/**
 * Throws RATE_LIMITED for a sale out of an account of which the platform gets less than its entry costs, where that
 * account has used up the rate of such sales. All others pass, whatever was sold before. Prices by use are read without a
 * lock: at the edge of a quota one more may pass, which counts.
 */
export async function refuseCheapSale(
  { rates, split, database, world }: PaymentPorts,
  { claim, terms }: { readonly claim: Claim; readonly terms: Pick<Terms, 'prices' | 'payees'> },
  measure: () => readonly (Size | null)[],
): Promise<void> {
  const account = getPayerAccount(claim)
  if (rates?.isUsedUp('payment', account) !== true) return
  const sizes = measure()
  const metered = { id: claim.id, account: getBuyerAccount(claim), terms, nowMs: world.now() }
  const { due } = isMetered(terms.prices)
    ? await computeMeteredSale(database, metered, sizes)
    : { due: computeDue(terms.prices, sizes) }
  const charge = due.reduce((sum, cost) => sum + cost, 0n)
  const seller = toApplicationAccount(claim.app)
  const share = computeShare({ charge, seller, split, parts: listParts(due, terms.payees) })
  if (share < limits.entryShareAtomicMin) rates.refuseUsedUp('payment', account)
}

/** Counts a sale out of an account in its rate, if it does not pay for its entry. */
export function noteCheapSale(
  { rates }: Pick<PaymentPorts, 'rates'>,
  claim: Claim,
  { transaction, paysForEntry }: BoughtReply,
): void {
  if (transaction === null && !paysForEntry)
    rates?.charge('payment', { key: getPayerAccount(claim), cost: 1 })
}
