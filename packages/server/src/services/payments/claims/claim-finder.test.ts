import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../../database/testing.ts'
import { listClaimTables } from '../payment-tables.test-support.ts'
import { findLastClaimBetween } from './claim-finder.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createTestDatabase()
  for (const statement of [sql`CREATE SCHEMA operations`, ...listClaimTables()])
    await store.database.execute(statement)
})
afterAll(() => store?.drop())

/** Inserts claims of a channel after these numbers of sales, all by one voucher for one request. */
async function insertClaims(
  name: string,
  claims: readonly { readonly uses: number; readonly atMs: number; readonly end?: string }[],
): Promise<void> {
  const rows = claims.map(({ uses, atMs, end = 'other' }) => ({
    identity: `net/escrow/${name}/100.${uses}.${end}`,
    id: `pay_${name}_${uses}_${end}`,
    at: atMs,
  }))
  await store.database.execute(sql`
    INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, valid_before, payment, state, created_at_ms)
    SELECT identity, id, 'hash', 'shop', 'list', 0, 1, 1, '{}', 'sold', at
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS one (identity text, id text, at int8)`)
}

const find = async (payer: string, mark = '', most = 1_000) => {
  const bounds = { payer, start: `net/escrow/${payer}/100.`, end: '.wanted', mark, most }
  return (await findLastClaimBetween(store.database, bounds))?.id
}

test('of the uses of a voucher the last one is found, whatever the clocks of the processes said', async () => {
  await insertClaims('channel:0x1', [
    { uses: 9, atMs: 2_000, end: 'wanted' },
    { uses: 10, atMs: 1_000, end: 'wanted' },
    { uses: 11, atMs: 3_000 },
  ])
  expect(await find('channel:0x1')).toBe('pay_channel:0x1_10_wanted')
  expect(await find('channel:0x2')).toBeUndefined()
})

test('of several uses the one is preferred whose payment has the mark, be it the last one or not', async () => {
  const uses = [9, 10, 11].map((n) => ({ uses: n, atMs: n, end: 'wanted' }))
  await insertClaims('channel:0x4', uses)
  await store.database.execute(sql`
    UPDATE operations.claim SET payment = '{"origin":"a b"}' WHERE id = 'pay_channel:0x4_10_wanted'`)
  expect(await find('channel:0x4', 'b')).toBe('pay_channel:0x4_10_wanted')
  expect(await find('channel:0x4', 'c')).toBe('pay_channel:0x4_11_wanted')
})

test('a use is found behind any number of answers that cost nothing, while few others follow it', async () => {
  const free = Array.from({ length: 1_500 }, (_, at) => ({ uses: 5_000 + at, atMs: at }))
  await insertClaims('channel:0x3', [...free, { uses: 6_500, atMs: 1_500, end: 'wanted' }])
  expect(await find('channel:0x3')).toBe('pay_channel:0x3_6500_wanted')
  expect(await find('channel:0x3', '', 100)).toBe('pay_channel:0x3_6500_wanted')
  await insertClaims(
    'channel:0x3',
    free.map(({ uses }) => ({ uses: uses + 5_000, atMs: 2_000 + uses })),
  )
  expect(await find('channel:0x3')).toBeUndefined()
})
