import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hourMs } from '../../base/durations.ts'
import type { AppliedEntry } from '../../chain/applier.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { Ledger } from '../../projections/ledger.ts'
import {
  listKeys,
  listSold,
  listSpans,
  listStatementLines,
  sumSales,
} from '../../projections/read-sales.ts'
import { makeDepositEntry } from './deposits/claim-deposit.ts'
import { makeSaleEntry, type Part } from './make-sale.ts'

let store: TestDatabase
let schemas = 0

beforeAll(async () => {
  store = await createTestDatabase()
})

afterAll(() => store?.drop())

type Step =
  | { readonly kind: 'deposit'; readonly payment: number; readonly twin: boolean }
  | { readonly kind: 'sale'; readonly payment: number; readonly app: number; readonly part: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('deposit' as const),
    payment: fc.integer({ min: 0, max: 12 }),
    twin: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('sale' as const),
    payment: fc.integer({ min: 0, max: 12 }),
    app: fc.integer({ min: 0, max: 2 }),
    part: fc.integer({ min: 0, max: 100 }),
  }),
)

/** The amount that the payment of this number moves: no split divides it evenly, and one is beyond 2^53. */
const computeAmount = (payment: number) =>
  payment === 12 ? 10n ** 24n + 7n : 101n * BigInt(payment) + 3n
const makePayer = (payment: number) => `0x${String(payment % 4).repeat(40)}`
const computeCharge = (payment: number, part: number) =>
  (computeAmount(payment) * BigInt(part)) / 100n
const basisPoints = 1_750n

function makeEntry(one: Step) {
  const identity = `eip155:1/0xa/${makePayer(one.payment)}/${one.payment}`
  const network = 'eip155:1'
  if (one.kind === 'deposit') {
    // A twin is a second claim of the same payment, as after a loss of all operational state.
    const paymentId = one.twin ? `twin_${one.payment}` : `pay_${one.payment}`
    const payer = makePayer(one.payment)
    const amount = computeAmount(one.payment)
    return makeDepositEntry({
      paymentId,
      identity,
      payer,
      amount,
      network,
      asset: '0xa',
      transaction: '0x1',
    })
  }
  const charge = computeCharge(one.payment, one.part)
  const facts = {
    payment_id: `pay_${one.payment}`,
    request_hash: 'hash',
    quote_hash: null,
    payer: makePayer(one.payment),
    payee: `app:${one.app}`,
    amount: String(charge),
    deposited: String(computeAmount(one.payment)),
    change: String(computeAmount(one.payment) - charge),
    asset: '0xa',
    network,
    transaction: '0x1',
    app: String(one.app),
    operation: 'list',
    as_of: null,
    row_count: 1,
    result_hash: 'hash',
    delivered_at: '2026-01-01T00:00:00.000Z',
  }
  return makeSaleEntry({
    ...{ identity, facts, split: { platformBasisPoints: basisPoints } },
    parts: listParts(one, charge),
  })
}

/** Two things of the seller's and one of another application. */
function listParts({ app, payment }: { app: number; payment: number }, charge: bigint): Part[] {
  const third = charge / 3n
  return [third, charge - 2n * third, third].map((amount, at) => ({
    amount,
    platformBasisPoints: 0n,
    account: `app:${at === 2 ? (app + 1) % 3 : app}`,
    item: { kind: 'collection', name: `c${(payment + at) % 2}` },
  }))
}

/** The ledger as a few lines of arithmetic: what the tables must say. */
function computeBalances(steps: readonly Step[]): Map<string, bigint> {
  const balances = new Map<string, bigint>()
  const add = (account: string, amount: bigint) => {
    if (amount !== 0n) balances.set(account, (balances.get(account) ?? 0n) + amount)
  }
  const deposited = new Map<number, boolean>()
  const sold = new Set<number>()
  for (const one of steps) {
    const payer = `wallet:${makePayer(one.payment)}`
    if (one.kind === 'deposit' && !deposited.has(one.payment)) {
      deposited.set(one.payment, one.twin)
      add('outside:eip155:1', -computeAmount(one.payment))
      add(payer, computeAmount(one.payment))
    }
    if (one.kind === 'sale' && deposited.get(one.payment) === false && !sold.has(one.payment)) {
      sold.add(one.payment)
      const charge = computeCharge(one.payment, one.part)
      const theirs = charge / 3n
      const own = charge - theirs
      const fees = [own, theirs].map((amount) => (amount * basisPoints) / 10_000n)
      const [ownFee = 0n, theirFee = 0n] = fees
      add(payer, -charge)
      add('platform', ownFee + theirFee)
      add(`app:${one.app}`, own - ownFee)
      add(`app:${(one.app + 1) % 3}`, theirs - theirFee)
    }
  }
  return balances
}

/** Applies the entries in runs of these sizes, each in a transaction, and returns the schema. */
async function applySteps(steps: readonly Step[], sizes: readonly number[]): Promise<string> {
  schemas += 1
  const schema = `ledger_${schemas}`
  const ledger = new Ledger()
  await store.database.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
  for (const statement of ledger.tables(schema)) await store.database.execute(statement)
  const entries = steps.map((one, at): AppliedEntry => {
    const { header, body } = makeEntry(one)
    // Sales of several days, some of them in one hour.
    const place = { height: at + 1, sequence: 0, leafIndex: at, time: 1_000 + at * 1_300_000 }
    return { header, body, ...place }
  })
  for (let at = 0, turn = 0; at < entries.length; turn++) {
    const run = entries.slice(at, at + (sizes[turn % sizes.length] ?? 1))
    await store.database.transaction((tx) => ledger.apply(tx, schema, { entries: run }))
    at += run.length
  }
  return schema
}

