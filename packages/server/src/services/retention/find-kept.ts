import { findSizeAt } from '../../chain/find-size.ts'
import type { Queryable } from '../../database/database.ts'
import type { Tenant } from '../applications/tenants.ts'
import { computeKeptMs } from './kept-time.ts'

/** Finds the first leaf that is not older than so many days; those before it are. */
export function findFirstKept(
  database: Queryable,
  { schema, chain }: Tenant,
  { days, now }: { readonly days: number; readonly now: number },
): Promise<number> {
  const { height } = chain.head()
  return findSizeAt(database, { schema, height, time: now - computeKeptMs(days) })
}
