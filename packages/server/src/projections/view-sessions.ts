import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/** The prefix of the names of sessions that fill views, so that a drop of a table can end them. */
export const viewSession = 'tollbase views'

/** Cancels sessions that fill views from a table, or fill the table, which may take long. */
export async function endViewWork(
  tx: Queryable,
  { schema, table }: { schema: string; table: string },
): Promise<void> {
  await tx.query(sql`
    SELECT pg_catalog.pg_cancel_backend(session.pid) AS ended
    FROM pg_catalog.pg_stat_activity AS session
    JOIN pg_catalog.pg_locks AS held ON held.pid = session.pid
    JOIN pg_catalog.pg_class AS class ON class.oid = held.relation
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE session.datname = current_database() AND session.application_name ^@ ${viewSession}
      AND namespace.nspname = ${schema} AND class.relname = ${table}`)
}
