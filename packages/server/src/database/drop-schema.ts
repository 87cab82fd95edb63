import type { Database } from './database.ts'
import { type SqlStatement, sql } from './sql.ts'

/** Tables that are dropped at once: a transaction has locks for some thousands of tables and indexes. */
const tablesAtOnce = 200

/** Drops a schema that may be there, however many tables it has. Interrupted, it leaves some of them for the next call. */
export async function dropSchema(database: Database, schema: string): Promise<void> {
  for (;;) {
    const tables = await database.query<{ name: string }>(sql`
      SELECT relname::text AS name FROM pg_catalog.pg_class AS class
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
      WHERE nspname = ${schema} AND relkind = 'r' ORDER BY relname LIMIT ${tablesAtOnce}`)
    if (tables.length === 0) break
    const names: SqlStatement[] = tables.map(({ name }) => sql.id(schema, name))
    await database.execute(sql`DROP TABLE IF EXISTS ${sql.join(names)} CASCADE`)
  }
  await database.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(schema)} CASCADE`)
}
