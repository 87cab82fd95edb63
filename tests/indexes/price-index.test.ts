import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { computeFieldCost } from '../../packages/server/src/model/field-price.ts'
import { makeSaleEntry } from '../../packages/server/src/services/payments/make-sale.ts'
import { connectTo, silenceConsole } from '../clients/sdk.ts'
import { type Asked, ask, createFundedBuyer, quote } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readEarnings,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const owner = `0x${'Ab'.repeat(20)}`

async function priced(service: TestService, config: object = {}): Promise<Market> {
  const market = await openMarket(service, { records: [] })
  const made = await service.request('POST', `/api/apps/${market.appId}/indexes`, {
    headers: market.headers,
    body: {
      name: 'cities_total_price_index',
      collection: market.collection,
      field_name: 'order.total',
      index_type: 'price',
      price_config: {
        app_owner_percentage: 0.7,
        platform_percentage: 0.3,
        app_owner_address: '',
        ...config,
      },
    },
  })
  expect(made.status, made.text).toBe(200)
  expect(made.body).toMatchObject({ index_type: 'price', status: 'active' })
  return market
}

const order = (id: string, total: number) => ({ id, order: { total } })

/** Makes a store as its bytes, from records in JSON. */
function storing(market: Market, records: string): Asked {
  return {
    method: 'POST',
    path: '/store?wait=true',
    raw: `{"root":"${market.root}","data":${records}}`,
    headers: market.headers,
  }
}

