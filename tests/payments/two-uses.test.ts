import { setTimeout } from 'node:timers/promises'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect, test, vi } from 'vitest'
import type { Database } from '../../packages/server/src/database/database.ts'
import { type SqlStatement, sql } from '../../packages/server/src/database/sql.ts'
import { Facilitating } from '../../packages/server/src/services/payments/facilitating/facilitating.ts'
import {
  buildTakerTable,
  dropTakers,
} from '../../packages/server/src/services/payments/facilitating/two-uses.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
  ask,
  type Buyer,
  createFundedBuyer,
  list,
  makeBuyer,
  type PaymentHeader,
  parseEntry,
  quote,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  setPrices,
} from '../support/market.ts'
import { connectDevnet, handIn } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestApp, TestService } from '../support/service.ts'
import { replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import { expectAuditEqual, takeBack } from './reorganize.ts'

vi.setConfig({ testTimeout: 120_000 })

const facilitator = {
  ...({ access: 'key', networks: undefined, minimumPayment: 500n } as const),
  ...{ settlementsPerDay: 100, allSettlementsPerDay: 100 },
} as const
const price = 1_000n
const asked = ({ root }: Market) => list({ root, limit: 2 })

/** Brings the payment; true where it is delivered for, otherwise what is said. */
type Bring = () => Promise<unknown>
type Scene = {
  readonly market: Market
  readonly buyer: Buyer
  readonly payTo: string
  readonly header: PaymentHeader
  readonly buyHere: Bring
  readonly settleThere: Bring
  /** Lets the same server have another payment of this buyer settled, to somebody else. */
  readonly settleOther: (other: PaymentHeader) => Promise<unknown>
  /** Signs such a payment. */
  readonly signOther: (amount: bigint) => Promise<PaymentHeader>
}

/** A payment to the wallet of a seller who sells here, and by another server of its that lets this service settle. */
async function openScene(service: TestService, funds = price): Promise<Scene> {
  const market = await openMarket(service)
  const rule = { operation: 'read', model: 'per_access', amount: String(price) }
  await setPrices(service, market, [rule])
  const { headers } = market
  const owner = { owner_address: makeBuyer().address }
  await service.request('PATCH', `/api/apps/${market.appId}`, {
    ...{ headers: service.operator, body: owner },
  })
  const settings = { headers, body: { direct_settlement: true } }
  await service.request('POST', `/api/apps/${market.appId}/payout/settings`, settings)
  const giver = await createFundedBuyer(service, 1_000n)
  const path = `/api/apps/${market.appId}/wallet/deposit`
  await giver.buy(service, { method: 'POST', path, headers, raw: '{"amount":"1000"}' })
  const buyer = await createFundedBuyer(service, funds)
  const required = await quote(service, asked(market))
  const { payTo } = parseEntry(required)
  expect(payTo).toBe(owner.owner_address)
  const header = await buyer.payV2(required)
  const app = await service.createApp()
  return {
    ...{ market, buyer, payTo, header },
    buyHere: async () => {
      const reply = await ask(service, asked(market), { ...header, 'x-balance': 'off' })
      return reply.status === 200 || reply.text
    },
    settleThere: () => settle(service, app, header),
    settleOther: (other) => settle(service, app, other),
    signOther: (value) => {
      const to = privateKeyToAddress(generatePrivateKey()).toLowerCase()
      const amount = String(value)
      const forged = { authorization: { to, value: amount }, accepted: { payTo: to, amount } }
      return buyer.payV2(required, forged)
    },
  }
}

async function settle(service: TestService, app: TestApp, header: PaymentHeader): Promise<unknown> {
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  const { accepted, payload } = JSON.parse(text)
  const { quoteId, ...extra } = accepted.extra
  const paymentRequirements = { ...accepted, extra }
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload }
  const body = { x402Version: 2, paymentPayload, paymentRequirements }
  const reply = await service.request('POST', '/api/payments/settle', {
    ...{ headers: app.headers, body },
  })
  return reply.body.success === true || reply.body.errorReason
}

/** Does the work while no transaction is signed here: what is brought meanwhile is found good, and waits. */
const whileUnsigned = (service: TestService, work: () => Promise<unknown>) =>
  whileLocked(service, sql`operations.transaction_journal IN EXCLUSIVE MODE`, work)

/** Does the work while no claim is written. */
const whileUnclaimed = (service: TestService, work: () => Promise<unknown>) =>
  whileLocked(service, sql`operations.claim IN SHARE MODE`, work)

