import { giveParts } from '@tollbase/testing/give-parts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Fault } from '../../../base/fault.ts'
import { realWorld } from '../../../base/world.ts'
import type { Chain } from '../../../chain/chain.ts'
import { createTestChain } from '../../../chain/testing.ts'
import { sql } from '../../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../../database/testing.ts'
import { formatDay } from '../../../model/spending-limits.ts'
import type { KeyRecord } from '../../../projections/keys.ts'
import { Ledger } from '../../../projections/ledger.ts'
import { makeApplier } from '../../../projections/make-applier.ts'
import { makeDepositEntry } from '../deposits/claim-deposit.ts'
import { makeSaleEntry } from '../make-sale.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { listAccountTables } from '../payment-tables.test-support.ts'
import { readAvailable, takeFromAccount } from './account-lock.ts'
import { dropBlockHolds, insertHold } from './holds.ts'
import { SaleDesk, type SaleOrder, saleBytesMax } from './sale-desk.ts'

let store: TestDatabase
let chain: Chain
let schema: string
const ledger = new Ledger()
const tableNames = [
  'settled_payment',
  'sale',
  'reversal',
  'account',
  'posting',
  'transfer',
  'spending',
  'channel',
  'storage_fee',
  'watermark',
]

beforeAll(async () => {
  store = await createTestDatabase()
  const { database } = store
  const place = await createTestChain(database)
  schema = place.schema
  const tables = [
    ...ledger.tables(schema),
    sql`CREATE SCHEMA system`,
    ...tableNames.map(
      (name) => sql`CREATE VIEW ${sql.id('system', name)} AS SELECT * FROM ${sql.id(schema, name)}`,
    ),
    ...listAccountTables(),
  ]
  for (const statement of tables) await database.execute(statement)
  chain = await place.open({ applier: makeApplier(schema, [ledger]) })
})
afterAll(async () => {
  await chain?.close()
  await store?.drop()
})

const nowMs = Date.UTC(2026, 0, 2)
const limit = 25n
const deposited = 60n

function openDesk(): SaleDesk {
  const keys = { find: () => giveParts<KeyRecord>({}) }
  const tenants = { system: { chain, ledger, schema, keys } }
  const world = { ...realWorld, now: () => nowMs }
  return new SaleDesk(giveParts<PaymentPorts>({ database: store.database, tenants, world }))
}

type Asked = {
  readonly of: number
  readonly cap: number
  readonly charge: number
  readonly byKey: boolean
}
let made = 0

function makeOrder(run: number, { of, cap, charge, byKey }: Asked, body = '{}'): SaleOrder {
  made += 1
  const id = `pay_${made}`
  const payer = `0x${run}.${of}`
  const account = `wallet:${payer}`
  const budget = { id: `auth_${run}.${of}`, day: formatDay(nowMs) }
  const identity = `net/asset/${payer}/${id}`
  const amount = String(charge < cap ? charge : cap)
  const facts = {
    ...{ payment_id: id, request_hash: 'hash', quote_hash: null, payer, payee: 'app:shop', amount },
    ...{ deposited: '0', change: '0', asset: '0xa', network: 'net', transaction: null },
    ...{ paid_from: 'balance' as const, app: 'shop', operation: 'listRecords', as_of: null },
    ...{ row_count: 1, result_hash: 'hash', delivered_at: '2026-01-01T00:00:00.000Z' },
  }
  const split = { platformBasisPoints: 0n }
  const sale = makeSaleEntry({ identity, facts, split, ...(byKey && { budget }) }).body
  const lifetime = { name: 'spend_limit', value: limit }
  const spending = {
    ...{ targets: [], nowMs, day: budget.day },
    paying: { key: { key_hash: '' }, budget: budget.id, limits: { lifetime }, account, payer },
  }
  return {
    claim: {
      ...{ id, identity, request_hash: 'hash', app: 'shop', operation: 'listRecords', amount: 0n },
      ...{
        cap: BigInt(cap),
        transfer: null,
        quote_id: null,
        valid_before: 10n ** 15n,
        payment: '{}',
      },
      ...{
        state: 'held',
        reason: null,
        settled_by: null,
        write_after: null,
        write_form: null,
        payment_identifier: null,
      },
      terms: JSON.stringify({ ...(byKey && { budget }) }),
      created_at_ms: BigInt(nowMs),
    },
    paid: byKey ? giveParts<SaleOrder['paid']>({ spending }) : {},
    answer: {
      ...{ status: 200, body: Buffer.from(body), contentType: null, sale, sources: [] },
      ...{ settledBy: null, expiresAtMs: 2e12 },
    },
    charge: BigInt(amount),
  }
}

