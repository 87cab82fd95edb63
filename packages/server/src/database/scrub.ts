import type { Database, Queryable } from './database.ts'
import { isCancelled, isLockMissed } from './errors.ts'
import { sql } from './sql.ts'

// PostgreSQL keeps the bytes of deleted rows in the pages of its tables, and what was written in its write-ahead log,
// until others come to the same place. Here both are written anew, so that no file holds them any more.

/** Shorter than the time-out of a statement that waits for the table. */
const rewriteMsMax = 10_000
const lockMs = 2_000
/** The time that running reads get to end: VACUUM would keep the rows that they may still see. */
const readersMs = 5_000
const pauseMs = 50
/** Segments of the write-ahead log that may have been made ahead: twice as many as the server keeps by its settings. */
const segmentsMax = 200

export type ScrubbedTable = { readonly schema: string; readonly name: string }

/**
 * Rewrites the tables and the planner's samples of them; meanwhile their readers and writers wait. A table that takes
 * longer than ten seconds is left as it is, and so is a table that a read needs. Returns those that were left.
 */
export async function scrubTables(
  database: Database,
  tables: readonly ScrubbedTable[],
): Promise<readonly ScrubbedTable[]> {
  const times = { statementTimeoutMs: rewriteMsMax, lockTimeoutMs: lockMs }
  const left: ScrubbedTable[] = []
  await database.useDedicatedSession(async (session) => {
    await awaitReaders(session)
    for (const table of [...tables, samples])
      try {
        await session.execute(sql`VACUUM (FULL) ${sql.id(table.schema, table.name)}`)
      } catch (error) {
        if (!isOutOfTime(error)) throw error
        left.push(table)
      }
  }, times)
  return left
}

const samples: ScrubbedTable = { schema: 'pg_catalog', name: 'pg_statistic' }

function isOutOfTime(error: unknown): boolean {
  return isCancelled(error) || isLockMissed(error)
}

/** Waits until nobody reads by a snapshot from before. */
async function awaitReaders(session: Queryable): Promise<void> {
  const [now] = await session.query<{ xid: string }>(
    sql`SELECT pg_current_xact_id()::xid::text AS xid`,
  )
  for (let waited = 0; ; waited += pauseMs) {
    const [readers] = await session.query<{ count: bigint }>(sql`
      SELECT count(*) AS count FROM pg_catalog.pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
        AND age(backend_xmin) > age(${now?.xid}::xid)`)
    if (Number(readers?.count ?? 0) === 0) return
    if (waited >= readersMs) throw new Error('a read that began earlier is still under way')
    await session.query(sql`SELECT pg_sleep(${pauseMs / 1000})::text AS slept`)
  }
}

/**
 * Ends the segments of the write-ahead log up to now and deletes them, with those that were made ahead of old ones.
 * For a server of our own: it is done as its superuser.
 */
export async function scrubWriteAheadLog(database: Database): Promise<void> {
  const times = { statementTimeoutMs: 120_000, lockTimeoutMs: lockMs }
  await database.useDedicatedSession(async (session) => {
    await session.execute(sql`ALTER SYSTEM SET wal_recycle TO off`)
    try {
      await reload(session)
      await passSegments(session)
      // The segment at which a checkpoint began is needed until the next one.
      for (let times = 0; times < 2; times++) await session.execute(sql`CHECKPOINT`)
    } finally {
      await session.execute(sql`ALTER SYSTEM RESET wal_recycle`)
      await reload(session)
    }
  }, times)
}

/** The other processes of the server read their settings a moment later. */
async function reload(session: Queryable): Promise<void> {
  await session.query(sql`SELECT pg_reload_conf() AS told`)
  await session.query(sql`SELECT pg_sleep(0.1)::text AS slept`)
}

async function passSegments(session: Queryable): Promise<void> {
  const [last] = await session.query<{ name: string }>(sql`
    SELECT max(name) AS name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'`)
  for (let passed = 0; passed < segmentsMax; passed++) {
    const [now] = await session.query<{ passed: boolean }>(sql`
      SELECT pg_walfile_name(pg_current_wal_insert_lsn()) > ${last?.name ?? ''} AS passed`)
    if (now?.passed === true) return
    await session.query(sql`SELECT pg_logical_emit_message(true, 'tollbase', 'next')::text AS at`)
    await session.query(sql`SELECT pg_switch_wal()::text AS at`)
  }
  throw new Error('the write-ahead log has more segments than expected')
}
