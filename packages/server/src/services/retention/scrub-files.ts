import type { Logger } from 'pino'
import { dayMs } from '../../base/durations.ts'
import type { World } from '../../base/world.ts'
import { deleteScrubMark, listScrubMarks, setScrubMark } from '../../chain/scrub-marks.ts'
import type { Database } from '../../database/database.ts'
import { scrubTables, scrubWriteAheadLog } from '../../database/scrub.ts'
import { sql } from '../../database/sql.ts'

/** Time after which the database's files are written anew where something was erased from the log. */
const scrubAfterMs = dayMs

export type ScrubPorts = {
  readonly database: Database
  readonly world: World
  readonly log: Logger
  /** The database is our own child process. */
  readonly ownsDatabase: boolean
}

/**
 * Removes the bytes of what was erased from an application's part of the database's files. Where tables were left out, as
 * they are too large, its mark stays for the next day: whoever uses them waits each time.
 */
export async function scrubFiles(ports: ScrubPorts, schema: string): Promise<void> {
  const { database, log, ownsDatabase, world } = ports
  const before = world.now()
  try {
    const left = await scrubTables(database, await listTables(database, schema))
    if (ownsDatabase) await scrubWriteAheadLog(database)
    if (left.length === 0) return await deleteScrubMark(database, schema, before)
    await setScrubMark(database, schema, world.now())
    log.warn({ schema, tables: left.map(({ name }) => name) }, 'tables were not written anew')
  } catch (error) {
    log.warn({ error, schema }, 'the files of the database were not written anew')
  }
}

/** Writes the files of applications anew from which something was erased a day ago. */
export async function scrubMarked(ports: ScrubPorts, isEnding: () => boolean): Promise<void> {
  const before = ports.world.now() - scrubAfterMs
  for (const schema of await listScrubMarks(ports.database, before))
    if (!isEnding()) await scrubFiles(ports, schema)
}

/** The log, and the tables that hold what records say. */
async function listTables(database: Database, schema: string) {
  const found = await database.query<{ name: string }>(sql`
    SELECT relname::text AS name FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = ${schema} AND relkind = 'r' AND relname ~ '^(block$|[a-z]_[0-9])' ORDER BY relname`)
  return found.map(({ name }) => ({ schema, name }))
}