/** Gives the accounts of a run their money, and the rows that are locked; an account is known once it was locked. */
async function fill(run: number): Promise<void> {
  const payers = [0, 1].map((of) => `0x${run}.${of}`)
  const entries = payers.map((payer) =>
    makeDepositEntry({
      ...{ paymentId: `in ${payer}`, identity: `in ${payer}`, payer, amount: deposited },
      ...{ network: 'net', asset: '0xa', transaction: `in ${payer}` },
    }),
  )
  const { height } = await chain.append(entries)
  await chain.whenApplied(height)
  for (const payer of payers)
    await takeFromAccount(store.database, `wallet:${payer}`, async () => undefined)
}

const asked = fc.record({
  of: fc.nat(1),
  cap: fc.integer({ min: 1, max: 20 }),
  charge: fc.integer({ min: 0, max: 20 }),
  byKey: fc.boolean(),
})

test('sales of two processes and what others take meanwhile never come to more than an account has or a key may spend; each is there whole, with its claim, answer and entry, or not at all', async () => {
  let run = 0
  const property = fc.asyncProperty(
    fc.array(asked, { minLength: 1, maxLength: 40 }),
    fc.array(fc.nat(1), { maxLength: 4 }),
    async (wanted, others) => {
      run += 1
      await fill(run)
      const { database } = store
      const desks = [openDesk(), openDesk()]
      const orders = wanted.map((one) => makeOrder(run, one))
      const sell = (order: SaleOrder, at: number) =>
        desks[at % 2]?.sell(order).catch((error: unknown) => {
          if (error instanceof Fault) return error
          throw error
        })
      const half = Math.floor(orders.length / 2)
      const first = await Promise.all(orders.slice(0, half).map(sell))
      const takings = others.map((of, at) =>
        takeFromAccount(database, `wallet:0x${run}.${of}`, async (tx, available) => {
          const account = `wallet:0x${run}.${of}`
          if (available > 0n)
            await insertHold(tx, { id: `refund_${run}_${at}`, account, amount: 1n })
        }),
      )
      const outcomes = [...first, ...(await Promise.all(orders.slice(half).map(sell)))]
      await Promise.all(takings)
      await judge(run, orders, outcomes)
    },
  )
  await fc.assert(property, { numRuns: 30 })
}, 120_000)

async function judge(
  run: number,
  orders: readonly SaleOrder[],
  outcomes: readonly unknown[],
): Promise<void> {
  const { database } = store
  const accounts = [0, 1].map((of) => `wallet:0x${run}.${of}`)
  const before = await Promise.all(accounts.map((account) => readAvailable(database, account)))
  await chain.whenApplied(chain.head().height)
  await dropBlockHolds(database)
  const rows = await database.query<{ id: string; state: string; kept: number; sold: number }>(sql`
    SELECT id, state, (SELECT count(*)::int4 FROM operations.kept_reply AS kept WHERE kept.payment_id = claim.id) AS kept,
      (SELECT count(*)::int4 FROM system.sale AS sale WHERE sale.payment_id = claim.id) AS sold
    FROM operations.claim AS claim WHERE id = ANY(${orders.map(({ claim }) => claim.id)}::text[])`)
  const known = new Map(rows.map((row) => [row.id, row]))
  for (const [at, { claim }] of orders.entries()) {
    const row = known.get(claim.id)
    const isSold = typeof outcomes[at] === 'object' && !(outcomes[at] instanceof Fault)
    expect(row !== undefined, claim.id).toBe(isSold)
    if (isSold) expect(row).toMatchObject({ state: 'sold', kept: 1, sold: 1 })
  }
  for (const [at, account] of accounts.entries()) {
    const available = await readAvailable(database, account)
    // Before and after the tables have the sales, the account has the same.
    expect(available).toBe(before[at])
    expect(available).toBeGreaterThanOrEqual(0n)
    const sold = orders.filter(
      ({ claim }) => claim.identity.includes(`/${account.slice(7)}/`) && known.has(claim.id),
    )
    const byKey = sold.filter(({ paid }) => paid.spending !== undefined)
    const sum = (list: readonly SaleOrder[]) => list.reduce((all, { charge }) => all + charge, 0n)
    expect(sum(sold)).toBeLessThanOrEqual(deposited)
    expect(sum(byKey)).toBeLessThanOrEqual(limit)
  }
}

