import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { unitParts } from '../../packages/server/src/model/storage-fee.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { getSchemaName } from '../../packages/server/src/services/applications/tenants.ts'
import { sumLogBytes } from '../../packages/server/src/services/payments/storage/read-stored-bytes.ts'
import {
  postStorageFees,
  type StorageFeeParts,
} from '../../packages/server/src/services/payments/storage/storage-fees.ts'
import { createFundedBuyer, list } from '../support/buyer.ts'
import { expectBalanced, type Market, openMarket, readEarnings, store } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

const dayMs = 86_400_000

withService(
  (service) => {
    const fail = (app: string, error: unknown) => {
      throw new Error(`${app}: ${String(error)}`)
    }
    const makeParts = (price: bigint, freeBytes = 0n): StorageFeeParts => {
      const { database, tenants, world, blobs } = service().running.service
      return { database, tenants, world, files: blobs.store, settings: { price, freeBytes } }
    }
    const book = (price: bigint, freeBytes = 0n) =>
      postStorageFees(makeParts(price, freeBytes), fail)
    /** Does the work when all that was stored so far is older than the free days. */
    const later = async <T>(days: number, work: () => Promise<T>): Promise<T> => {
      service().world.advance(days * dayMs)
      try {
        return await work()
      } finally {
        service().world.advance(-days * dayMs)
      }
    }
    /** Sells two rows at 1,000 each; the market earns 1,600 of it. */
    const sell = async (market: Market) => {
      const buyer = await createFundedBuyer(service())
      const reply = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
      expect(reply.status, reply.text).toBe(200)
    }
    const open = () => openMarket(service(), { price: { per_row: '1000' } })
    const readLogBytes = async ({ appId }: Market): Promise<bigint> => {
      const { number } = service().running.service.tenants.requireRecord(appId)
      const [row] = await service().database.query<{ bytes: string }>(sql`
        SELECT sum(octet_length(body))::text AS bytes FROM ${sql.id(getSchemaName(number), 'block')}`)
      return BigInt(row?.bytes ?? 0)
    }
    const readFees = async (market: Market) => {
      const { body } = await service().request('GET', `/api/billing/${market.appId}`, {
        headers: market.headers,
      })
      return body.fees
    }
    const listFees = ({ appId }: Market) =>
      service().database.query<{ amount: string; paid: string; owed: string; day: string }>(sql`
        SELECT day, amount::text, paid::text, owed::text FROM system.storage_fee WHERE app = ${appId} ORDER BY leaf`)
    const sum = (fees: readonly { amount: string }[]) =>
      fees.reduce((total, { amount }) => total + BigInt(amount), 0n)

    test('nothing is booked where the operator charges nothing, nor for the free days', async () => {
      const market = await open()
      expect(service().config.storageFees).toBeUndefined()
      await book(unitParts)
      await later(29, () => book(unitParts))
      expect(await listFees(market)).toEqual([])
    })

    test('a day is charged once, by the byte beyond the free ones, out of what was earned, and all books show it', async () => {
      const market = await open()
      await sell(market)
      const bytes = await readLogBytes(market)
      // A unit for each byte and day.
      const free = bytes - 100n
      const [before] = await service().database.query<{ balance: string }>(
        sql`SELECT balance::text FROM system.account WHERE account = 'platform'`,
      )
      await later(31, async () => {
        await book(unitParts, free)
        await book(unitParts, free)
        await Promise.all([book(unitParts, 0n), book(unitParts, 0n)])
        expect(await listFees(market)).toMatchObject([{ amount: '100', paid: '100', owed: '0' }])
        expect(await readFees(market)).toEqual({
          ...{ storage: '100', storage_paid: '100', storage_owed: '0' },
        })
        const path = `/api/apps/${market.appId}/billing/statement`
        const { body } = await service().request('GET', path, { headers: market.headers })
        expect(body.lines).toMatchObject([{ kind: 'storage_fee', net: '-100' }])
      })
      expect(await readEarnings(service(), market)).toBe(1_500n)
      const said = await service().request('GET', `/api/billing/${market.appId}`, {
        headers: market.headers,
      })
      expect(said.body.usd).toEqual({
        ...{ gross: '0.002', fee: '0.0004', net: '0.0016' },
        ...{ storage: '0.00', storage_paid: '0.00', storage_owed: '0.00' },
        ...{ balance: '0.0015', lifetime_earned: '0.0016' },
      })
      const [after] = await service().database.query<{ balance: string }>(
        sql`SELECT balance::text FROM system.account WHERE account = 'platform'`,
      )
      expect(BigInt(after?.balance ?? 0) - BigInt(before?.balance ?? 0)).toBeGreaterThanOrEqual(
        100n,
      )
      await expectBalanced(service())
    })

    test('a log is measured by pages of blocks, and comes to the same whatever their number', async () => {
      const market = await open()
      for (const id of ['c8', 'c9']) await store(service(), market, [{ id }])
      const { database, tenants } = service().running.service
      const tenant = await tenants.load(market.appId)
      const { height } = tenant.chain.head()
      expect(height).toBeGreaterThan(2)
      const bytes = await readLogBytes(market)
      const place = { schema: tenant.schema, time: service().world.now() + dayMs }
      for (const pageBlocks of [1, 2, height - 1, height, height + 1, undefined])
        expect(await sumLogBytes(database, { ...place, ...(pageBlocks && { pageBlocks }) })).toBe(
          bytes,
        )
      expect(await sumLogBytes(database, { ...place, time: 0, pageBlocks: 1 })).toBe(0n)
    })

    test('parts of a unit are carried: many days cost together what they come to, rounded down once', async () => {
      const market = await open()
      await sell(market)
      const bytes = await readLogBytes(market)
      const [price, days] = [unitParts / 7919n, 5n]
      for (let day = 0; day < days; day++) await later(33 + day, () => book(price))
      const fees = await listFees(market)
      expect(fees).toHaveLength(Number(days))
      expect(sum(fees)).toBe((days * bytes * price) / unitParts)
      await expectBalanced(service())
    })

    test('a balance is never below zero: the rest is owed, stays in place of a payout, and is paid by later earnings', async () => {
      const market = await open()
      await later(40, () => book(unitParts))
      const [first] = await listFees(market)
      const due = BigInt(first?.amount ?? 0)
      expect(first).toMatchObject({ paid: '0', owed: String(due) })
      expect(await readEarnings(service(), market)).toBe(0n)
      await sell(market)
      const info = await service().request('POST', `/api/apps/${market.appId}/payout/info`, {
        headers: market.headers,
      })
      const rest = 1_600n > due ? 1_600n - due : 0n
      expect(info.body.available_balance).toBe(String(rest))
      await later(41, () => book(unitParts, 2n ** 40n))
      const fees = await listFees(market)
      const paid = due < 1_600n ? due : 1_600n
      expect(fees[1]).toMatchObject({ amount: '0', paid: String(paid), owed: String(due - paid) })
      expect(await readEarnings(service(), market)).toBe(1_600n - paid)
      await expectBalanced(service())
    })

    test.each(['before', 'after'] as const)(
      'a death %s the entry is written charges once: what was held is booked by the next sweep',
      async (when) => {
        const market = await open()
        await sell(market)
        const parts = makeParts(unitParts, (await readLogBytes(market)) - 50n)
        const { chain } = parts.tenants.system
        const dying = {
          head: () => chain.head(),
          whenApplied: (height: number) => chain.whenApplied(height),
          append: async (...given: Parameters<typeof chain.append>) => {
            if (when === 'after') await chain.append(...given)
            throw new Error('died')
          },
        }
        const system = { ...parts.tenants.system, chain: dying }
        const tenants = { requireRecord: () => undefined, system } as never
        const days = when === 'before' ? 50 : 51
        await later(days, async () => {
          await postStorageFees({ ...parts, tenants }, () => undefined)
          // The money is promised to nobody meanwhile.
          expect(await readEarnings(service(), market)).toBeLessThanOrEqual(1_550n)
          await postStorageFees(parts, fail)
          await postStorageFees(parts, fail)
          expect(await listFees(market)).toMatchObject([{ amount: '50', paid: '50', owed: '0' }])
        })
        const left = await service().database.query(
          sql`SELECT id FROM operations.account_hold WHERE id LIKE 'storage%'`,
        )
        expect(left).toEqual([])
        expect(await readEarnings(service(), market)).toBe(1_550n)
        await expectBalanced(service())
      },
    )

    test('a clock that jumps charges no day twice, and days in between only as they come', async () => {
      const market = await open()
      await later(400, () => book(1n))
      await later(60, () => book(1n))
      await later(400, () => book(1n))
      await later(60, () => book(1n))
      expect(await listFees(market)).toHaveLength(2)
    })

    test('an archived application pays for what it keeps', async () => {
      const market = await open()
      const path = `/api/apps/${market.appId}`
      const reply = await service().request('DELETE', path, { headers: service().operator })
      expect(reply.status, reply.text).toBeLessThan(300)
      await later(70, () => book(unitParts))
      expect(await listFees(market)).toHaveLength(1)
    })

    test('tables made anew from the log are the same, the audit computes each fee anew, and names one that is wrong', async () => {
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      const market = await open()
      const fee = { kind: 'storage_fee', app: market.appId, day: '2030-01-01', bytes: '5' }
      const id = `storage_2030-01-01_1_5_${market.appId}`
      const sums = { price: '1', amount: '7', paid: '0', owed: '7', carried: '0', postings: [] }
      const body = JSON.stringify({ ...fee, payment_id: id, identity: id, ...sums })
      await service().running.service.tenants.system.chain.append([
        { header: { type: 'ledger' }, body },
      ])
      await service().whileStopped(async (config) => {
        const { difference } = await audit(config, () => undefined)
        expect(difference).toMatchObject({ what: `fee ${id}` })
      })
    })
  },
  { devnet: true },
)

withService(
  (service) => {
    test('a service whose operator charges for storage books the fees when it starts', async () => {
      const { appId, headers } = await openMarket(service())
      service().world.advance(31 * dayMs)
      await service().restart()
      await expect
        .poll(async () => {
          const { body } = await service().request('GET', `/api/billing/${appId}`, { headers })
          return BigInt(body.fees.storage_owed)
        })
        .toBeGreaterThan(0n)
    })
  },
  { config: { storageFees: { price: unitParts, freeBytes: 0n } } },
)
