import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { buildPostingKey, Ledger } from './ledger.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createTestDatabase()
})
afterAll(() => store?.drop())

const readIndexes = () =>
  store.database.query<{ name: string; definition: string }>(sql`
    SELECT indexname AS name, indexdef AS definition FROM pg_catalog.pg_indexes
    WHERE schemaname = 'system' AND tablename = 'posting' ORDER BY indexname`)

test('the postings of an older database get the key that new ones have', async () => {
  const { database } = store
  const change = async () => {
    for (const statement of buildPostingKey()) await database.execute(statement)
  }
  // A database that has no ledger yet.
  await change()
  await database.execute(sql`CREATE SCHEMA system`)
  for (const statement of new Ledger().tables('system')) await database.execute(statement)
  const indexes = await readIndexes()
  await database.execute(sql`ALTER TABLE system.posting DROP CONSTRAINT posting_pkey,
    ADD CONSTRAINT posting_pkey PRIMARY KEY (leaf, line)`)
  await database.execute(sql`CREATE INDEX posting_account ON system.posting (account, leaf, line)`)
  await database.execute(sql`
    INSERT INTO system.posting (leaf, line, account, amount, balance_after, kind, reference, time_ms, height, sequence)
    SELECT 1, line, 'app:' || line, 1, 1, 'sale', 'pay_1', 1, 1, 0 FROM generate_series(0, 1) AS line`)
  await change()
  expect(await readIndexes()).toEqual(indexes)
})
