import type { Database } from '../../../database/database.ts'
import { takeFromAccount } from '../accounts/account-lock.ts'
import { insertHold } from '../accounts/holds.ts'
import { tryEvent } from './claim-steps.ts'
import { type Claim, insertClaim } from './claim-store.ts'
import { type Keeping, putReply } from './reply-store.ts'

/**
 * Claims a payment with its answer, before its money is asked for, and holds what the sale will owe the platform on the
 * seller's account: all of it or nothing. `short` where that account has less.
 */
export function prepareClaim(
  database: Database,
  order: {
    readonly claim: Claim
    /** The same as it is, where it failed before. */
    readonly found: Claim | undefined
    readonly keeping: Keeping
    readonly fee: { readonly account: string; readonly amount: bigint }
  },
): Promise<'prepared' | 'short' | 'overtaken'> {
  const { claim, found, keeping, fee } = order
  return takeFromAccount(database, fee.account, async (tx, available) => {
    if (available < fee.amount) return 'short'
    const isOurs =
      found === undefined
        ? await insertClaim(tx, claim, 'prepared')
        : await tryEvent({ database: tx }, found, { event: 'prepared', use: claim })
    if (!isOurs) return 'overtaken'
    await putReply(tx, claim.id, keeping)
    if (fee.amount > 0n)
      await insertHold(tx, { id: claim.id, account: fee.account, amount: fee.amount })
    return 'prepared'
  })
}
