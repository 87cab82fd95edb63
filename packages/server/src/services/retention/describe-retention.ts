import { limits } from '@tollbase/contract/limits'
import type { Collection } from '../../model/readable.ts'
import { computeKeptMs } from './retention-cutoff.ts'

export type Tier = 'free' | 'extended' | 'permanent'

export function chooseTier(days: number | null): Tier {
  if (days === null) return 'permanent'
  return days <= limits.retentionFreeDays ? 'free' : 'extended'
}

/** Describes how long the records of a collection are kept, at a time in milliseconds since 1970. */
export function describeRetention({ name, retention }: Collection, now: number) {
  const days = retention?.days ?? null
  return {
    collection: name,
    retention_days: days,
    effective_at: retention?.effective_at ?? null,
    expires_before: days === null ? null : new Date(now - computeKeptMs(days)).toISOString(),
    free_days: limits.retentionFreeDays,
    tier: chooseTier(days),
  }
}
