import type { Queryable } from './queryable.ts'
import { sql } from './sql.ts'

/** Cancels the statement that a session is running. */
export async function cancelSession(database: Queryable, pid: number): Promise<void> {
  await database.query(sql`SELECT pg_catalog.pg_cancel_backend(${pid}::int4) AS ended`)
}