describe('price indexes', () =>
  withService(
    (service) => {
      test('a write costs the sum of its records` fields, the application`s own key included, and is shared as the index says', async () => {
        const market = await priced(service())
        const buyer = await createFundedBuyer(service())
        const asked = storing(market, JSON.stringify([order('a', 19.99), order('b', 0.000001)]))
        const required = await quote(service(), asked)
        expect(required.body.accepts[0]).toMatchObject({
          maxAmountRequired: '19990001',
          extra: { costBreakdown: { by_field: 19_990_001 } },
        })
        const stored = await buyer.buy(service(), asked)
        expect(stored.status, stored.text).toBe(200)
        expect(await readEarnings(service(), market)).toBe(19_990_001n - 5_997_000n)
        await expectBalanced(service())
        // Free things are stored without a payment: a record with a price of zero, and a deletion.
        for (const free of ['[{"id":"c","order":{"total":0}}]', '[{"id":"a","deleted":true}]'])
          expect((await ask(service(), storing(market, free))).status).toBe(200)
      })

      test('the application`s part goes to the address that the index names', async () => {
        const market = await priced(service(), {
          app_owner_percentage: 80,
          platform_percentage: 20,
          app_owner_address: owner,
        })
        const before = (await readAccounts(service())).get('platform') ?? 0n
        const buyer = await createFundedBuyer(service())
        const asked = storing(market, JSON.stringify([order('a', 10)]))
        expect((await buyer.buy(service(), asked)).status).toBe(200)
        const after = await readAccounts(service())
        expect(after.get(`wallet:${owner.toLowerCase()}`)).toBe(8_000_000n)
        expect((after.get('platform') ?? 0n) - before).toBe(2_000_000n)
        expect(await readEarnings(service(), market)).toBe(0n)
      })

      test('the platform keeps its own share at least', async () => {
        const market = await priced(service(), { app_owner_percentage: 1, platform_percentage: 0 })
        const shown = await service().request(
          'GET',
          `/api/apps/${market.appId}/collections/${market.collection}/indexes/cities_total_price_index`,
          { headers: market.headers },
        )
        expect(shown.body.price_config).toEqual({
          app_owner_percentage: 0.8,
          platform_percentage: 0.2,
          app_owner_address: '',
        })
      })

      test.each([
        ['is missing', '{"id":"b"}'],
        ['is null', '{"id":"b","order":{"total":null}}'],
        ['is text', '{"id":"b","order":{"total":"5"}}'],
        ['is negative', '{"id":"b","order":{"total":-1}}'],
        ['has too many decimals', '{"id":"b","order":{"total":0.1000000000000000055}}'],
        ['is beyond all reason', '{"id":"b","order":{"total":1e12}}'],
        ['is inside something else', '{"id":"b","order":[{"total":1}]}'],
      ])(
        'a record whose field %s is refused by record and field, and nobody pays',
        async (_what, record) => {
          const market = await priced(service())
          const reply = await ask(
            service(),
            storing(market, `[{"id":"a","order":{"total":1}},${record}]`),
          )
          expect(reply).toMatchObject({
            status: 400,
            body: { code: 'VALIDATION_FAILED', details: { field: '/data/1/order/total' } },
          })
        },
      )

      test('a batch costs the price of its stores, and an update gives its price', async () => {
        const market = await priced(service())
        const batch = (operations: object[]): Asked => ({
          method: 'POST',
          path: `/api/apps/${market.appId}/batch`,
          raw: JSON.stringify({ operations }),
          headers: market.headers,
        })
        const { collection } = market
        const create = { operation: 'create', collection, data: order('a', 2) }
        const update = { operation: 'update', collection, data: order('a', 3) }
        const required = await quote(service(), batch([create, update]))
        expect(required.body.accepts[0].maxAmountRequired).toBe('5000000')
        const blind = { operation: 'update', collection, data: { id: 'a' } }
        expect(await ask(service(), batch([blind]))).toMatchObject({
          status: 400,
          body: { details: { field: '/operations/0/data/order/total' } },
        })
      })

      test('an index of every field, as clients make it, takes no price away, and its deletion does', async () => {
        const market = await priced(service())
        const at = `/api/apps/${market.appId}/indexes`
        const body = {
          collection: market.collection,
          field_name: 'order.total',
          index_type: 'number',
        }
        const again = await service().request('POST', at, { headers: market.headers, body })
        expect(again.body).toMatchObject({ updated: true, index_type: 'price' })
        expect(again.body._warning).toContain('price')
        const asked = storing(market, JSON.stringify([order('a', 1)]))
        await quote(service(), asked)
        await service().request('DELETE', `${at}/${again.body.id}`, { headers: market.headers })
        expect((await ask(service(), asked)).status).toBe(200)
      })

      test('a quote for a write says what its records would cost, and needs the records for that', async () => {
        const market = await priced(service())
        const body = {
          app_id: market.appId,
          collection: market.collection,
          operation_type: 'write',
          size_kb: 1,
        }
        const data = [order('a', 1.5), order('b', 2)]
        const told = await service().request('POST', '/api/pricing/quote', {
          headers: market.headers,
          body: { ...body, data },
        })
        expect(told.body).toMatchObject({
          total_cost: 3.5,
          total_cost_atomic: '3500000',
          base_total_cost: 0,
          price: { fields: { 'order.total': '3500000' } },
        })
        const one = { ...body, data: data[0] }
        expect(
          (await service().request('POST', '/api/pricing/quote', { body: one })).body,
        ).toMatchObject({ total_cost: 1.5 })
        const blind = await service().request('POST', '/api/pricing/quote', { body })
        expect(blind).toMatchObject({ status: 400, body: { details: { field: '/data' } } })
      })

      test('a rule of the model field_value prices a field as an index does, and both together once', async () => {
        const market = await openMarket(service(), { records: [] })
        const put = (rule: object) =>
          service().request('PUT', `/api/apps/${market.appId}/pricing`, {
            headers: market.headers,
            body: { rules: [{ target: { collection: 'cities' }, operation: 'write', ...rule }] },
          })
        const rule = { model: 'field_value', field: 'order.total' }
        expect((await put(rule)).body.rules).toMatchObject([rule])
        const asked = storing(market, JSON.stringify([order('a', 1)]))
        expect((await quote(service(), asked)).body.accepts[0].maxAmountRequired).toBe('1000000')
        await service().request('POST', `/api/apps/${market.appId}/indexes`, {
          headers: market.headers,
          body: { collection: 'cities', field_name: 'order.total', index_type: 'price' },
        })
        expect((await quote(service(), asked)).body.accepts[0].maxAmountRequired).toBe('1000000')
        expect((await put({ model: 'field_value' })).status).toBe(400)
        expect((await put({ ...rule, amount: '5' })).status).toBe(400)
        expect((await put({ ...rule, operation: 'read' })).status).toBe(400)
      })

      test('a price per record that comes with an index is a rule of the application', async () => {
        const market = await openMarket(service(), { records: [] })
        const at = `/api/apps/${market.appId}`
        for (const amount of [500_000, '700000'])
          await service().request('POST', `${at}/indexes`, {
            headers: market.headers,
            body: {
              collection: 'cities',
              field_name: 'n',
              price_config: { pricing_model: 'per_record', price_per_record: amount },
            },
          })
        const { body } = await service().request('GET', `${at}/pricing`)
        expect(body.rules).toMatchObject([{ model: 'per_record', amount: '700000' }])
      })

      test.each([
        ['shares that make up more', { app_owner_percentage: 0.9, platform_percentage: 0.2 }],
        ['a share below nothing', { platform_percentage: -1 }],
        ['a share that is no number', { platform_percentage: '20' }],
        [
          'thousandths of a percent',
          { app_owner_percentage: 0.79999, platform_percentage: 0.20001 },
        ],
        ['an address that is none', { app_owner_address: 'alice' }],
      ])('a price index with %s is refused', async (_what, price_config) => {
        const app = await service().createApp()
        const body = { collection: 'c', field_name: 'f', index_type: 'price', price_config }
        const at = `/api/apps/${app.appId}/indexes`
        const reply = await service().request('POST', at, { headers: app.headers, body })
        expect(reply.status, reply.text).toBe(400)
        for (const more of [
          { fields: ['a', 'b'] },
          { where: { a: 1 } },
          { index_type: 'number' },
        ]) {
          const mixed = { ...body, price_config: {}, ...more }
          const other = await service().request('POST', at, { headers: app.headers, body: mixed })
          expect(other.status, other.text).toBe(400)
        }
      })

      test('the public SDK makes a price index by createPriceIndex', async () => {
        silenceConsole()
        const app = await service().createApp()
        const { client } = connectTo(service(), { appId: app.appId, appKey: app.key })
        const index = await client.database(app.appId).createPriceIndex('orders', 'total')
        expect(index).toMatchObject({
          name: 'orders_total_price_index',
          index_type: 'price',
          price_config: { app_owner_percentage: 0.8, platform_percentage: 0.2 },
        })
      })
    },
    { devnet: true },
  ))

