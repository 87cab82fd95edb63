import { giveParts } from '@tollbase/testing/give-parts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Fault } from '../../../base/fault.ts'
import { realWorld } from '../../../base/world.ts'
import type { Database } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { TestDatabase } from '../../../database/testing.ts'
import { noSize } from '../../../model/compute-cost.ts'
import { formatDay } from '../../../model/spending-limits.ts'
import type { KeyRecord } from '../../../projections/keys.ts'
import { Ledger } from '../../../projections/ledger.ts'
import { buildUseTables } from '../meters/use-store.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { createAccountDatabase } from '../payment-tables.test-support.ts'
import type { Offer } from '../purchase.ts'
import { readAvailable, takeFromAccount } from './account-lock.ts'
import { HoldDesk, type HoldOrder, type HoldOutcome } from './hold-desk.ts'
import { insertHold } from './holds.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createAccountDatabase([
    ...new Ledger().tables('system'),
    sql`CREATE TABLE system.watermark (id int2 NOT NULL, height int8 NOT NULL)`,
    sql`INSERT INTO system.watermark VALUES (1, 0)`,
    ...buildUseTables(),
  ])
})
afterAll(() => store?.drop())

const nowMs = Date.UTC(2026, 0, 2)
const limit = 25n
const quota = 2

class Died extends Error {}

/** A process: its transactions die at the times that are given, before their commit or after it. */
function openDesk(deaths: readonly ('no' | 'before' | 'after')[]): HoldDesk {
  let count = 0
  const database: Database = {
    ...store.database,
    transaction: async (work, options) => {
      const death = deaths[count++ % deaths.length]
      const result = await store.database.transaction(async (tx) => {
        const done = await work(tx)
        if (death === 'before') throw new Died()
        return done
      }, options)
      if (death === 'after') throw new Died()
      return result
    },
  }
  const keys = { find: () => giveParts<KeyRecord>({}) }
  const tenants = { system: { keys } }
  const world = { ...realWorld, now: () => nowMs }
  return new HoldDesk(giveParts<PaymentPorts>({ database, tenants, world }))
}

type Kind = 'wallet' | 'key' | 'channel' | 'quota'
type Asked = {
  readonly kind: Kind
  readonly of: number
  readonly cap: number
  readonly answers: boolean
  /** Its channel stands elsewhere by now. */
  readonly isStale: boolean
}
type TestOrder = HoldOrder & Pick<Asked, 'kind' | 'isStale'> & { readonly account: string }

let made = 0

function makeOrder(run: number, { kind, of, cap, answers, isStale }: Asked): TestOrder {
  made += 1
  const id = `pay_${made}`
  const payer = kind === 'channel' ? `channel:${run}.${of}` : `0x${kind}${run}.${of}`
  const account = kind === 'channel' ? payer : `wallet:${payer}`
  const budget = { id: `auth_${run}.${of}`, day: formatDay(nowMs) }
  const terms = {
    cap: BigInt(cap),
    prices: kind === 'quota' ? [makeMeteredPrice(cap)] : [],
    payees: [
      {
        account: 'app:shop',
        platformBasisPoints: 0,
        item: { kind: 'collection' as const, name: 'c' },
      },
    ],
    meaning: '',
    quoteId: '',
    expiresAt: 0,
  }
  const use = { id: `${run}.${of}`, base: 0n, uses: isStale ? 1 : 0 }
  const lifetime = { name: 'spend_limit', value: limit }
  const spending = {
    ...{ targets: [], nowMs, day: budget.day },
    paying: { key: { key_hash: '' }, budget: budget.id, limits: { lifetime }, account, payer },
  }
  const paid = giveParts<HoldOrder['paid']>({
    offer: giveParts<Offer>({ mostUnder: () => [noSize] }),
    ...(kind === 'key' && { spending }),
    ...(kind === 'channel' && { channel: { payer, voucher: {}, use } }),
  })
  const reply = { status: 200, body: Buffer.from(id), contentType: null, sale: '{}', sources: [] }
  return {
    ...{ kind, isStale, account, found: undefined, terms, paid },
    claim: {
      ...{ id, identity: `net/asset/${payer}/${made}`, request_hash: 'hash', app: 'shop' },
      ...{ operation: 'list', amount: 0n, cap: BigInt(cap), transfer: null, quote_id: null },
      terms: JSON.stringify(kind === 'key' ? { budget } : {}),
      ...{ valid_before: 10n, payment: '{}', state: 'held', reason: null, settled_by: null },
      ...{ write_after: null, write_form: null, payment_identifier: null, created_at_ms: 1n },
    },
    // A metered purchase is held first.
    answer:
      answers && kind !== 'quota' ? { ...reply, settledBy: null, expiresAtMs: 2e12 } : undefined,
  }
}

