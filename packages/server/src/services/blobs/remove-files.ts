import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { reserveFileRemoval } from '../../database/file-hold.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Blobs } from './blobs.ts'
import { listNamedFiles } from './named-files.ts'

type RemovalPorts = {
  readonly database: Database
  readonly blobs: Blobs
  readonly world: World
}

/** Longest wait for the removals of others, and before it for the application's tables. */
const waitMs = 30_000
/** Longest wait for what the tables lack by then, which those of others wait for. */
const waitInTurnMs = 5_000

/**
 * Removes those of an application's files at once that nobody names, and returns their bytes. A backup, or a move, reads
 * files after its rows: while one is under way, or where others take too long, this removes nothing and returns undefined.
 * UNAVAILABLE where the application's tables are too far behind.
 */
export async function removeUnnamedFiles(
  { database, blobs, world }: RemovalPorts,
  tenant: Tenant,
  {
    hashes,
    refuseNeeded,
  }: {
    readonly hashes: readonly string[]
    /** Throws where files may be needed that no row names yet; asked while no file can be published. */
    readonly refuseNeeded: () => void
  },
): Promise<number | undefined> {
  const remove = () =>
    blobs.store.removeUnnamed(tenant.application.number, hashes, async (free) => {
      // A row that was acknowledged names its file, also one that came after the tables had the others.
      await awaitTables(tenant, { world, ms: waitInTurnMs })
      refuseNeeded()
      return listNamedFiles(database, tenant, free)
    })
  await awaitTables(tenant, { world, ms: waitMs })
  return runInTurn({ blobs, world }, () => reserveFileRemoval(database, remove))
}

async function awaitTables(
  { chain }: Tenant,
  limit: { readonly world: World; readonly ms: number },
): Promise<void> {
  const shown = chain.whenApplied(chain.head().height).then(() => true)
  if (await awaitWithin(shown, { ...limit, otherwise: false })) return
  throw new Fault('UNAVAILABLE', {
    message: 'the tables are too far behind to say which files are named',
  })
}

/**
 * Runs the removals of this process one after the other, as only one may hold the files at a time. One that does not come
 * to its turn in time is not done, and returns undefined.
 */
async function runInTurn<T>(
  { blobs, world }: Pick<RemovalPorts, 'blobs' | 'world'>,
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const turn = { hasBegun: false, isLate: false }
  const outcome = blobs.removals.run(async () => {
    turn.hasBegun = true
    return turn.isLate ? undefined : work()
  })
  await awaitWithin(outcome, { world, ms: waitMs, otherwise: undefined })
  turn.isLate = !turn.hasBegun
  return turn.isLate ? undefined : outcome
}
