import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../../database/sql.ts'
import type { TestDatabase } from '../../../database/testing.ts'
import { Ledger } from '../../../projections/ledger.ts'
import { createAccountDatabase } from '../payment-tables.test-support.ts'
import { refuseTooMany } from './withdrawal-bounds.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createAccountDatabase(new Ledger().tables('system'))
  // Strangers have used up the bound that those share who trade too little.
  await insertTransfers('wallet:stranger', { count: limits.unspentWithdrawalsMax, ageHours: 1 })
  await store.database.execute(sql`UPDATE operations.outgoing_transfer SET unspent = true`)
})
afterAll(() => store?.drop())

const nowMs = Date.UTC(2026, 0, 2)
const hourMs = 3_600_000
const network = 'eip155:1'
/** The network's smallest payment, in atomic units. */
const least = 1_000n

let leaf = 0

/** Writes movements of an account, all of one kind and amount, at one time. */
async function insertMovements(
  account: string,
  moved: { kind: string; amount: number; count: number; ageHours: number },
): Promise<void> {
  const { kind, amount, count, ageHours } = moved
  await store.database.execute(sql`
    INSERT INTO system.posting (leaf, line, account, amount, balance_after, kind, reference, time_ms, height, sequence)
    SELECT ${leaf}::int8 + n, 0, ${account}, ${amount}::numeric, 0, ${kind}, '', ${nowMs - ageHours * hourMs}::int8, 0, 0
    FROM generate_series(1, ${count}::int4) AS one (n)`)
  leaf += count
}

async function insertTransfers(
  account: string,
  { count, ageHours }: { count: number; ageHours: number },
): Promise<void> {
  await store.database.execute(sql`
    INSERT INTO operations.outgoing_transfer (id, kind, account, network, recipient, amount, state, tries, valid_before, created_at_ms)
    SELECT concat_ws(' ', ${account}::text, ${ageHours}::int4, n), 'payout', ${account}, ${network}, '0x', 1, 'returned', 0, 0,
      ${nowMs - ageHours * hourMs}::int8 FROM generate_series(1, ${count}::int4) AS one (n)`)
}

/** Returns true where the account's next payout waits for those of others. */
const isHeldUp = (account: string) =>
  refuseTooMany(store.database, 'system', {
    ...{ kind: 'payout', account, network, fee: 0n, least, nowMs },
  }).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'WITHDRAWAL_LIMIT' })
    return true
  })

test('a seller of many small sales is not held up by strangers, however many payouts it has had', async () => {
  const account = 'app:micro'
  // 240,000 for 120 payouts, where 120,000 are enough.
  await insertMovements(account, { kind: 'sale', amount: 8, count: 20_000, ageHours: 2000 })
  await insertTransfers(account, { count: 116, ageHours: 1000 })
  await insertMovements(account, { kind: 'sale', amount: 8, count: 10_000, ageHours: 900 })
  await insertTransfers(account, { count: 4, ageHours: 800 })
  expect(await isHeldUp(account)).toBe(false)
  // The last 10,000 sales pay for 80 payouts since then.
  await insertTransfers(account, { count: 75, ageHours: 700 })
  expect(await isHeldUp(account)).toBe(false)
  await insertTransfers(account, { count: 1, ageHours: 600 })
  expect(await isHeldUp(account)).toBe(true)
})

test('an application that spends what it earns trades both, and what was refunded is neither', async () => {
  const trader = 'app:trader'
  await insertTransfers(trader, { count: 1, ageHours: 1000 })
  await insertMovements(trader, { kind: 'sale', amount: 2_000, count: 1, ageHours: 1000 })
  await insertMovements(trader, { kind: 'sale', amount: -2_000, count: 1, ageHours: 1000 })
  expect(await isHeldUp(trader)).toBe(false)
  const giver = 'app:giver'
  await insertTransfers(giver, { count: 1, ageHours: 1000 })
  await insertMovements(giver, { kind: 'sale', amount: 8_000, count: 1, ageHours: 1000 })
  expect(await isHeldUp(giver)).toBe(false)
  await insertMovements(giver, { kind: 'refund', amount: -10_000, count: 1, ageHours: 1000 })
  expect(await isHeldUp(giver)).toBe(true)
  const buyer = 'wallet:buyer'
  await insertTransfers(buyer, { count: 1, ageHours: 1000 })
  await insertMovements(buyer, { kind: 'sale', amount: -2_000, count: 1, ageHours: 1000 })
  expect(await isHeldUp(buyer)).toBe(false)
  await insertMovements(buyer, { kind: 'refund', amount: 5_000, count: 1, ageHours: 1000 })
  expect(await isHeldUp(buyer)).toBe(true)
})
