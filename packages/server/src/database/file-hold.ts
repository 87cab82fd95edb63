import { Client } from 'pg'
import { type DatabaseConnection, makeClientConfig } from './connection.ts'
import type { Database } from './database.ts'
import { sql } from './sql.ts'

// A lock in the database says whether files that rows name may be removed: whoever copies rows first and files after
// them, in another process, holds the files until he has both.

/** The number of the lock, which nothing else in the database uses. */
const lockKey = 7_461_101
const lockTimeoutMs = 5_000
const statementTimeoutMs = 5_000

/** Runs the work while no file is removed at once. Throws where the connection, and so the lock, was lost meanwhile. */
export async function pinFiles<T>(
  connection: DatabaseConnection,
  work: () => Promise<T>,
): Promise<T> {
  const client = new Client(makeClientConfig(connection))
  // A connection that breaks fails the last statement; an event nobody hears would end the process.
  client.on('error', () => undefined)
  await client.connect()
  try {
    // A removal under way takes seconds at most.
    await client.query('SET statement_timeout = 0; SET lock_timeout = 0')
    await client.query(`SELECT pg_advisory_lock_shared(${lockKey})`)
    const result = await work()
    await client.query('SELECT 1')
    return result
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Runs the work, which removes files, unless somebody holds them; then it returns undefined. */
export function reserveFileRemoval<T>(
  database: Database,
  work: () => Promise<T>,
): Promise<T | undefined> {
  return database.useDedicatedSession(
    async (session) => {
      const [row] = await session.query<{ is_free: boolean }>(
        sql`SELECT pg_try_advisory_lock(${lockKey}::int8) AS is_free`,
      )
      if (row?.is_free !== true) return undefined
      try {
        return await work()
      } finally {
        // The server lets go of it some time after the connection ends, and the next removal comes at once.
        await session.query(sql`SELECT pg_advisory_unlock(${lockKey}::int8)`).catch(() => undefined)
      }
    },
    // All others of this process wait for it, and a database may fall silent.
    { statementTimeoutMs, lockTimeoutMs },
  )
}
