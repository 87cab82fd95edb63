import { dayMs } from '../base/durations.ts'
import type { AuthorizationRecord } from './authorization.ts'

/**
 * The limits of a budget: of a key that pays, or of an authorization. Amounts are atomic units; undefined is without
 * limit.
 */
export type SpendingLimits = {
  readonly perPayment?: Limit<bigint>
  readonly lifetime?: Limit<bigint>
  readonly daily?: Limit<bigint>
  /** Milliseconds since 1970. */
  readonly end?: Limit<number>
  /** Applications that may be paid. */
  readonly targets?: Limit<readonly string[]>
}

/** Names what a payment by a key counts on: its budget, and the day in UTC. */
export type Budget = { readonly id: string; readonly day: string }

/** `name` is the limit's name where it was set. */
type Limit<T> = { readonly name: string; readonly value: T }

/** A payment that is asked for, and what was spent before it, payments under way included. */
export type Spending = {
  readonly amount: bigint
  readonly spent: bigint
  readonly spentToday: bigint
  readonly nowMs: number
  readonly targets: readonly string[]
}

/** A limit that a payment would break; `left` is what it still allows. */
export type BrokenLimit = {
  readonly limit: string
  readonly allowed: unknown
  readonly left?: bigint
  /** Milliseconds since 1970; undefined where it never begins anew. */
  readonly resetsAtMs?: number
}

/** Formats the day in UTC, on which a daily limit counts. */
export function formatDay(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10)
}

/** Finds the first limit that the payment would break. */
export function findBrokenLimit(limits: SpendingLimits, use: Spending): BrokenLimit | undefined {
  const { perPayment, lifetime, daily, end, targets } = limits
  if (end !== undefined && use.nowMs >= end.value)
    return { limit: end.name, allowed: new Date(end.value).toISOString() }
  if (targets !== undefined && !use.targets.every((one) => targets.value.includes(one)))
    return { limit: targets.name, allowed: targets.value }
  if (perPayment !== undefined && use.amount > perPayment.value)
    return { limit: perPayment.name, allowed: String(perPayment.value), left: perPayment.value }
  const broken =
    findBrokenSum(lifetime, use.spent, use.amount) ??
    findBrokenSum(daily, use.spentToday, use.amount)
  if (broken === undefined) return undefined
  const isDaily = broken.limit === daily?.name
  return isDaily ? { ...broken, resetsAtMs: (Math.floor(use.nowMs / dayMs) + 1) * dayMs } : broken
}

function findBrokenSum(
  limit: Limit<bigint> | undefined,
  spent: bigint,
  amount: bigint,
): BrokenLimit | undefined {
  if (limit === undefined || spent + amount <= limit.value) return undefined
  const left = limit.value > spent ? limit.value - spent : 0n
  return { limit: limit.name, allowed: String(limit.value), left }
}

/** Reads the limits of an authorization; its end is that of its key. */
export function readAuthorizationLimits(one: AuthorizationRecord): SpendingLimits {
  const { spend_limit, max_per_tx, daily_limit, allowed_targets: targets } = one
  return {
    lifetime: { name: 'spend_limit', value: BigInt(spend_limit) },
    ...(max_per_tx !== null && { perPayment: { name: 'max_per_tx', value: BigInt(max_per_tx) } }),
    ...(daily_limit !== null && { daily: { name: 'daily_limit', value: BigInt(daily_limit) } }),
    ...(targets !== null && { targets: { name: 'allowed_targets', value: targets } }),
  }
}

/** Reads the limits of a key, as the contract checked them. */
export function readKeyLimits(pay: Readonly<Record<string, unknown>> | null): SpendingLimits {
  const amount = (name: string) => {
    const value = pay?.[name] ?? undefined
    return value === undefined ? undefined : { name, value: BigInt(String(value)) }
  }
  const [perPayment, lifetime, daily] = [
    amount('max_payment_per_tx'),
    amount('spend_allowance'),
    amount('daily_allowance'),
  ]
  const { expires_at: end, allowed_target_apps: targets } = pay ?? {}
  return {
    ...(perPayment && { perPayment }),
    ...(lifetime && { lifetime }),
    ...(daily && { daily }),
    // A time that cannot be reckoned with has always been over.
    ...(typeof end === 'string' && {
      end: { name: 'expires_at', value: Number.isNaN(Date.parse(end)) ? 0 : Date.parse(end) },
    }),
    ...(Array.isArray(targets) && {
      targets: { name: 'allowed_target_apps', value: targets.map(String) },
    }),
  }
}
