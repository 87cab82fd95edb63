import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { findFirstMovement, readTrades } from '../../../projections/spending.ts'
import { lockName } from '../accounts/account-lock.ts'
import { countTransfers, listWithdrawalTimes, type TransferKind } from './transfer-store.ts'

type Bounded = {
  readonly kind: TransferKind
  readonly account: string
  readonly network: string
  readonly fee: bigint
  /** The network's smallest payment, which covers the gas of one transfer. */
  readonly least: bigint
  readonly nowMs: number
}

const spanMs = limits.withdrawalSeconds * 1000

/**
 * Refuses a withdrawal or payout, under the lock of its account, where that made as many as it may: each costs gas.
 * Whoever moves one dollar in a circle through ever new wallets or applications pays a fee for each, or trades for it, or
 * shares one bound with all who do neither. Returns whether it counts against that.
 */
export async function refuseTooMany(
  tx: Queryable,
  schema: string,
  asked: Bounded,
): Promise<boolean> {
  const { kind, account, network, fee, nowMs } = asked
  const sinceMs = nowMs - spanMs
  const { withdrawalsMax, payoutsMax, unspentWithdrawalsMax } = limits
  const max = kind === 'payout' ? payoutsMax : withdrawalsMax
  const own = await listWithdrawalTimes(tx, { account, kind }, { sinceMs, limit: max })
  const oldest = own[max - 1]
  if (oldest !== undefined)
    throw makeLimitFault(asked, {
      max,
      resetsMs: oldest + spanMs,
      whose: 'The owner of this balance',
    })
  if (fee > 0n) return false
  const { sum, sinceMs: tradesMs } = await readTrades(tx, schema, account)
  if (sum >= asked.least * ((await countTransfers(tx, account, tradesMs)) + 1n)) return false
  const before = await countTransfers(tx, account)
  // Nobody else holds up the first one for ever.
  const freeMs = before === 0n ? await findFreeTime(tx, schema, asked) : undefined
  if (freeMs !== undefined && freeMs <= nowMs) return false
  // One after the other, in all processes: each counts those before it.
  await lockName(tx, `withdrawals:${network}`)
  const page = { sinceMs, limit: unspentWithdrawalsMax }
  const others = await listWithdrawalTimes(tx, { unspentOn: network }, page)
  const oldestOther = others[unspentWithdrawalsMax - 1]
  if (oldestOther === undefined) return true
  throw makeLimitFault(asked, {
    max: unspentWithdrawalsMax,
    resetsMs: Math.min(oldestOther + spanMs, freeMs ?? Number.POSITIVE_INFINITY),
    whose: `Balances that trade less than the network's smallest payment (${asked.least}) for each withdrawal`,
    ...(freeMs !== undefined && { freeMs }),
  })
}

/** Finds from when the first withdrawal of an account is held up by nobody else. */
async function findFreeTime(
  tx: Queryable,
  schema: string,
  { account }: Bounded,
): Promise<number | undefined> {
  const firstMs = await findFirstMovement(tx, schema, account)
  return firstMs === undefined ? undefined : firstMs + limits.firstWithdrawalSeconds * 1000
}

function makeLimitFault(
  { kind, nowMs }: Bounded,
  {
    max,
    resetsMs,
    whose,
    freeMs,
  }: {
    readonly max: number
    readonly resetsMs: number
    readonly whose: string
    readonly freeMs?: number
  },
): Fault {
  const resetsAt = new Date(resetsMs).toISOString()
  const hours = limits.withdrawalSeconds / 3600
  const atLatest =
    freeMs === undefined
      ? ''
      : `, and this balance's first one at ${new Date(freeMs).toISOString()} at the latest`
  return new Fault('WITHDRAWAL_LIMIT', {
    message: `${whose} made ${max} ${kind}s within ${hours} hours; the next one can be made at ${resetsAt}${atLatest}`,
    retryAfterSeconds: Math.ceil((resetsMs - nowMs) / 1000),
    details: { limit: max, resets_at: resetsAt },
  })
}