async function whileLocked(
  { database }: TestService,
  what: SqlStatement,
  work: () => Promise<unknown>,
): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.execute(sql`LOCK TABLE ${what}`)
    await work()
  })
}

type Begun = { readonly end: () => Promise<unknown> }

/** Begins to bring it, with time to come to what is locked. */
async function begin(bring: Bring): Promise<Begun> {
  const begun = bring()
  await setTimeout(1_000)
  return { end: () => begun }
}

async function readTaker({ database }: TestService, { buyer }: Scene): Promise<string | undefined> {
  const [row] = await database.query<{ taker: string }>(sql`
    SELECT taker FROM operations.payment_taker WHERE split_part(identity, '/', 3) = ${buyer.address}`)
  return row?.taker
}

/** The seller was paid once, one side alone delivered, and nothing is left that does not fit. */
async function expectSoldOnce(
  service: TestService,
  scene: Scene,
  told: readonly unknown[],
): Promise<void> {
  expect(await readChainBalance(service, scene.payTo)).toBe(price)
  expect(told.filter((one) => one === true).length, JSON.stringify(told)).toBe(1)
  await expectBalanced(service)
  await expectAuditEqual(service)
}

withService(
  (service) => {
    const replaceFacilitating = (facilitating: Facilitating) =>
      Object.assign(service().running.service, { facilitating })
    /** The facilitator of another process on the same tables, whose node does not know yet what is used. */
    const makeLaggingProcess = () => {
      const { ports } = service().running.service.payments
      const lagging = replaceFacilitators(ports, () => ({ verify: async () => ({ ok: true }) }))
      return new Facilitating(lagging, facilitator)
    }

    test.each(['purchase', 'settlement'] as const)(
      'P1: what is brought for a purchase and by another server of its seller before either is sent is the purchase’s, whose answer is kept: the %s came first',
      async (first) => {
        const scene = await openScene(service())
        const { buyHere, settleThere } = scene
        const ways = first === 'purchase' ? [buyHere, settleThere] : [settleThere, buyHere]
        const begun: Begun[] = []
        await whileUnsigned(service(), async () => {
          for (const way of ways) begun.push(await begin(way))
        })
        const told = await Promise.all(begun.map(({ end }) => end()))
        expect(told[first === 'purchase' ? 0 : 1]).toBe(true)
        expect(told).toContain('authorization_used')
        expect(await readTaker(service(), scene)).toMatch(/^pay_/)
        await expectSoldOnce(service(), scene, told)
      },
    )

    test('P1: a purchase whose claim is written after another server was told has no answer, whenever its claim was made', async () => {
      const scene = await openScene(service(), 5_000n)
      let here: Begun | undefined
      let there: unknown
      // The claim has its time before it waits: here for its table, in life for the seller's account, or the payer's others.
      await whileUnclaimed(service(), async () => {
        here = await begin(scene.buyHere)
        let begun: Begun | undefined
        await whileUnsigned(service(), async () => {
          begun = await begin(scene.settleThere)
          await handIn(service(), scene.header)
        })
        there = await begun?.end()
      })
      const told = [await here?.end(), there]
      expect(told).toEqual([expect.stringContaining('PAYMENT_ALREADY_USED'), true])
      await expectSoldOnce(service(), scene, told)
      expect(await scene.buyHere()).not.toBe(true)
    })

    test('P1: a server that is told without a transaction of ours has the payment, and a purchase whose answer takes longer has not', async () => {
      const scene = await openScene(service(), 2n * price)
      const { database, running } = service()
      const tenant = await running.service.tenants.load(scene.market.appId)
      const tables = await database.query<{ name: string }>(sql`
        SELECT tablename AS name FROM pg_tables WHERE schemaname = ${tenant.schema} AND tablename ~ '^c_[0-9]+$'`)
      expect(tables.length).toBeGreaterThan(0)
      const others = [await scene.signOther(1_000n), await scene.signOther(1_500n)]
      let here: Begun | undefined
      const told: unknown[] = []
      await database.transaction(async (slow) => {
        for (const { name } of tables)
          await slow.execute(
            sql`LOCK TABLE ${sql.id(tenant.schema, name)} IN ACCESS EXCLUSIVE MODE`,
          )
        here = await begin(scene.buyHere)
        const begun: Begun[] = []
        // The payer has not the money for all of them, so the last one is not sent by us.
        await whileUnsigned(service(), async () => {
          for (const other of others) begun.push(await begin(() => scene.settleOther(other)))
          begun.push(await begin(scene.settleThere))
          await handIn(service(), scene.header)
        })
        told.push(...(await Promise.all(begun.map(({ end }) => end()))).slice(-1))
      })
      told.push(await here?.end())
      expect(told).toEqual([true, expect.stringContaining('PAYMENT_ALREADY_USED')])
      expect(await readTaker(service(), scene)).toMatch(/^settlement_/)
      await expectSoldOnce(service(), scene, told)
    })

    test('P1: a settlement that failed leaves the payment to the purchase that is made later, whoever hands it in', async () => {
      const scene = await openScene(service())
      const other = await scene.signOther(price)
      let there: Begun | undefined
      await whileUnsigned(service(), async () => {
        there = await begin(scene.settleThere)
        // The payer's money is gone before the transaction of the settlement is in a block.
        await handIn(service(), other)
      })
      expect(await there?.end()).toBe('transaction_reverted')
      expect(await readTaker(service(), scene)).toBe(undefined)
      const body = { address: scene.buyer.address, amount: String(price) }
      await service().request('POST', '/devnet/faucet', { body })
      let here: Begun | undefined
      await whileUnsigned(service(), async () => {
        here = await begin(scene.buyHere)
        // A stranger who reads it from the pool of transactions.
        await handIn(service(), scene.header)
      })
      await expectSoldOnce(service(), scene, [await here?.end(), await scene.settleThere()])
    })

    test('P1: a process that dies between a purchase’s row and its money leaves the payment to that purchase, which is delivered when it is asked for again', async () => {
      const scene = await openScene(service())
      const { payments } = service().running.service
      const { ports } = payments
      const dying = replaceFacilitators(ports, () => ({
        settle: () => Promise.reject(new Error('died')),
      }))
      replacePayments(service(), new Payments(dying))
      expect(await scene.buyHere()).not.toBe(true)
      replacePayments(service(), new Payments(ports))
      expect(await readTaker(service(), scene)).toMatch(/^pay_/)
      // Its money moves by the settlement, and is the purchase's.
      const there = await scene.settleThere()
      expect(there).toBe('authorization_used')
      await expectSoldOnce(service(), scene, [there, await scene.buyHere()])
    })

    test('P1: a settlement whose row may or may not be written is pending, then told once, and by no other process', async () => {
      const scene = await openScene(service())
      const { facilitating, payments } = service().running.service
      const { database } = payments.ports
      let isLost = true
      const lost: Database = {
        ...database,
        query: async (statement, options) => {
          const rows = await database.query<Json>(statement, options)
          // The row by which it was asked for, by its own id, is there.
          const isTaking = statement.values.some((value) => String(value).startsWith('settlement_'))
          if (!isLost || !isTaking) return rows
          isLost = false
          throw new Error('the connection was lost')
        },
      }
      const own = new Facilitating({ ...payments.ports, database: lost }, facilitator)
      const told: unknown[] = []
      for (const process of [own, makeLaggingProcess(), own, own, makeLaggingProcess()]) {
        replaceFacilitating(process)
        told.push(await scene.settleThere())
      }
      Object.assign(service().running.service, { facilitating })
      const used = 'authorization_used'
      expect(told).toEqual(['settlement_pending', used, true, used, used])
      await expectSoldOnce(service(), scene, [...told, await scene.buyHere()])
    })

    test('P1: a settlement that a process took, and died before it had told it, is told by the next process, once', async () => {
      const scene = await openScene(service())
      const { facilitating, payments } = service().running.service
      const { database } = payments.ports
      const dieBeforeDropping = async (statement: SqlStatement) => {
        const { text, values } = statement
        if (text.includes('DELETE') && values.some((value) => String(value).startsWith('asked_')))
          throw new Error('the process died')
      }
      const dying: Database = {
        ...database,
        query: async (statement, options) => {
          await dieBeforeDropping(statement)
          return database.query<Json>(statement, options)
        },
        execute: async (statement) => {
          await dieBeforeDropping(statement)
          return database.execute(statement)
        },
      }
      replaceFacilitating(new Facilitating({ ...payments.ports, database: dying }, facilitator))
      // Nobody hears the answer of a process that died.
      await scene.settleThere()
      const told: unknown[] = []
      for (const process of [
        new Facilitating(payments.ports, facilitator),
        new Facilitating(payments.ports, facilitator),
        makeLaggingProcess(),
      ]) {
        replaceFacilitating(process)
        told.push(await scene.settleThere())
      }
      Object.assign(service().running.service, { facilitating })
      expect(told).toEqual([true, 'authorization_used', 'authorization_used'])
      await expectSoldOnce(service(), scene, [...told, await scene.buyHere()])
    })

    test('P1: a process that cannot read who asked for a settlement calls it pending, and tells it later', async () => {
      const scene = await openScene(service())
      const { facilitating, payments } = service().running.service
      const { database } = payments.ports
      const dying = replaceFacilitators(payments.ports, (real) => ({
        settle: async (...given) => {
          await real.settle(...given)
          throw new Error('the process died')
        },
      }))
      replaceFacilitating(new Facilitating(dying, facilitator))
      expect(await scene.settleThere()).not.toBe(true)
      let isLost = true
      const lost: Database = {
        ...database,
        query: async (statement, options) => {
          const isReading = statement.text.startsWith('SELECT taker')
          if (isLost && isReading) throw new Error('the connection was lost')
          return database.query<Json>(statement, options)
        },
      }
      replaceFacilitating(new Facilitating({ ...payments.ports, database: lost }, facilitator))
      const told = [await scene.settleThere()]
      isLost = false
      told.push(await scene.settleThere())
      Object.assign(service().running.service, { facilitating })
      expect(told).toEqual(['settlement_pending', true])
      await expectSoldOnce(service(), scene, told)
    })

    test('P1: a payment that was told to another server, and that a reorganisation took back, buys nothing here', async () => {
      const scene = await openScene(service())
      const chain = connectDevnet(service())
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const told = [await scene.settleThere()]
      await takeBack(service(), since)
      expect(await readChainBalance(service(), scene.payTo)).toBe(0n)
      told.push(await scene.buyHere())
      expect(told).toEqual([true, expect.stringContaining('PAYMENT_ALREADY_USED')])
      await chain.setAutomine(true)
      service().world.advance(11_000)
      service().world.passInterval(10_000)
      await vi.waitFor(async () => {
        expect(await readChainBalance(service(), scene.payTo)).toBe(price)
      }, 20_000)
      await expectSoldOnce(service(), scene, [...told, await scene.buyHere()])
    })

    test('P1: a payment that was sold before there were rows, and that a reorganisation took back after the upgrade, is told to no other server', async () => {
      const scene = await openScene(service())
      const { database } = service()
      const chain = connectDevnet(service())
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const told = [await scene.buyHere()]
      const before = await readTaker(service(), scene)
      await database.execute(sql`DROP TABLE operations.payment_taker`)
      for (const statement of buildTakerTable()) await database.execute(statement)
      await takeBack(service(), since)
      await chain.setAutomine(true)
      told.push(await scene.settleThere())
      expect(told).toEqual([true, 'authorization_used'])
      expect(await readChainBalance(service(), scene.payTo)).toBe(price)
      expect(await readTaker(service(), scene)).toBe(before)
    })

    test('the row of a payment goes a week after it was taken, but not while an answer waits for its money', async () => {
      const scenes = [await openScene(service()), await openScene(service())]
      const [sold, waiting] = scenes
      expect(await sold?.settleThere()).toBe(true)
      const { database, world } = service()
      let here: Begun | undefined
      const read = () => Promise.all(scenes.map((one) => readTaker(service(), one)))
      const has = async () => (await read()).map((taker) => taker?.replace(/_.*/, ''))
      await whileUnsigned(service(), async () => {
        here = await begin(waiting?.buyHere ?? (async () => undefined))
        const weekMs = 7 * 24 * 3_600_000
        await dropTakers(database, world.now() + weekMs - 60_000)
        expect(await has()).toEqual(['settlement', 'pay'])
        await dropTakers(database, world.now() + weekMs + 60_000)
        expect(await has()).toEqual([undefined, 'pay'])
        // The payments of an older database, whose answers wait, are their purchases', too.
        const before = await read()
        await database.execute(sql`DROP TABLE operations.payment_taker`)
        for (const statement of buildTakerTable()) await database.execute(statement)
        expect(await read()).toEqual(before)
      })
      expect(await here?.end()).toBe(true)
    })
  },
  { devnet: true, config: { facilitator } },
)
