import { createHash } from 'node:crypto'
import { DatabaseError } from 'pg'
import { assert } from '../base/assert.ts'
import type { Database, Queryable } from './database.ts'
import { DatabaseSetupError } from './errors.ts'
import { type SqlStatement, sql } from './sql.ts'

/** One step forward of the service's own tables. Once released it is never changed: a new one follows. */
export type Migration = {
  /** Ascending, never reused. */
  readonly id: number
  readonly name: string
  readonly statements: () => readonly SqlStatement[]
}

/** Time for another process to finish its migrations, or for one of them to rewrite a table. */
const stepTimeoutMs = 10 * 60_000
const createAttemptsMax = 20
/**
 * SQLSTATEs of CREATE .. IF NOT EXISTS when two sessions do it at once: duplicate key, schema, table, row type;
 * concurrent update.
 */
const creationRaces = new Set(['23505', '42P06', '42P07', '42710', 'XX000'])

/**
 * Brings the database to the newest migration, each in a transaction of its own. Several processes may do so at
 * once; they wait for each other. Refuses a database that a newer or another program has made. `now` is the time to
 * record, in milliseconds since 1970. Returns the number of migrations applied.
 */
export async function runMigrations(
  database: Database,
  migrations: readonly Migration[],
  { now }: { readonly now: number },
): Promise<number> {
  migrations.forEach((migration, index) => {
    assert(
      index === 0 || migration.id > (migrations[index - 1]?.id ?? 0),
      'migrations ascend by id',
    )
  })
  await createTables(database)
  const before = await readRecorded(database)
  refuseForeign(before, migrations)
  const done = new Set(before.map(({ id }) => id))
  let applied = 0
  for (const migration of migrations) {
    if (done.has(migration.id)) continue
    const isNew = await database.transaction((tx) => applyOne(tx, { migration, migrations, now }), {
      statementTimeoutMs: stepTimeoutMs,
    })
    if (isNew) applied += 1
  }
  return applied
}

async function applyOne(
  tx: Queryable,
  {
    migration,
    migrations,
    now,
  }: { migration: Migration; migrations: readonly Migration[]; now: number },
): Promise<boolean> {
  // Under this lock the list of applied migrations stands still; others wait here and then see the longer list.
  await tx.query(sql`SELECT id FROM operations.migration_lock WHERE id = 1 FOR UPDATE`)
  const recorded = await readRecorded(tx)
  refuseForeign(recorded, migrations)
  if (recorded.some((each) => each.id === migration.id)) return false
  for (const statement of migration.statements()) await tx.execute(statement)
  await tx.execute(sql`
    INSERT INTO operations.migration (id, name, applied_at_ms, checksum)
    VALUES (${migration.id}, ${migration.name}, ${now}, ${checksum(migration)})`)
  return true
}

type Recorded = { id: number; name: string; checksum: string }

function readRecorded(database: Queryable): Promise<Recorded[]> {
  return database.query<Recorded>(
    sql`SELECT id, name, checksum FROM operations.migration ORDER BY id`,
  )
}

function refuseForeign(recorded: readonly Recorded[], migrations: readonly Migration[]): void {
  const newest = migrations.at(-1)?.id ?? 0
  for (const { id, name, checksum: recordedChecksum } of recorded) {
    const known = migrations.find((migration) => migration.id === id)
    if (id > newest) {
      throw new DatabaseSetupError(
        `the database is newer than this program: it has migration ${id} (${name}), the program ends at ${newest}; ` +
          'start a program at least as new as the one that made it',
      )
    }
    if (known === undefined || checksum(known) !== recordedChecksum) {
      throw new DatabaseSetupError(
        `the database was made by another program: its migration ${id} (${name}) differs from the one known here`,
      )
    }
  }
}

/** The rows that `operations.migration` must hold for these migrations, without the time. */
export function toRecords(migrations: readonly Migration[]): readonly Recorded[] {
  return migrations.map((migration) => ({
    id: migration.id,
    name: migration.name,
    checksum: checksum(migration),
  }))
}

/** Hashes the statements' texts and values, so that an edited migration is noticed. */
function checksum(migration: Migration): string {
  const content = migration.statements().map(({ text, values }) => [text, values.map(String)])
  return createHash('sha256').update(JSON.stringify(content)).digest('hex')
}

/** Lists the statements that make the schema `operations` as in a new database; for comparing. */
export function listFreshStatements(migrations: readonly Migration[]): readonly SqlStatement[] {
  return [...ownTables(), ...migrations.flatMap((migration) => migration.statements())]
}

function ownTables(): readonly SqlStatement[] {
  return [
    sql`CREATE SCHEMA IF NOT EXISTS operations`,
    sql`CREATE TABLE IF NOT EXISTS operations.migration (
      id integer PRIMARY KEY, name text NOT NULL, applied_at_ms bigint NOT NULL, checksum text NOT NULL)`,
    sql`CREATE TABLE IF NOT EXISTS operations.migration_lock (id integer PRIMARY KEY)`,
    sql`INSERT INTO operations.migration_lock (id) VALUES (1) ON CONFLICT (id) DO NOTHING`,
  ]
}

async function createTables(database: Database): Promise<void> {
  for (const statement of ownTables()) await createOnce(database, statement)
}

async function createOnce(database: Database, statement: SqlStatement): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await database.execute(statement)
      return
    } catch (error) {
      const lostRace = error instanceof DatabaseError && creationRaces.has(error.code ?? '')
      if (!lostRace || attempt >= createAttemptsMax) throw error
    }
  }
}