function makeMeteredPrice(cap: number) {
  const period = 'month' as const
  const discounts = {
    tiers: [{ unit: 'request' as const, period, above: 3n, amount: 1n }],
    quotas: [{ unit: 'request' as const, period, quantity: BigInt(quota) }],
    passes: true,
  }
  return { perAccess: BigInt(cap), perRow: 0n, perKb: 0n, emptyFree: false, discounts }
}

const asked = fc.record({
  kind: fc.constantFrom<Kind>('wallet', 'wallet', 'key', 'channel', 'quota'),
  of: fc.nat(2),
  cap: fc.integer({ min: 1, max: 20 }),
  answers: fc.boolean(),
  isStale: fc.boolean(),
})
const deaths = fc.array(fc.constantFrom('no', 'no', 'no', 'before', 'after'), { minLength: 1 })

test('purchases of several processes at once, any of which may die, never hold more than an account has or a key may spend, one at a time on a channel, and use a quota once; and nobody is refused what is there', async () => {
  let run = 0
  const property = fc.asyncProperty(
    fc.array(asked, { minLength: 1, maxLength: 60 }),
    fc.array(deaths, { minLength: 1, maxLength: 3 }),
    async (wanted, lives) => {
      run += 1
      const { database } = store
      const names = [0, 1, 2].map((of) => `${run}.${of}`)
      await database.execute(sql`
        INSERT INTO system.account (account, balance, earned)
        SELECT 'wallet:0x' || kind || name, 60, 0 FROM unnest(${names}::text[]) AS name, unnest(ARRAY['wallet', 'key', 'quota']) AS kind`)
      await database.execute(sql`
        INSERT INTO system.sold_total (app, total_by, start_ms, operation, key, sales, quantity, gross, fee)
        SELECT 'shop', 'buyer', 0, '', '0xquota' || name, 1, 1, 1, 0 FROM unnest(${names}::text[]) AS name`)
      await database.execute(sql`
        INSERT INTO system.channel (id, network, config, balance, claimed, withdrawing, charged, uses)
        SELECT name, 'net', '{}', 60, 0, 0, 0, 0 FROM unnest(${names}::text[]) AS name`)
      const desks = lives.map(openDesk)
      const orders = wanted.map((one) => makeOrder(run, one))
      // Somebody else takes from the same accounts meanwhile, by the lock alone.
      const others = orders.slice(0, 5).map(({ account, claim }) =>
        takeFromAccount(database, account, async (tx, available) => {
          if (available > 0n && account.startsWith('wallet:'))
            await insertHold(tx, { id: `refund_${claim.id}`, account, amount: 1n })
        }),
      )
      const outcomes = await Promise.all(
        orders.map((order, at) =>
          desks[at % desks.length]?.hold(order).catch((error: unknown) => {
            if (error instanceof Died || error instanceof Fault) return error
            throw error
          }),
        ),
      )
      await Promise.all(others)
      await judge(orders, outcomes)
    },
  )
  await fc.assert(property, { numRuns: 25 })
}, 120_000)