async function readRows(schema: string): Promise<string[]> {
  const rows = await Promise.all(
    new Ledger().tableNames().map((table) => {
      const statement = sql`
        SELECT to_jsonb(row)::text AS row FROM ${sql.id(schema, table)} AS row ORDER BY to_jsonb(row)::text`
      return store.database.query<{ row: string }>(statement)
    }),
  )
  return rows.flat().map(({ row }) => row)
}

const steps = fc.array(step, { minLength: 1, maxLength: 60 })
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 })

test('every prefix of the ledger sums to zero, with nobody in debt and every split exact, whatever is appended, twice or out of order', async () => {
  await fc.assert(
    fc.asyncProperty(steps, sizes, async (given, runs) => {
      const schema = await applySteps(given, runs)
      const accounts = await store.database.query<{ account: string; balance: string }>(
        sql`SELECT account, balance FROM ${sql.id(schema, 'account')}`,
      )
      const balances = new Map(accounts.map((row) => [row.account, BigInt(row.balance)]))
      expect(balances).toEqual(computeBalances(given))
      const debts = [...balances].filter(([name, one]) => !name.startsWith('outside:') && one < 0n)
      expect(debts).toEqual([])
      const unbalanced = await store.database.query(sql`
        SELECT leaf FROM (SELECT leaf, sum(sum(amount)) OVER (ORDER BY leaf) AS running
          FROM ${sql.id(schema, 'posting')} GROUP BY leaf) AS prefix WHERE running <> 0`)
      expect(unbalanced).toEqual([])
      const broken = await store.database.query(sql`
        SELECT account FROM (SELECT account, balance_after,
          sum(amount) OVER (PARTITION BY account ORDER BY leaf, line) AS running
          FROM ${sql.id(schema, 'posting')}) AS movement WHERE running <> balance_after`)
      expect(broken).toEqual([])
    }),
    { numRuns: 40 },
  )
})

const periods = fc.array(fc.integer({ min: 0, max: 24 }), { minLength: 2, maxLength: 2 })

test('sums and statements of any period are those of the sales in it, and the balance is all that was earned', async () => {
  await fc.assert(
    fc.asyncProperty(steps, sizes, periods, async (given, runs, hours) => {
      const schema = await applySteps(given, runs)
      const [fromMs = 0, toMs = 0] = hours.toSorted((a, b) => a - b).map((hour) => hour * hourMs)
      const { database } = store
      for (const app of ['0', '1', '2']) {
        const period = { schema, app, fromMs, toMs }
        const page = { before: undefined, limit: 1_000 }
        const sold = await listSold(database, period, page)
        const sumOf = (rows: readonly { gross: string; fee: string }[]) =>
          rows.reduce((sum, { gross, fee }) => sum + BigInt(gross) - BigInt(fee), 0n)
        const net = sumOf(sold)
        const sales = new Set(sold.map(({ payment_id: id }) => id)).size
        const all = await sumSales(database, period)
        expect([sumOf([all]), Number(all.sales)]).toEqual([net, sales])
        const spans = await listSpans(database, period, { spanMs: 24 * hourMs, limit: 100 })
        const buyers = await listKeys(database, period, {
          by: 'buyer',
          after: undefined,
          limit: 100,
        })
        for (const rows of [spans, buyers])
          expect([sumOf(rows), rows.reduce((sum, one) => sum + Number(one.sales), 0)]).toEqual([
            net,
            sales,
          ])
        const items = await listKeys(database, period, { by: 'item', after: undefined, limit: 100 })
        expect(sumOf(items)).toBe(net)
        for (const { key, sales: count } of items) {
          const ofItem = sold.filter(({ item_kind, item }) => `${item_kind} ${item}` === key)
          expect(Number(count)).toBe(new Set(ofItem.map(({ payment_id: id }) => id)).size)
        }
        const lines = await listStatementLines(database, period, { after: undefined, limit: 1_000 })
        expect(sumOf(lines)).toBe(net)
        const ever = await sumSales(database, { ...period, fromMs: 0, toMs: 1e15 })
        const { balance } = await new Ledger().readBalance(database, schema, `app:${app}`)
        expect(sumOf([ever])).toBe(balance)
      }
    }),
    { numRuns: 15 },
  )
})

test('the tables are a function of the entries, and have the same rows when these are applied in other runs', async () => {
  await fc.assert(
    fc.asyncProperty(steps, sizes, sizes, async (given, one, other) => {
      expect(await readRows(await applySteps(given, one))).toEqual(
        await readRows(await applySteps(given, other)),
      )
    }),
    { numRuns: 20 },
  )
})

test('a group that was appended twice, because its outcome was unknown, is booked once', async () => {
  const group: Step[] = [
    { kind: 'deposit', payment: 3, twin: false },
    { kind: 'sale', payment: 3, app: 1, part: 50 },
  ]
  const once = await readRows(await applySteps(group, [2]))
  expect(await readRows(await applySteps([...group, ...group], [2]))).toEqual(once)
  expect(await readRows(await applySteps([...group, ...group], [4]))).toEqual(once)
})
