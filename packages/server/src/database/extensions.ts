import { type Fault, makeInvalidFault } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { toDatabaseFault } from './errors.ts'
import type { Queryable } from './queryable.ts'
import { sql } from './sql.ts'

/** The schema that extensions are created in; one that is there already stays where it is. */
const extensionsSchema = 'extensions'

/** The package to install where the server lacks an extension, and the oldest version that serves. */
const packages: Readonly<Record<string, { readonly install: string; readonly since?: string }>> = {
  pg_trgm: { install: "PostgreSQL's contrib package (postgresql-contrib in Debian)" },
  // Earlier ones give fewer records than are asked for where conditions leave some out.
  vector: {
    install: 'pgvector (such as postgresql-17-pgvector of apt.postgresql.org)',
    since: '0.8',
  },
}

/** Finds the schema of an extension of this database; undefined where it has not been created, or is too old. */
export async function findExtensionSchema(
  database: Queryable,
  name: string,
): Promise<string | undefined> {
  const [row] = await database.query<{ schema: string }>(sql`
    SELECT namespace.nspname::text AS schema FROM pg_catalog.pg_extension AS extension
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = extension.extnamespace
    WHERE extension.extname = ${name}
      AND string_to_array(substring(extension.extversion FROM '^[0-9]+(?:[.][0-9]+)*'), '.')::int8[] >= string_to_array(${packages[name]?.since ?? '0'}, '.')::int8[]`)
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
    throw makeMissingFault(name)
  }
  const created = await findExtensionSchema(database, name)
  // One that is too old was there already.
  if (created === undefined) throw makeMissingFault(name)
  return created
}

function makeMissingFault(name: string): Fault {
  const { install = 'it there', since } = packages[name] ?? {}
  const version = since === undefined ? '' : ` of version ${since} or newer`
  const problem = `needs the extension ${name}${version}, which the database server lacks or does not let us create: install ${install}, or have a superuser run CREATE EXTENSION ${name}`
  return makeInvalidFault('/index_type', problem)
}

/** Creates an extension if the server has its files and lets us; whatever fails, the service does without. */
export async function adoptExtension(
  database: Queryable,
  name: string,
  log: Pick<Log, 'info'>,
): Promise<void> {
  try {
    const [known] = await database.query<{ version: string | null }>(
      sql`SELECT installed_version::text AS version FROM pg_catalog.pg_available_extensions WHERE name = ${name}`,
    )
    if (known === undefined || known.version !== null) return
    await ensureExtension(database, name)
    log.info({ extension: name }, 'an extension of the database was created')
  } catch (error) {
    log.info({ extension: name, error }, 'an extension of the database is there, but not for us')
  }
}
