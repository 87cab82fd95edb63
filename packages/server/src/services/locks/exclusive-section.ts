import { within } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Tenant } from '../applications/tenancy.ts'

/** Who has collections to himself keeps others waiting, so the tables get only so long to catch up. */
const catchUpMs = 10_000

/** Has the collections alone, with tables that show every write that came before. */
export function alone<T>(
  tenant: Tenant,
  { world, collections }: { world: World; collections: readonly string[] },
  work: () => Promise<T>,
): Promise<T> {
  return tenant.exclusion.run(collections, async () => {
    const applied = tenant.chain.flushed().then(async (height) => {
      await tenant.chain.whenApplied(height)
      return true
    })
    if (await within(applied, { world, ms: catchUpMs, otherwise: false })) return work()
    throw new Fault('UNAVAILABLE', {
      message: 'The tables of this application are behind its log; try again shortly.',
      retryAfterSeconds: 1,
    })
  })
}
