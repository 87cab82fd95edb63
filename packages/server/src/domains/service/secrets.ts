import { present } from '../../base/assert.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'service_secret')

export function secretTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (name text NOT NULL, value bytea NOT NULL, CONSTRAINT service_secret_pkey PRIMARY KEY (name))`,
  ]
}

/** A random value that is made once and stays with the database: several processes share it. */
export async function ensureSecret(
  database: Database,
  world: World,
  secret: { name: string; bytes: number },
): Promise<Buffer> {
  await database.execute(sql`
    INSERT INTO ${table} (name, value) VALUES (${secret.name}, ${world.randomBytes(secret.bytes)}) ON CONFLICT (name) DO NOTHING`)
  const [row] = await database.query<{ value: Buffer }>(
    sql`SELECT value FROM ${table} WHERE name = ${secret.name}`,
  )
  return present(row, `the secret ${secret.name}`).value
}
