import { limits } from '@tollbase/contract/limits'
import type { ApplicationRecord } from './application.ts'

/** An application's settings of payouts, as an entry of the service's chain keeps them. Amounts are atomic units. */
export type PayoutSettings = {
  readonly app_id: string
  readonly auto_payout_enabled: boolean
  /** The part of the balance that stays; it only grows. */
  readonly locked_balance: string
  /** A larger part, which stays from milliseconds since 1970 on where nobody sets another one until then. */
  readonly locked_later?: { readonly amount: string; readonly from_ms: number } | null
  readonly min_payout: string
  /** The least amount that is paid out by itself; null: the least that can be. */
  readonly payout_threshold: string | null
  /** Sales are paid directly to the destination where they can be; settings from before it was a choice lack it. */
  readonly direct_settlement?: boolean
  /** The address that was chosen; null where it is the owner's. */
  readonly destination: string | null
  /** Milliseconds since 1970 from which it counts, and the address that counts until then. */
  readonly destination_from_ms: number
  readonly destination_before: string | null
  /** The caller who changed them last. */
  readonly changed_by: string | null
}

export function makeDefaultSettings(appId: string): PayoutSettings {
  return {
    app_id: appId,
    auto_payout_enabled: false,
    locked_balance: '0',
    min_payout: '0',
    payout_threshold: null,
    direct_settlement: false,
    destination: null,
    destination_from_ms: 0,
    destination_before: null,
    changed_by: null,
  }
}

type Owned = Pick<ApplicationRecord, 'owner_address' | 'owner_trusted_from_ms'>

/** Returns whether the owner decides about money: one whom a key named does so only after a time. */
export function isOwnerTrusted(
  { owner_trusted_from_ms: fromMs }: Pick<Owned, 'owner_trusted_from_ms'>,
  nowMs: number,
): boolean {
  return (fromMs ?? 0) <= nowMs
}

/** Finds the owner whom nobody but itself and the operator can replace at once: the former one until the new one is trusted. */
export function findSettledOwner(
  owned: Owned & Pick<ApplicationRecord, 'owner_before'>,
  nowMs: number,
): string | null {
  return isOwnerTrusted(owned, nowMs) ? owned.owner_address : (owned.owner_before ?? null)
}

/** Finds where payouts go at this moment; undefined where nobody who may say so has said it for long enough. */
export function findDestination(
  { destination, destination_from_ms: fromMs, destination_before: before }: PayoutSettings,
  owned: Owned,
  nowMs: number,
): string | undefined {
  const chosen = fromMs <= nowMs ? destination : before
  if (chosen !== null) return chosen
  return isOwnerTrusted(owned, nowMs) ? (owned.owner_address ?? undefined) : undefined
}

/** Finds where payouts will go later than now, and from when on. */
export function findPendingDestination(
  { destination, destination_from_ms: fromMs }: PayoutSettings,
  { owner_address: owner, owner_trusted_from_ms: trustedFromMs = 0 }: Owned,
  nowMs: number,
): { readonly address: string; readonly fromMs: number } | undefined {
  if (destination !== null) return fromMs > nowMs ? { address: destination, fromMs } : undefined
  if (owner === null || trustedFromMs <= nowMs) return undefined
  return { address: owner, fromMs: trustedFromMs }
}

/** Puts in force what was locked for later, once its time has come. */
export function applyLock(settings: PayoutSettings, nowMs: number): PayoutSettings {
  const { locked_later: later } = settings
  if (!later || later.from_ms > nowMs) return settings
  return { ...settings, locked_balance: later.amount, locked_later: null }
}

/**
 * Locks a part of the balance, not less than is locked. An amount that a key locks counts after as much time as a
 * destination that it chooses: nobody can unlock it then, and a stolen key could lock up everything that is ever earned.
 */
export function chooseLock(
  settings: PayoutSettings,
  amount: bigint,
  by: { readonly isAtOnce: boolean; readonly nowMs: number },
): PayoutSettings {
  const { locked_balance: current, locked_later: later } = settings
  if (by.isAtOnce || amount === BigInt(current))
    return { ...settings, locked_balance: String(amount), locked_later: null }
  // The time of one that is on its way runs on.
  if (later && BigInt(later.amount) === amount) return settings
  const fromMs = by.nowMs + limits.payoutDestinationSeconds * 1000
  return { ...settings, locked_later: { amount: String(amount), from_ms: fromMs } }
}

/**
 * Chooses another destination. Only the owner's signature changes it at once. After a change with a stolen key the
 * money still goes to the former destination, until the owner has had time to notice.
 */
export function chooseDestination(
  settings: PayoutSettings,
  address: string,
  by: { readonly owned: Owned; readonly isOwner: boolean; readonly nowMs: number },
): PayoutSettings {
  const { owned, isOwner, nowMs } = by
  const current = findDestination(settings, owned, nowMs) ?? null
  const isAtOnce = current === address || (isOwner && isOwnerTrusted(owned, nowMs))
  // The time of one that is on its way runs on.
  if (settings.destination === address && !isAtOnce) return settings
  return {
    ...settings,
    destination: address,
    destination_from_ms: isAtOnce ? nowMs : nowMs + limits.payoutDestinationSeconds * 1000,
    destination_before: isAtOnce ? null : current,
  }
}