const facts = {
  payment_id: 'p',
  request_hash: 'h',
  quote_hash: null,
  payer: '0xpayer',
  payee: 'app:shop',
  deposited: '0',
  change: '0',
  asset: '0xa',
  network: 'eip155:1',
  transaction: '0x1',
  app: 'shop',
  operation: 'store',
  as_of: null,
  row_count: 1,
  result_hash: 'h',
  delivered_at: '2026-01-01T00:00:00.000Z',
}

describe('costs of fields and their shares', () => {
  test('the cost of records is the exact sum of their fields, in any order', () => {
    const cents = fc.bigInt(0n, 10n ** 12n)
    fc.assert(
      fc.property(fc.array(cents, { maxLength: 20 }), (amounts) => {
        const records = amounts.map((atomic, at) => {
          const digits = atomic.toString().padStart(7, '0')
          const text = `{"n":{"v":${digits.slice(0, -6)}.${digits.slice(-6)}},"v":1}`
          return { text, deleted: false, pointer: `/data/${at}` }
        })
        const sum = amounts.reduce((a, b) => a + b, 0n)
        expect(computeFieldCost(records, 'n.v')).toBe(sum)
        expect(computeFieldCost(records.toReversed(), 'n.v')).toBe(sum)
      }),
    )
  })

  test('however a charge is shared out, nothing is lost, nobody owes, and the platform gets its share', () => {
    const amount = fc.bigInt(0n, 10n ** 12n)
    const points = fc.bigInt(0n, 10_000n)
    const share = fc.record({
      amount,
      platformBasisPoints: points,
      account: fc.constantFrom('app:shop', 'wallet:0xowner', 'wallet:0xpayer'),
    })
    fc.assert(
      fc.property(amount, points, fc.array(share, { maxLength: 4 }), (charge, least, shares) => {
        const entry = makeSaleEntry({
          identity: 'i',
          facts: { ...facts, amount: String(charge) },
          split: { platformBasisPoints: least },
          parts: shares.map((one) => ({ ...one, item: undefined })),
        })
        const { postings, sold } = JSON.parse(entry.body) as {
          postings: { account: string; amount: string }[]
          sold: { account: string; gross: string; fee: string }[]
        }
        expect(sold.reduce((sum, { gross }) => sum + BigInt(gross), 0n)).toBe(charge)
        for (const account of new Set(sold.map((part) => part.account))) {
          if (account === `wallet:${facts.payer}`) continue
          const parts = sold.filter((part) => part.account === account)
          const net = parts.reduce((sum, { gross, fee }) => sum + BigInt(gross) - BigInt(fee), 0n)
          const credited = postings.find((posting) => posting.account === account)?.amount ?? '0'
          expect(net).toBe(BigInt(credited))
        }
        const sums = postings.map((one) => BigInt(one.amount))
        expect(sums.reduce((a, b) => a + b, 0n)).toBe(0n)
        expect(sums.filter((one) => one < 0n).length).toBe(charge === 0n ? 0 : 1)
        const platform = postings.find(({ account }) => account === 'platform')?.amount ?? '0'
        const parts = BigInt(shares.length + 1)
        expect(BigInt(platform)).toBeGreaterThan((charge * least) / 10_000n - parts)
      }),
    )
  })
})
