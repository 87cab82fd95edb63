import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../../database/sql.ts'
import type { TestDatabase } from '../../../database/testing.ts'
import { createAccountDatabase } from '../payment-tables.test-support.ts'
import { buildUseTables, dropUses, findUse, putUse } from './use-store.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createAccountDatabase(buildUseTables())
})
afterAll(() => store?.drop())

test('what is kept of a quota for a payment that is tried again stays, though that of its failed try is dropped at this moment', async () => {
  const { database } = store
  const use = { id: 'pay_1', account: 'wallet:0x1', uses: [] }
  await database.execute(sql`
    INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, valid_before, payment, state, created_at_ms)
    VALUES ('net/asset/0x1/1', 'pay_1', 'hash', 'shop', 'list', 1, 1, 1, '{}', 'failed', 1)`)
  const nowMs = Date.now()
  await putUse(database, { ...use, atMs: nowMs - 100_000 })
  let dropping: Promise<void> | undefined
  await database.transaction(async (tx) => {
    await tx.execute(sql`UPDATE operations.claim SET state = 'held' WHERE id = 'pay_1'`)
    await putUse(tx, { ...use, atMs: nowMs })
    dropping = dropUses(database, nowMs)
    // It has looked at the claims by then, and waits for the row.
    await new Promise((resolve) => setTimeout(resolve, 300))
  })
  await dropping
  const kept = await database.query<{ at_ms: bigint }>(sql`SELECT at_ms FROM operations.use_hold`)
  expect(kept.map((row) => Number(row.at_ms))).toEqual([nowMs])
  // Two processes may make its answer: it counts at the time of its hold for both.
  await database.execute(sql`UPDATE operations.claim SET state = 'owed' WHERE id = 'pay_1'`)
  expect(await findUse(database, 'pay_1')).toEqual({ atMs: nowMs })
  await database.execute(sql`UPDATE operations.claim SET state = 'failed' WHERE id = 'pay_1'`)
  expect(await findUse(database, 'pay_1')).toBeUndefined()
  await dropUses(database, nowMs + 100_000)
  expect(await database.query(sql`SELECT id FROM operations.use_hold`)).toEqual([])
})
