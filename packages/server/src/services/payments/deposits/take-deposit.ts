import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../../base/fault.ts'
import type { HttpReply } from '../../../http/reply.ts'
import { noSize } from '../../../model/compute-cost.ts'
import { freePrice } from '../../../model/policy.ts'
import type { Call } from '../../call.ts'
import { depositOperation } from '../purchase.ts'
import { findLeastDeposit } from './deposit-minimum.ts'

/** A deposit that is asked for. */
export type DepositOrder = {
  /** The account of the ledger that gets the money. */
  readonly account: string
  /** The application that it belongs to; `system` where it is a payer's. */
  readonly app: string
  readonly amount: bigint
  readonly description: string
}

/**
 * Asks for a payment of exactly this amount, and books it on the account; repeated, it answers the same. It is always
 * settled: money that is on a balance already would only change its owner.
 */
export function takeDeposit(
  call: Call<'payments'>,
  { account, app, amount, description }: DepositOrder,
): Promise<HttpReply> {
  const { payments } = call.service
  const leasts = payments.ports.methods.map(({ network }) => findLeastDeposit(network))
  for (const least of [limits.depositAtomicMin, ...leasts])
    if (amount < least)
      throw makeInvalidFault('/amount', `must be at least ${least}: a deposit costs gas`)
  if (amount > limits.amountAtomicMax)
    throw makeInvalidFault('/amount', `must be at most ${limits.amountAtomicMax}`)
  return payments.sell(call, {
    operation: depositOperation,
    description,
    meaning: [account, String(amount)],
    payees: [{ account, platformBasisPoints: 0 }],
    pricedBy: [],
    onlyByPayment: true,
    pricesNow: () => [{ ...freePrice, perAccess: amount, emptyFree: false }],
    mostUnder: () => [noSize],
    sellerUnder: () => app,
    breakdownUnder: () => ({ per_access: Number(amount) }),
    // The money is all that there is to deliver.
    deliver: () => Promise.reject(new Error('a deposit buys nothing')),
  })
}