async function judge(
  orders: readonly TestOrder[],
  outcomes: readonly (HoldOutcome | Died | Fault | undefined)[],
): Promise<void> {
  const { database } = store
  const rows = await database.query<{
    id: string
    state: string
    cap: string
    isHeld: boolean
    isKept: boolean
  }>(sql`
    SELECT id, state, cap::text AS cap, EXISTS (SELECT 1 FROM operations.account_hold AS hold WHERE hold.id = claim.id AND hold.amount = claim.cap) AS "isHeld",
      EXISTS (SELECT 1 FROM operations.kept_reply AS reply WHERE reply.payment_id = claim.id) AS "isKept"
    FROM operations.claim AS claim WHERE id = ANY(${orders.map(({ claim }) => claim.id)}::text[])`)
  const known = new Map(rows.map((row) => [row.id, row]))
  for (const [at, order] of orders.entries()) {
    const { claim, account, answer, paid, kind, isStale } = order
    const outcome = outcomes[at]
    const row = known.get(claim.id)
    const available = await readAvailable(database, account)
    expect(available, account).toBeGreaterThanOrEqual(0n)
    // Claim, hold and answer are there together, or none of them is.
    if (row !== undefined) {
      const state = answer === undefined ? 'held' : 'owed'
      expect(row).toMatchObject({ state, isHeld: true, isKept: answer !== undefined })
    }
    const spent = orders
      .filter((one) => one.account === account && known.has(one.claim.id))
      .reduce((sum, one) => sum + one.claim.cap, 0n)
    if (paid.spending !== undefined) expect(spent).toBeLessThanOrEqual(limit)
    const before = orders.filter((one) => one.account === account && known.has(one.claim.id))
    if (paid.channel !== undefined) expect(before.length).toBeLessThanOrEqual(1)
    if (kind === 'quota') {
      const free = before.filter((one) => known.get(one.claim.id)?.cap === '0')
      expect(free).toHaveLength(Math.min(quota, before.length))
      if (outcome === 'short') expect(free).toHaveLength(quota)
    }
    if (kind === 'channel' && isStale) expect(row).toBeUndefined()
    if (outcome instanceof Died) continue
    if (paid.channel !== undefined && isStale) expect(outcome).toBe('short')
    else if (outcome === 'short' && paid.channel !== undefined) expect(before).toHaveLength(1)
    else if (outcome === 'short') expect(available).toBeLessThan(claim.cap)
    else if (outcome instanceof Fault) expect(spent + claim.cap).toBeGreaterThan(limit)
    else expect(outcome).toMatchObject({ id: claim.id, state: row?.state })
    expect(outcome === 'short' || outcome instanceof Fault).toBe(row === undefined)
  }
}

test('an account that a withdrawal locks for the first time keeps no other one waiting', async () => {
  const desk = openDesk(['no'])
  const plain = { kind: 'wallet', cap: 1, answers: false, isStale: false } as const
  const [slow, other] = [makeOrder(-1, { ...plain, of: 0 }), makeOrder(-1, { ...plain, of: 1 })]
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  let withdrawal: Promise<void> | undefined
  // Its row is made by then, and nobody else sees it.
  await new Promise<void>((resolve) => {
    withdrawal = takeFromAccount(store.database, slow.account, async () => {
      resolve()
      await ended
    })
  })
  const held = desk.hold(slow)
  expect(await desk.hold(other)).toBe('short')
  end()
  await withdrawal
  expect(await held).toBe('short')
})

test('a metered purchase that cannot be measured fails alone', async () => {
  const { database } = store
  const metered = { kind: 'quota', of: 0, cap: 5, answers: false, isStale: false } as const
  const [wrong, right] = [makeOrder(-2, metered), makeOrder(-2, metered)]
  await database.execute(
    sql`INSERT INTO system.account (account, balance, earned) VALUES (${right.account}, 60, 0)`,
  )
  const offer = giveParts<Offer>({
    mostUnder: () => {
      throw new Fault('OFFER_CHANGED')
    },
  })
  const desk = openDesk(['no'])
  const outcomes = await Promise.allSettled([
    desk.hold({ ...wrong, paid: { ...wrong.paid, offer } }),
    desk.hold(right),
  ])
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: { code: 'OFFER_CHANGED' } },
    { status: 'fulfilled', value: { id: right.claim.id, cap: 5n } },
  ])
})

test('who was refused so much is not trusted with it again before so much is held, whatever it buys for less', async () => {
  const desk = openDesk(['no'])
  const ask = (cap: number) =>
    makeOrder(-3, { kind: 'wallet', of: 0, cap, answers: false, isStale: false })
  const { account } = ask(1)
  await store.database.execute(
    sql`INSERT INTO system.account (account, balance, earned) VALUES (${account}, 10, 0)`,
  )
  expect(desk.wasRefused(ask(11))).toBe(false)
  expect(await desk.hold(ask(11))).toBe('short')
  expect(await desk.hold(ask(2))).toMatchObject({ cap: 2n })
  expect([11, 20, 10].map((cap) => desk.wasRefused(ask(cap)))).toEqual([true, true, false])
  await store.database.execute(
    sql`UPDATE system.account SET balance = 40 WHERE account = ${account}`,
  )
  expect(await desk.hold(ask(12))).toMatchObject({ cap: 12n })
  expect(desk.wasRefused(ask(11))).toBe(false)
})
