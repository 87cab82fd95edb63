import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { endViewWork } from '../view-sessions.ts'

/**
 * The longest wait of the applier for readers to leave a table, because others would wait behind it. It tries
 * again.
 */
const dropWaitMs = 3_000

/** Runs a statement that needs a table to itself, after cancelling work on it that may take long. */
export async function changeTable(
  tx: Queryable,
  place: { schema: string; table: string },
  change: SqlStatement,
): Promise<void> {
  await tx.query(sql`
    SELECT pg_catalog.pg_cancel_backend(working.pid) AS ended
    FROM (
      SELECT pid, relid FROM pg_catalog.pg_stat_progress_create_index WHERE datname = current_database()
      UNION ALL SELECT pid, relid FROM pg_catalog.pg_stat_progress_analyze WHERE datname = current_database()
      UNION ALL SELECT pid, relid FROM pg_catalog.pg_stat_progress_vacuum WHERE datname = current_database()) AS working
    JOIN pg_catalog.pg_stat_activity AS session ON session.pid = working.pid
    JOIN pg_catalog.pg_class AS class ON class.oid = working.relid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE session.backend_type = 'client backend' AND session.usename = current_user
      AND namespace.nspname = ${place.schema} AND class.relname = ${place.table}`)
  await endViewWork(tx, place)
  await tx.query(sql`SELECT set_config('lock_timeout', ${String(dropWaitMs)}, true)`)
  await tx.execute(change)
  await tx.query(sql`SELECT set_config('lock_timeout', '0', true)`)
}

/** Drops a whole table in the same way. */
export function dropTable(tx: Queryable, from: { schema: string; table: string }): Promise<void> {
  return changeTable(tx, from, sql`DROP TABLE ${sql.id(from.schema, from.table)}`)
}
