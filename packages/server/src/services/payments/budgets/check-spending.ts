import { Fault } from '../../../base/fault.ts'
import { formatUnits } from '../../../base/format-usd.ts'
import type { World } from '../../../base/world.ts'
import { type BrokenLimit, type Budget, findBrokenLimit } from '../../../model/spending-limits.ts'
import type { Tenants } from '../../applications/tenants.ts'
import type { PayingKey } from './paying-key.ts'

/** A payment by a key that is about to be held. */
export type KeySpending = {
  readonly paying: PayingKey
  /** The applications that it pays. */
  readonly targets: readonly string[]
  readonly nowMs: number
  /** The day in UTC that it counts on. */
  readonly day: string
}

/** The sums that decide on it, with all that is held: read under the lock of the account that pays. */
type Sums = {
  /** The most that it may be charged. */
  readonly amount: bigint
  readonly spent: bigint
  readonly spentToday: bigint
  /** Undefined for an account that spends all that it has. */
  readonly prepaid: bigint | undefined
}

/**
 * Finds why the key's limits do not allow the payment. Nobody else takes from the account meanwhile, so no two payments
 * count on the same rest. A key that was revoked meanwhile pays nothing.
 */
export function findSpendingFault(
  { tenants, world }: { readonly tenants: Tenants; readonly world: World },
  { paying, targets, nowMs }: KeySpending,
  { amount, spent, spentToday, prepaid }: Sums,
): Fault | undefined {
  const { keys, authorizations } = tenants.system
  const { key, limits } = paying
  const now = world.now()
  if ((keys.find(key.key_hash, now) ?? authorizations.findKey(key.key_hash, now)) === undefined)
    return new Fault('UNAUTHORIZED', { message: 'The key is not known, expired or revoked' })
  const broken = findBrokenLimit(limits, { amount, spent, spentToday, nowMs, targets })
  if (broken !== undefined) return makeLimitFault(broken, amount)
  // A free purchase takes nothing, also where more was spent than is left of what was deposited.
  if (prepaid === undefined || amount === 0n || amount <= prepaid) return undefined
  const left = prepaid > 0n ? prepaid : 0n
  return makeLimitFault({ limit: 'prepaid', allowed: 'what was deposited', left }, amount)
}

function makeLimitFault({ limit, allowed, left, resetsAtMs }: BrokenLimit, asked: bigint): Fault {
  const rest =
    left === undefined
      ? ''
      : `; ${formatUnits(left)} is left, and this may cost ${formatUnits(asked)}`
  const reset = resetsAtMs === undefined ? undefined : new Date(resetsAtMs).toISOString()
  const anew = reset === undefined ? '' : `; it begins anew at ${reset}`
  return new Fault('SPENDING_LIMIT', {
    message: `The key's limit ${limit} does not allow this payment${rest}${anew}`,
    details: {
      ...{ limit, allowed, asked: String(asked), resets_at: reset ?? null },
      ...(left !== undefined && { left: String(left) }),
    },
  })
}

/** Makes the budget that a payment by a key is spent under. */
export function makeBudget({ paying, day }: KeySpending): Budget {
  return { id: paying.budget, day }
}

/** Names what was charged to the payment's budget on its day. */
export function formatSpendingDay({ paying, day }: KeySpending): string {
  return `${paying.budget} ${day}`
}
