import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../../base/world.ts'
import type { Queryable } from '../../../database/database.ts'
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

const pay = (payer: string, nonce: string, app = 'shop') => ({
  identity: `n/a/${payer}/${nonce}`,
  app,
})

async function keep(
  nonce: string,
  bytes: number,
  by: { payer?: string; app?: string; state?: string },
) {
  const { payer = 'p', app = 'shop', state = 'ready' } = by
  const { identity } = pay(payer, nonce)
  await store.database.execute(sql`
    INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, valid_before, payment, state, created_at_ms)
    VALUES (${identity}, ${identity}, '', ${app}, 'list', 1, 1, 1, '{}', ${state}, 0)`)
  await store.database.execute(sql`
    INSERT INTO operations.kept_reply (payment_id, status, body, sale, expires_at_ms)
    VALUES (${identity}, 200, ${Buffer.alloc(bytes)}, '', 0)`)
}

const bounds = { own: 100 * kib, all: 400 * kib, forNew: 100 * kib }

function openAnswers(by = bounds) {
  nowMs = 0
  const world = { ...realWorld, now: () => nowMs }
  const unpaid = new UnpaidAnswers({ database: store.database, world }, by)
  const attempt = (payer: string, bytes: number, by: { app?: string; database?: Queryable } = {}) =>
    unpaid.refuse(by.database ?? store.database, pay(payer, 'new', by.app), bytes).then(
      () => 'kept',
      (error: { readonly code: string }) => error.code,
    )
  return { unpaid, attempt }
}

test('the answers of a payer have room up to their bound, and those that are paid for take none', async () => {
  const { attempt } = openAnswers()
  await keep('1', 40 * kib, {})
  await keep('2', 90 * kib, { state: 'delivered' })
  // 48 KiB are taken; each answer takes 8 more for its claim.
  expect(await attempt('p', 44 * kib + 1)).toBe('PAYMENT_PENDING')
  expect(await attempt('p', 44 * kib)).toBe('kept')
})

test('answers to the payments of one seller take at most half of the room, however many payers it has', async () => {
  const { unpaid, attempt } = openAnswers()
  for (const payer of ['a', 'b']) expect(await attempt(payer, 60 * kib)).toBe('kept')
  // 184 KiB are taken, all of them by this seller; 16 are left of its half.
  expect(await attempt('c', 8 * kib + 1)).toBe('UNAVAILABLE')
  expect(await attempt('c', 8 * kib)).toBe('kept')
  await expect(unpaid.refuseFull(pay('d', 'new'))).rejects.toThrow('Too many answers wait')
  await unpaid.refuseFull(pay('d', 'new', 'other'))
  // A third of what the first one leaves.
  expect(await attempt('d', 59 * kib, { app: 'other' })).toBe('UNAVAILABLE')
  expect(await attempt('d', 58 * kib, { app: 'other' })).toBe('kept')
  // Payers that have some do not get at the last quarter.
  await keep('3', 1 * kib, { payer: 'e', app: 'third' })
  expect(await attempt('e', 2 * kib, { app: 'third' })).toBe('UNAVAILABLE')
  expect(await attempt('f', 2 * kib, { app: 'third' })).toBe('kept')
  // None was kept after all.
  nowMs += 1_000
  expect(await attempt('g', 92 * kib)).toBe('kept')
})

test('sellers that take all they can one after the other leave a part by their number, not half by each', async () => {
  const all = 16_000 * kib
  const { attempt } = openAnswers({ own: all, all, forNew: all / 4 })
  const taken: number[] = []
  for (let seller = 1; seller <= 12; seller++) {
    let answers = 0
    while ((await attempt(`payer${answers}`, 92 * kib, { app: `seller${seller}` })) === 'kept')
      answers++
    taken.push(answers)
  }
  // 16,000 KiB divided by 1 * 2, by 2 * 3, by 3 * 4, in answers of 100.
  const [first, second, third] = taken
  expect([first, second, third]).toEqual([79, 26, 13])
  expect(taken.at(-1)).toBe(1)
})

test('what is let in while all are summed counts, and so do all sums of the first requests of a process', async () => {
  const { attempt } = openAnswers()
  for (const payer of ['h', 'i']) await keep('4', 60 * kib, { payer })
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const query: Queryable['query'] = async (statement) => {
    const rows = await store.database.query<never>(statement)
    if (!statement.text.includes('identity >')) await gate
    return rows
  }
  const database: Queryable = { ...store.database, query }
  // 193 KiB are taken, 184 of them by this seller.
  const first = attempt('j', 92 * kib, { database })
  expect(await attempt('k', 92 * kib)).toBe('UNAVAILABLE')
  expect(await attempt('l', 60 * kib, { app: 'other' })).toBe('kept')
  open()
  expect(await first).toBe('UNAVAILABLE')
  // The sum that was read meanwhile does not have it.
  expect(await attempt('m', 60 * kib, { app: 'other' })).toBe('UNAVAILABLE')
})
