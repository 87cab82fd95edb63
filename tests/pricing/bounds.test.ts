import { expect, test } from 'vitest'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import type { Data } from '../support/data.ts'
import { expectBalanced, readEarnings, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { perRow } from '../support/price-rules.ts'
import { createFromSql } from '../support/views.ts'
import { computePlatformShare, createSeller, readAmount } from './support.ts'

withService(
  (service) => {
    const target = { collection: 'sales' }
    const bound = (model: string, amount: string, more: object = {}) => ({
      ...{ target, operation: 'read', model, amount },
      ...more,
    })
    const seller = async (...rules: object[]) => {
      const app = await createSeller(service(), {})
      const { status, text } = await app.call('PUT', '/pricing', { rules })
      expect(status, text).toBe(200)
      return app
    }
    const reading = ({ appId }: Data, limit: number) => list({ root: `${appId}::sales`, limit })

    test('a request costs at least the minimum and at most the maximum, in quote and charge, and the breakdown says why', async () => {
      const app = await seller(perRow('100'), bound('minimum', '250'), bound('maximum', '420'))
      const buyer = await createFundedBuyer(service())
      for (const [limit, cap, charge, parts] of [
        [1, 250n, 250n, { per_row: 100, minimum: 150 }],
        [3, 300n, 300n, { per_row: 300 }],
        // Three rows come, and only those are charged.
        [9, 420n, 300n, { per_row: 900, maximum: -480 }],
      ] as const) {
        const required = await quote(service(), reading(app, limit))
        expect(readAmount(required)).toBe(cap)
        expect(required.body.accepts[0].extra.costBreakdown).toMatchObject(parts)
        const bought = await ask(service(), reading(app, limit), await buyer.payV2(required))
        expect(bought.status, bought.text).toBe(200)
        expect((await readReceipt(service(), bought)).amount).toBe(String(charge))
      }
      const total = 250n + 300n + 300n
      expect(await readEarnings(service(), app)).toBe(
        [250n, 300n, 300n].reduce((sum, one) => sum + one - computePlatformShare(one), 0n),
      )
      expect(await readBalance(service(), buyer.address)).toBeLessThanOrEqual(970n - total)
      await expectBalanced(service())
    })

    test('a quote holds its bounds while the seller changes them', async () => {
      const app = await seller(perRow('100'), bound('maximum', '150'))
      const buyer = await createFundedBuyer(service())
      const payment = await buyer.payV2(await quote(service(), reading(app, 3)))
      await app.call('PUT', '/pricing', { rules: [perRow('100'), bound('minimum', '9000')] })
      const bought = await ask(service(), reading(app, 3), payment)
      expect((await readReceipt(service(), bought)).amount).toBe('150')
      expect(readAmount(await quote(service(), reading(app, 3)))).toBe(9_000n)
    })

    test('a view without a price of its own is never cheaper than the minimum of its source, and has no maximum', async () => {
      const app = await seller(perRow('100'), bound('minimum', '250'), bound('maximum', '300'))
      await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW "${app.appId}"::copy AS SELECT * FROM "${app.appId}"::sales`,
      )
      const viewed = list({ root: `${app.appId}::copy`, limit: 2 })
      expect(readAmount(await quote(service(), viewed))).toBe(450n)
    })

    test('a price of a minimum alone is a price, and a request with an empty answer costs it unless that is free', async () => {
      const app = await seller(bound('minimum', '40'))
      const none = list({ root: `${app.appId}::sales`, find: { id: 'none' }, limit: 1 })
      expect(readAmount(await quote(service(), none))).toBe(40n)
      const buyer = await createFundedBuyer(service())
      const bought = await buyer.buy(service(), none)
      expect((await readReceipt(service(), bought)).amount).toBe('40')
      const removed = await app.call('PUT', '/pricing', { rules: [] })
      expect([removed.status, removed.body.code]).toEqual([200, undefined])
    })

    test('a write costs what its bounds allow', async () => {
      const app = await seller(
        { ...perRow('100'), operation: 'write' },
        bound('minimum', '150', { operation: 'write' }),
        bound('maximum', '250', { operation: 'write' }),
      )
      const writing = (count: number) => ({
        ...{ method: 'POST', path: '/store?wait=true', headers: app.headers },
        raw: JSON.stringify({
          root: `${app.appId}::sales`,
          data: Array.from({ length: count }, (_, at) => ({ id: `w${count}.${at}` })),
        }),
      })
      const writer = await createFundedBuyer(service())
      for (const [count, cost] of [
        [1, '150'],
        [2, '200'],
        [5, '250'],
      ] as const) {
        const asked = await service().request('POST', '/api/pricing/quote', {
          headers: app.headers,
          body: {
            ...{ app: app.appId, operation_type: 'write', collection: 'sales' },
            ...{ size_kb: 1, rows: count },
          },
        })
        expect(asked.body.total_cost_atomic).toBe(cost)
        const bought = await writer.buy(service(), writing(count))
        expect(bought.status, bought.text).toBe(200)
        expect((await readReceipt(service(), bought)).amount).toBe(cost)
      }
    })

    test.each([
      [[perRow('1'), bound('maximum', '0')], '/rules/1/amount'],
      [[perRow('1'), bound('minimum', '5'), bound('maximum', '4')], ''],
      [[bound('minimum', '5', { field: 'id' })], '/rules/0/field'],
      [[bound('maximum', '5', { amount: undefined })], '/rules/0/amount'],
    ])('bounds that contradict each other or say nothing are refused: %j', async (rules, field) => {
      const app = await createSeller(service(), {})
      const { status, body } = await app.call('PUT', '/pricing', { rules })
      expect([status, body.details?.field]).toEqual([400, field])
    })
  },
  { devnet: true },
)
