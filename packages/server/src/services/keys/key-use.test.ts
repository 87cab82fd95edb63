import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { buildKeyUseTables, KeyUse } from './key-use.ts'

let store: TestDatabase

beforeAll(async () => {
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  for (const statement of buildKeyUseTables()) await store.database.execute(statement)
})

afterAll(() => store?.drop())

test('the time of the last use of a key is written though the database was away at first, and never goes back', async () => {
  const flushes: (() => void)[] = []
  let nowMs = 2_000
  const world = {
    ...realWorld,
    now: () => nowMs,
    every: (_: number, call: () => void) => {
      flushes.push(call)
      return () => undefined
    },
  }
  let isAway = true
  const database: Database = {
    ...store.database,
    execute: (statement) =>
      isAway ? Promise.reject(new Error('away')) : store.database.execute(statement),
  }
  const use = new KeyUse(database, world)
  use.note('a')
  for (const flush of flushes) flush()
  await new Promise((resolve) => setImmediate(resolve))
  isAway = false
  await use.close()
  // A process that stood still writes what it knew.
  nowMs = 1_000
  const late = new KeyUse(database, world)
  late.note('a')
  await late.close()
  const again = new KeyUse(database, world)
  const read = await again.readLastUsed(['a', 'b'])
  expect([...read]).toEqual([['a', new Date(2_000).toISOString()]])
  await again.close()
})
