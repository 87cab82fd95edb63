import { requirePresent } from '../../base/assert.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'service_secret')

export function buildSecretTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (name text NOT NULL, value bytea NOT NULL, CONSTRAINT service_secret_pkey PRIMARY KEY (name))`,
  ]
}

/** All secrets that may exist. */
export const serviceSecrets = {
  serviceName: { name: 'service-name', bytes: 4 },
  quotes: { name: 'quotes', bytes: 32 },
  depositAddresses: { name: 'deposit-addresses', bytes: 32 },
  tickets: { name: 'tickets', bytes: 16 },
  cursors: { name: 'cursors', bytes: 32 },
  recordNames: { name: 'record-names', bytes: 32 },
  requestNames: { name: 'request-names', bytes: 32 },
  upstreamHeaders: { name: 'upstream-headers', bytes: 32 },
  /** No secret: it says which key the chains are signed with. */
  signingPublicKey: { name: 'signing-public-key', bytes: 32 },
} as const

/** Returns a random value that is made once and stays with the database: several processes share it. */
export function ensureSecret(
  database: Database,
  world: World,
  { name, bytes }: (typeof serviceSecrets)[keyof typeof serviceSecrets],
): Promise<Buffer> {
  return keepFirst(database, name, world.randomBytes(bytes))
}

/** Stores the value where the name has none yet, and returns the stored one. */
export async function keepFirst(database: Database, name: string, value: Buffer): Promise<Buffer> {
  await database.execute(sql`
    INSERT INTO ${table} (name, value) VALUES (${name}, ${value}) ON CONFLICT (name) DO NOTHING`)
  return requirePresent(await findKept(database, name), `the secret ${name}`)
}

export async function findKept(database: Database, name: string): Promise<Buffer | undefined> {
  const [row] = await database.query<{ value: Buffer }>(
    sql`SELECT value FROM ${table} WHERE name = ${name}`,
  )
  return row?.value
}
