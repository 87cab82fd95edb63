import { limits } from '@tollbase/contract/limits'
import { dayMs } from '../../base/durations.ts'
import { findSizeAt } from '../../chain/find-size.ts'
import type { Queryable } from '../../database/database.ts'
import type { Tenant } from '../applications/tenants.ts'

/**
 * The time that versions are kept, in milliseconds: at least as long as a bought answer, since a payment for a write
 * that was interrupted finds by the log what it wrote.
 */
export function computeKeptMs(days: number): number {
  return Math.max(days * dayMs, limits.keptReplySeconds * 1000)
}

/** Finds the first leaf that is not older than so many days; those before it are. */
export function findFirstKept(
  database: Queryable,
  { schema, chain }: Tenant,
  { days, now }: { readonly days: number; readonly now: number },
): Promise<number> {
  const { height } = chain.head()
  return findSizeAt(database, { schema, height, time: now - computeKeptMs(days) })
}
