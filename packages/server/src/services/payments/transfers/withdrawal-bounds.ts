import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { hasBought } from '../../../projections/spending.ts'
import { lockName } from '../accounts/account-lock.ts'
import { listWithdrawalTimes, type TransferKind } from './transfer-store.ts'

type Bounded = {
  readonly kind: TransferKind
  readonly account: string
  readonly network: string
  readonly fee: bigint
}

/**
 * Refuses a withdrawal or payout, under the lock of its account, where that made as many as it may: each costs gas.
 * Whoever moves one dollar in a circle through ever new wallets pays a fee for each, or shares one bound with all who
 * buy nothing. Returns whether it counts against that.
 */
export async function refuseTooMany(
  tx: Queryable,
  schema: string,
  { kind, account, network, fee, nowMs }: Bounded & { readonly nowMs: number },
): Promise<boolean> {
  const spanMs = limits.withdrawalSeconds * 1000
  const read = (of: Parameters<typeof listWithdrawalTimes>[1], limit: number) =>
    listWithdrawalTimes(tx, of, { sinceMs: nowMs - spanMs, limit })
  const refuse = (times: readonly number[], max: number, whose: string) => {
    const oldest = times[max - 1]
    if (oldest === undefined) return
    const resetsMs = oldest + spanMs
    const resetsAt = new Date(resetsMs).toISOString()
    throw new Fault('WITHDRAWAL_LIMIT', {
      message: `${whose} made ${max} ${kind}s within ${limits.withdrawalSeconds / 3600} hours; the next one can be made at ${resetsAt}`,
      retryAfterSeconds: Math.ceil((resetsMs - nowMs) / 1000),
      details: { limit: max, resets_at: resetsAt },
    })
  }
  const { withdrawalsMax, payoutsMax, unspentWithdrawalsMax } = limits
  const max = kind === 'payout' ? payoutsMax : withdrawalsMax
  refuse(await read({ account, kind }, max), max, 'The owner of this balance')
  if (fee > 0n || !account.startsWith('wallet:')) return false
  if (await hasBought(tx, schema, account)) return false
  // One after the other, in all processes: each counts those before it.
  await lockName(tx, `withdrawals:${network}`)
  const others = await read({ unspentOn: network }, unspentWithdrawalsMax)
  refuse(others, unspentWithdrawalsMax, 'Wallets that bought nothing')
  return true
}
