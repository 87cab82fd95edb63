import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Tenant } from '../applications/tenants.ts'

/** The time that the tables get to catch up, short because an exclusive section keeps others waiting. */
const catchUpMs = 10_000

/** Runs the work in an exclusive section of the collections, with tables that show every earlier write. */
export function runExclusively<T>(
  tenant: Tenant,
  { world, collections }: { world: World; collections: readonly string[] },
  work: () => Promise<T>,
): Promise<T> {
  return tenant.collectionLock.run(collections, async () => {
    const applied = tenant.chain.flushed().then(async (height) => {
      await tenant.chain.whenApplied(height)
      return true
    })
    if (await awaitWithin(applied, { world, ms: catchUpMs, otherwise: false })) return work()
    throw new Fault('UNAVAILABLE', {
      message: 'The tables of this application are behind its log; try again shortly.',
      retryAfterSeconds: 1,
    })
  })
}