test('what somebody else takes from an account in between is found at the commit: nothing is sold, and the next sale counts on what is left', async () => {
  await fill(-1)
  const desk = openDesk()
  const ask = (cap: number) => desk.sell(makeOrder(-1, { of: 0, cap, charge: cap, byKey: false }))
  expect(await ask(10)).toMatchObject({ state: 'sold' })
  const account = 'wallet:0x-1.0'
  await takeFromAccount(store.database, account, (tx) =>
    insertHold(tx, { id: 'refund_-1', account, amount: 45n }),
  )
  expect(desk.findAvailable(account)).toBe(50n)
  expect(await ask(20)).toBe('unknown')
  expect(await ask(20)).toBe('short')
  expect(await ask(5)).toMatchObject({ state: 'sold' })
})

test('an account that somebody has locked at this moment keeps no sale of another one waiting', async () => {
  await fill(-2)
  const desk = openDesk()
  const ask = (of: number) => desk.sell(makeOrder(-2, { of, cap: 1, charge: 1, byKey: false }))
  expect(await Promise.all([ask(0), ask(1)])).toMatchObject([{ state: 'sold' }, { state: 'sold' }])
  await takeFromAccount(store.database, 'wallet:0x-2.0', async () => {
    expect(await ask(0)).toBe('unknown')
    expect(await ask(1)).toMatchObject({ state: 'sold' })
  })
})

test('who takes from one account, or has it locked, keeps no sale of another one from the commit that they share', async () => {
  await fill(-4)
  const desk = openDesk()
  const ask = (of: number) => desk.sell(makeOrder(-4, { of, cap: 1, charge: 1, byKey: false }))
  const askBoth = () => Promise.all([ask(0), ask(1)])
  const sold = { state: 'sold' }
  expect(await askBoth()).toMatchObject([sold, sold])
  await takeFromAccount(store.database, 'wallet:0x-4.0', async () => undefined)
  expect(await askBoth()).toMatchObject(['unknown', sold])
  expect(await askBoth()).toMatchObject([sold, sold])
  await takeFromAccount(store.database, 'wallet:0x-4.0', async () =>
    expect(await askBoth()).toMatchObject(['unknown', sold]),
  )
  expect(await askBoth()).toMatchObject([sold, sold])
  expect(desk.findAvailable('wallet:0x-4.1')).toBe(deposited - 5n)
  expect(desk.findAvailable('wallet:0x-4.0')).toBe(deposited - 3n)
})

test('answers of one commit are 1 MiB together at most, and a larger one is left to the longer way', async () => {
  await fill(-5)
  const desk = openDesk()
  const known = makeOrder(-5, { of: 0, cap: 1, charge: 1, byKey: false })
  expect(await desk.sell(known)).toMatchObject({ state: 'sold' })
  const ask = (bytes: number) => {
    const order = { of: 0, cap: 1, charge: 1, byKey: false }
    return desk.sell(makeOrder(-5, order, 'x'.repeat(bytes)))
  }
  const before = chain.head().height
  const half = saleBytesMax / 2
  const sold = { state: 'sold' }
  expect(await Promise.all([ask(half), ask(half)])).toMatchObject([sold, sold])
  expect(chain.head().height).toBe(before + 1)
  expect(await Promise.all([ask(half), ask(half + 1)])).toMatchObject([sold, sold])
  expect(chain.head().height).toBe(before + 3)
  expect(await ask(saleBytesMax)).toMatchObject(sold)
  expect(await ask(saleBytesMax + 1)).toBe('unknown')
  expect(chain.head().height).toBe(before + 4)
})

test('a sale that the database cannot store, and a payment that was claimed before, are not sold', async () => {
  await fill(-3)
  const desk = openDesk()
  const order = makeOrder(-3, { of: 0, cap: 1, charge: 1, byKey: false })
  expect(await desk.sell(order)).toMatchObject({ state: 'sold' })
  const again = makeOrder(-3, { of: 0, cap: 1, charge: 1, byKey: false })
  const { identity } = order.claim
  expect(await desk.sell({ ...again, claim: { ...again.claim, identity } })).toBe('unknown')
  const broken = makeOrder(-3, { of: 0, cap: 1, charge: 1, byKey: false })
  const claim = { ...broken.claim, request_hash: 'a\0b' }
  expect(await desk.sell({ ...broken, claim })).toBe('unknown')
  expect(await desk.sell(makeOrder(-3, { of: 0, cap: 1, charge: 1, byKey: false }))).toMatchObject({
    state: 'sold',
  })
})
