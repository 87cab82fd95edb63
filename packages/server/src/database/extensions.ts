import { makeInvalidFault } from '../base/fault.ts'
import { toDatabaseFault } from './errors.ts'
import type { Queryable } from './queryable.ts'
import { sql } from './sql.ts'

/** The schema that extensions are created in; one that is there already stays where it is. */
const extensionsSchema = 'extensions'

/** The package to install where the server lacks an extension. */
const packages: Readonly<Record<string, string>> = {
  pg_trgm: "PostgreSQL's contrib package (postgresql-contrib in Debian)",
}

/** Finds the schema of an extension of this database; undefined where it has not been created. */
export async function findExtensionSchema(
  database: Queryable,
  name: string,
): Promise<string | undefined> {
  const [row] = await database.query<{ schema: string }>(sql`
    SELECT namespace.nspname::text AS schema FROM pg_catalog.pg_extension AS extension
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = extension.extnamespace
    WHERE extension.extname = ${name}`)
  return row?.schema
}

/**
 * Creates an extension unless it is there, and returns its schema; throws a 400 that says what to install. Must run
 * outside of a transaction.
 */
export async function ensureExtension(database: Queryable, name: string): Promise<string> {
  const found = await findExtensionSchema(database, name)
  if (found !== undefined) return found
  try {
    await database.execute(sql`CREATE SCHEMA IF NOT EXISTS ${sql.id(extensionsSchema)}`)
    await database.execute(
      sql`CREATE EXTENSION IF NOT EXISTS ${sql.id(name)} SCHEMA ${sql.id(extensionsSchema)}`,
    )
  } catch (error) {
    // Another session may have created it at the same moment.
    const created = await findExtensionSchema(database, name)
    if (created !== undefined) return created
    if (toDatabaseFault(error) !== undefined) throw error
    const problem = `needs the extension ${name}, which the database server lacks or does not let us create: install ${packages[name] ?? 'it there'}, or have a superuser run CREATE EXTENSION ${name}`
    throw makeInvalidFault('/index_type', problem)
  }
  return extensionsSchema
}
