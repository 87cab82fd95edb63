import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../../base/world.ts'
import { sql } from '../../../database/sql.ts'
import type { TestDatabase } from '../../../database/testing.ts'
import { createAccountDatabase } from '../payment-tables.test-support.ts'
import { buildReadyState } from './claim-tables.ts'
import { UnpaidAnswers } from './unpaid-answers.ts'

let store: TestDatabase
let nowMs = 0
const kib = 1024

beforeAll(async () => {
  store = await createAccountDatabase(buildReadyState())
})

afterAll(() => store?.drop())

const pay = (payer: string, nonce: string) => ({ identity: `n/a/${payer}/${nonce}` })

async function keep(nonce: string, bytes: number, state: string): Promise<void> {
  const { identity } = pay('p', nonce)
  await store.database.execute(sql`
    INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, valid_before, payment, state, created_at_ms)
    VALUES (${identity}, ${identity}, '', 'shop', 'list', 1, 1, 1, '{}', ${state}, 0)`)
  await store.database.execute(sql`
    INSERT INTO operations.kept_reply (payment_id, status, body, sale, expires_at_ms)
    VALUES (${identity}, 200, ${Buffer.alloc(bytes)}, '', 0)`)
}

test('the answers of a payer, and those of all, have room up to their bounds, and those that are paid for take none', async () => {
  const { database } = store
  const world = { ...realWorld, now: () => nowMs }
  const bounds = { own: 100 * kib, all: 150 * kib }
  const unpaid = new UnpaidAnswers({ database, world }, bounds)
  const attempt = (payer: string, bytes: number) =>
    unpaid.refuse(database, pay(payer, 'new'), bytes).then(
      () => 'kept',
      (error: { readonly code: string }) => error.code,
    )
  await keep('1', 40 * kib, 'ready')
  await keep('2', 90 * kib, 'delivered')
  // 48 KiB are taken; each answer takes 8 more for its claim.
  expect(await attempt('p', 44 * kib + 1)).toBe('PAYMENT_PENDING')
  expect(await attempt('p', 44 * kib)).toBe('kept')
  // All have 100 KiB by now, as far as this process knows.
  expect(await attempt('other', 42 * kib + 1)).toBe('UNAVAILABLE')
  expect(await attempt('other', 42 * kib)).toBe('kept')
  await expect(unpaid.refuseFull(pay('third', 'new'))).rejects.toThrow('Too many answers wait')
  // Neither of the two was kept after all.
  nowMs += 1_000
  await unpaid.refuseFull(pay('third', 'new'))
  expect(await attempt('third', 92 * kib)).toBe('kept')
})
