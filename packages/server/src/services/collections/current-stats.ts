import { awaitWithin } from '../../base/await-within.ts'
import type { CollectionStats } from '../../model/collection-stats.ts'
import { readStats } from '../../projections/collection-store.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'

/** After this time the counts are those that the tables show. */
const patienceMs = 1_000

/**
 * Reads counts and bytes of live records by collection id, with every write that was acknowledged before: a caller
 * that has just stored something finds it counted, although the tables follow the log a moment later.
 */
export async function readCurrentStats(
  { world, database }: Uses<'world' | 'database'>,
  { chain, schema }: Pick<Tenant, 'chain' | 'schema'>,
): Promise<ReadonlyMap<string, CollectionStats>> {
  // A stopped chain shows what it has.
  const applied = chain.whenApplied(chain.head().height).catch(() => undefined)
  await awaitWithin(applied, { world, ms: patienceMs, otherwise: undefined })
  return readStats(database, schema)
}
