import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { noteRestore } from '../../packages/server/src/services/payments/settling/network-pin.ts'
import { readBodies } from './books.ts'
import type { Scheduler } from './scheduler.ts'

/** A moment at which the database was restored. */
export type Restore = {
  /** Since 1970; what blocks moved until then may have bought something in the life that is lost. */
  readonly seconds: number
  /** The number of ledger entries that there were. */
  readonly entries: number
  /** The states of the claims, by their ids. */
  readonly states: ReadonlyMap<string, string>
}

/**
 * Notes, as the first start after a restore does, that what came until now may be of a life that is lost. The backup has
 * all that the service ever wrote, which it cannot know.
 */
export async function noteRestored({
  database,
  scheduler,
}: {
  readonly database: Database
  readonly scheduler: Scheduler
}): Promise<Restore> {
  await noteRestore(database, scheduler.now)
  const claims = await database.query<{ id: string; state: string }>(
    sql`SELECT id, state FROM operations.claim`,
  )
  const bodies = await readBodies(database)
  return {
    seconds: Math.floor(scheduler.now / 1000),
    entries: bodies.length,
    states: new Map(claims.map(({ id, state }) => [id, state])),
  }
}
