import { describe, expect, test } from 'vitest'
import { computePlatformShare } from '../pricing/support.ts'
import { type Asked, ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { createData, type Data, makeData } from '../support/data.ts'
import {
  cities,
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  readEarnings,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

const funds = 100_000_000n
const costly = '2000000'

/** A quote is for what its request named when it was made, at the prices of that time, whoever owns them now. */
withService(
  (service) => {
    const readAmount = (required: TestReply) => BigInt(required.body.accepts[0].maxAmountRequired)
    const inSql = (sql: string): Asked => ({
      method: 'POST',
      path: '/query/sql',
      raw: JSON.stringify({ sql }),
    })
    const run = ({ appId }: Market, query = ''): Asked => ({
      method: 'GET',
      path: `/api/queries/${appId}/q/data${query}`,
    })
    const good = async (reply: Promise<TestReply>, status = 200) => {
      const { status: found, text, body } = await reply
      expect(found, text).toBe(status)
      return body
    }
    const define = (app: Data, body: object) =>
      good(app.call('POST', '/queries', { name: 'q', ...body }), 201)
    const open = async (options: Parameters<typeof openMarket>[1] = {}) => {
      const market = await openMarket(service(), options)
      return { market, app: makeData(service(), market) }
    }
    const remade = async (app: Data, access_policy: object) => {
      await good(app.call('DELETE', '/collections/cities', { cascade: true }))
      await good(app.create({ name: 'cities', access_policy }), 201)
      await good(app.store('cities', [{ id: 'c0', name: 'Other', population: 7 }]))
    }
    /** Creates unrelated definitions, more than the number of catalogs that are remembered. */
    const flood = async (app: Data) => {
      for (let n = 0; n < 105; n++)
        await good(app.call('PUT', '/pricing', { rules: [rule(String(1000 + n))] }))
    }
    const rule = (amount: string) => ({
      target: { collection: 'cities' },
      operation: 'read',
      model: 'per_row',
      amount,
    })

    type Payer = 'payV2' | 'payV1'
    /**
     * The paid thing is something else by now: the buyer gets a new quote and no answer, and the payment is still
     * unused.
     */
    async function expectRefused(
      asked: Asked,
      change: () => Promise<unknown>,
      { by = 'payV2' as Payer, now }: { by?: Payer; now: bigint },
    ) {
      const buyer = await createFundedBuyer(service())
      const payment = await buyer[by](await quote(service(), asked))
      await change()
      const reply = await ask(service(), asked, payment)
      expect(reply.status, reply.text).toBe(402)
      if (by === 'payV2') expect(reply.body.error).toMatch(/changed since/)
      expect(reply.body.data ?? reply.body.records).toBeUndefined()
      expect(readAmount(reply)).toBe(now)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      // The new quote is good.
      const bought = await ask(service(), asked, await buyer.payV2(reply))
      expect(bought.status, bought.text).toBe(200)
      await expectBalanced(service())
    }

    test.each(['payV2', 'payV1'] as const)(
      'A1: a quote for one version of a query buys no later version, though it names none (%s)',
      async (by) => {
        const { market, app } = await open()
        const other = await open({
          price: { per_row: '9' },
          policy: { derive: { per_access: costly } },
        })
        await define(app, { source_collection: 'cities', price: { per_access: '1' } })
        const sql = `SELECT b.name FROM "${market.appId}"::cities a JOIN "${other.market.appId}"::cities b ON a.id = b.id`
        await expectRefused(run(market), () => define(app, { sql, price: { per_access: '1' } }), {
          by,
          now: 1n + BigInt(costly),
        })
        expect(await readEarnings(service(), other.market)).toBe(
          BigInt(costly) - computePlatformShare(BigInt(costly)),
        )
      },
    )

    test('A1: a quote for one version of a query does not buy the version of the same number that was stored after all were deleted', async () => {
      const { market, app } = await open()
      await define(app, { source_collection: 'cities', price: { per_access: '5' } })
      await expectRefused(
        run(market, '?version=1'),
        async () => {
          await good(app.call('DELETE', '/queries/q', {}))
          await define(app, {
            sql: `SELECT name FROM "${market.appId}"::cities`,
            price: { per_access: '5' },
          })
        },
        { now: 5n },
      )
    })

    test('A1: a version that was named is sold as it was quoted, whatever version is newest', async () => {
      const { market, app } = await open()
      await define(app, { source_collection: 'cities', price: { per_access: '5' } })
      const buyer = await createFundedBuyer(service())
      const asked = run(market, '?version=1')
      const payment = await buyer.payV2(await quote(service(), asked))
      await define(app, { source_collection: 'cities', price: { per_access: '500' } })
      const reply = await ask(service(), asked, payment)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.version).toBe(1)
      expect(await readEarnings(service(), market)).toBe(5n - computePlatformShare(5n))
    })

    test('A1: a quote for a view buys no view that took its name', async () => {
      const { market, app } = await open()
      const view = (columns: string, verb = 'CREATE OR REPLACE') =>
        good(
          app.call('POST', '/views/sql', {
            sql: `${verb} MATERIALIZED VIEW "${market.appId}"::seen AS SELECT ${columns} FROM "${market.appId}"::cities`,
            price: { per_access: '5' },
          }),
          201,
        )
      await view('id', 'CREATE')
      const asked = { method: 'GET', path: `/api/apps/${market.appId}/views/seen/data` }
      const through = inSql(`SELECT count(*) AS n FROM "${market.appId}"::seen`)
      await expectRefused(asked, () => view('id, name'), { now: 5n })
      await expectRefused(list({ root: `${market.appId}::seen` }), () => view('name'), { now: 5n })
      await define(app, { source_collection: 'seen', price: { per_access: '7' } })
      await expectRefused(run(market), () => view('id'), { now: 7n })
      expect((await ask(service(), through)).status).toBe(403)
    })

    test.each(['payV2', 'payV1'] as const)(
      'A1: a collection that was deleted and made anew is another one to a list, SQL, a record and a query (%s)',
      async (by) => {
        const policy = { read: 'public', price: { per_access: '10' }, derive: { per_access: '30' } }
        const { market, app } = await open({ price: policy.price, policy })
        const { appId } = market
        const record = { method: 'GET', path: `/api/apps/${appId}/collections/cities/records/c0` }
        const dearer = { ...policy, price: { per_access: '11' }, derive: { per_access: '31' } }
        const forms: readonly (readonly [Asked, bigint, bigint])[] = [
          [list({ root: market.root }), 10n, 11n],
          [inSql(`SELECT max(population) AS m FROM "${appId}"::cities`), 30n, 31n],
          [record, 10n, 11n],
        ]
        for (const [asked, then, now] of forms) {
          expect(readAmount(await quote(service(), asked))).toBe(then)
          await expectRefused(asked, () => remade(app, dearer), { by, now })
          await remade(app, policy)
        }
      },
    )

    test('A1: a data set that a condition looks into is a part of what is quoted', async () => {
      const { market, app } = await open({ price: { per_access: '10' } })
      const set = (values: readonly string[]) =>
        app.call('POST', '/datasets', {
          name: 'some',
          kind: 'values',
          entries: values,
          public: true,
        })
      await good(set(['Wien']), 201)
      const asked = list({ root: market.root, find: { name: { inDataset: 'some' } } })
      await expectRefused(
        asked,
        async () => {
          await good(app.call('DELETE', '/datasets/some'))
          await good(set(['Wien', 'Graz']), 201)
        },
        { now: 10n },
      )
    })

    test('A1: a quote for a caller who reads a source for nothing is refused to a caller who does not', async () => {
      const own = await open({
        price: { per_access: '100' },
        policy: { derive: { per_access: '100' } },
      })
      const other = await open({
        price: { per_row: '9' },
        policy: { derive: { per_access: costly } },
      })
      const asked = inSql(
        `SELECT a.name FROM "${own.market.appId}"::cities a JOIN "${other.market.appId}"::cities b ON a.id = b.id`,
      )
      const buyer = await createFundedBuyer(service())
      const required = await quote(service(), { ...asked, headers: other.market.headers })
      expect(readAmount(required)).toBe(100n)
      const reply = await ask(service(), asked, await buyer.payV2(required))
      expect(reply.status, reply.text).toBe(402)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
    })

    test('A1: a grant that was taken back and given anew is another one; a grant whose price changed sells as quoted', async () => {
      const owner = await open({ price: { per_row: '9' } })
      const { market, app } = await open()
      const grant = (per_access: string) =>
        good(
          owner.app.call('POST', '/grants', {
            grantee: market.appId,
            collection: 'cities',
            per_access,
          }),
          201,
        )
      const { id } = await grant('40')
      await good(
        app.call('POST', '/views', {
          name: 'seen',
          source_collections: [owner.market.root],
          query: { select: ['name'] },
          price: { per_access: '5' },
        }),
        201,
      )
      const asked = { method: 'GET', path: `/api/apps/${market.appId}/views/seen/data` }
      const buyer = await createFundedBuyer(service())
      const payment = await buyer.payV2(await quote(service(), asked))
      await grant('50')
      const reply = await ask(service(), asked, payment)
      expect(reply.status, reply.text).toBe(200)
      expect(await readEarnings(service(), owner.market)).toBe(40n - computePlatformShare(40n))
      await expectRefused(
        asked,
        async () => {
          await good(owner.app.call('DELETE', `/grants/${id}`))
          await grant('60')
        },
        { now: 65n },
      )
    })

    test('A1: a write is quoted for the collection that existed when the quote was made', async () => {
      const { market, app } = await open({ records: [] })
      const write = { ...rule('1000'), operation: 'write', model: 'per_record' }
      await good(app.call('PUT', '/pricing', { rules: [write] }))
      const asked = {
        method: 'POST',
        path: '/store?wait=true',
        raw: JSON.stringify({ root: market.root, data: [{ n: 1 }] }),
        headers: market.headers,
      }
      const batch = {
        method: 'POST',
        path: `/api/apps/${market.appId}/batch`,
        raw: JSON.stringify({
          operations: [{ operation: 'create', collection: 'cities', data: { n: 2 } }],
        }),
        headers: market.headers,
      }
      for (const one of [asked, batch])
        await expectRefused(
          one,
          async () => {
            await good(app.call('DELETE', '/collections/cities', { cascade: true }))
            await good(app.create({ name: 'cities' }), 201)
            // The rule of the deleted one has ended with it.
            await good(app.call('PUT', '/pricing', { rules: [write] }))
          },
          { now: 1000n },
        )
    })

    test.each([
      ['the seller’s price rises and he floods the definitions', flood],
      [
        'he prices by access in place of rows',
        (app: Data) =>
          good(app.call('PUT', '/pricing', { rules: [{ ...rule('7'), model: 'per_access' }] })),
      ],
      [
        'the service starts again after that',
        async (app: Data) => {
          await good(app.call('PUT', '/pricing', { rules: [rule('5000')] }))
          await service().restart()
        },
      ],
    ])(
      'A2: each owner gets what was quoted for him, to the atomic unit, though %s',
      async (_, change) => {
        const own = await open({ price: { per_row: '20' } })
        const other = await open({
          price: { per_row: '9' },
          policy: { derive: { per_access: '1000000' } },
        })
        const asked = list({
          root: own.market.root,
          limit: 5,
          find: {
            same: { model: other.market.root, many: false, resolve: { find: { id: '$data.id' } } },
          },
        })
        const buyer = await createFundedBuyer(service())
        const required = await quote(service(), asked)
        expect(readAmount(required)).toBe(1_000_100n)
        const payment = await buyer.payV2(required)
        await change(own.app)
        const dearer = {
          read: 'public',
          price: { per_row: '9' },
          derive: { per_access: '3000000' },
        }
        await good(other.app.call('PUT', '/collections/cities', { access_policy: dearer }))
        const reply = await ask(service(), asked, payment)
        expect(reply.status, reply.text).toBe(200)
        expect(reply.body.records).toHaveLength(cities.length)
        expect(await readEarnings(service(), own.market)).toBe(100n - computePlatformShare(100n))
        expect(await readEarnings(service(), other.market)).toBe(
          1_000_000n - computePlatformShare(1_000_000n),
        )
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        await expectBalanced(service())
      },
    )

    test('A2: a buyer who deletes and makes his own collection anew does not get the other application’s part for nothing', async () => {
      const own = await open({ price: { per_row: '20' } })
      const other = await open({
        price: { per_row: '9' },
        policy: { derive: { per_access: '1000000' } },
      })
      const asked = list({
        root: own.market.root,
        limit: 5,
        find: {
          same: { model: other.market.root, many: false, resolve: { find: { id: '$data.id' } } },
        },
      })
      await expectRefused(
        asked,
        () => remade(own.app, { read: 'public', price: { per_row: '220000' } }),
        { now: 2_100_000n },
      )
      expect(await readEarnings(service(), other.market)).toBe(
        1_000_000n - computePlatformShare(1_000_000n),
      )
    })

    test('A1: a payment that was taken for one thing stays the payer’s balance, and buys nothing else later, when that thing has become another one', async () => {
      const market = await openMarket(service(), {
        price: { per_access: '5', per_kb: '10' },
        records: [{ id: 'x', text: 'y'.repeat(3000) }],
      })
      const app = makeData(service(), market)
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, max_kb: 1 })
      const payment = await buyer.payV2(await quote(service(), asked))
      expect((await ask(service(), asked, payment)).status).toBe(413)
      await good(app.call('DELETE', '/collections/cities', { cascade: true }))
      await good(
        app.create({ name: 'cities', access_policy: { price: { per_access: '900' } } }),
        201,
      )
      await good(app.store('cities', [{ id: 'x', text: 'short' }]))
      const later = await ask(service(), asked, payment)
      expect(later.status, later.text).toBe(409)
      expect(later.body).toMatchObject({ code: 'OFFER_CHANGED', details: { charged: '0' } })
      expect(await readBalance(service(), buyer.address)).toBe(15n)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    test('a batch with conditions that costs nothing is done, whatever payment comes with it, and uses none', async () => {
      const { market, app } = await open()
      const asked = {
        method: 'POST',
        path: `/api/apps/${market.appId}/batch`,
        raw: JSON.stringify({
          operations: [
            {
              operation: 'update',
              collection: 'cities',
              data: { seen: true },
              conditions: { id: 'c0' },
            },
          ],
        }),
        headers: market.headers,
      }
      const sold = await open({ price: { per_access: '10' } })
      const buyer = await createFundedBuyer(service())
      const payment = await buyer.payV2(await quote(service(), list({ root: sold.market.root })))
      for (const header of [payment, { 'x-payment': 'nonsense' }])
        await good(ask(service(), asked, header))
      expect((await app.record('cities', 'c0')).body.record).toMatchObject({ seen: true })
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
    })

    describe('a paid batch that makes a collection and then fails', () => {
      const scene = async () => {
        const { market, app } = await open({ records: [] })
        const write = (amount: string) =>
          setPrices(service(), market, [{ operation: 'write', model: 'per_record', amount }])
        await write('1000')
        const create = (collection: string) => ({ operation: 'create', collection, data: { n: 1 } })
        const missing = { operation: 'update', collection: 'cities', data: { id: 'late', n: 2 } }
        const operations = [create('cities'), create('fresh'), missing]
        const asked = {
          method: 'POST',
          path: `/api/apps/${market.appId}/batch`,
          raw: JSON.stringify({ operations }),
          headers: market.headers,
        }
        const buyer = await createFundedBuyer(service())
        const payment = await buyer.payV2(await quote(service(), asked))
        const failed = await ask(service(), asked, payment)
        expect(failed.status, failed.text).toBe(404)
        expect(await readBalance(service(), buyer.address)).toBe(2000n)
        const mend = async () => {
          await write('0')
          await good(app.store('cities', [{ id: 'late', n: 0 }]))
          await write('1000')
        }
        return { market, app, asked, buyer, payment, mend }
      }

      test('a paid batch is still bought by its payment once its obstacle is gone', async () => {
        const { market, app, asked, buyer, payment, mend } = await scene()
        await mend()
        const done = await good(ask(service(), asked, payment))
        expect(done).toHaveLength(3)
        expect(await good(ask(service(), asked, payment))).toEqual(done)
        expect((await app.list('fresh')).body.records).toHaveLength(1)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), market)).toBe(2000n - computePlatformShare(2000n))
        await expectBalanced(service())
      })

      test('a paid batch buys nothing in a collection of the same name that somebody else has made since', async () => {
        const { app, asked, buyer, payment, mend } = await scene()
        await mend()
        await good(app.call('DELETE', '/collections/fresh', { cascade: true }))
        await good(app.create({ name: 'fresh' }), 201)
        const later = await good(ask(service(), asked, payment), 409)
        expect(later).toMatchObject({ code: 'OFFER_CHANGED', details: { charged: '0' } })
        expect(await readBalance(service(), buyer.address)).toBe(2000n)
      })
    })

    test('A1: a quote stays good however many definitions others make meanwhile', async () => {
      const { market } = await open({ price: { per_access: '10' } })
      const stranger = await createData(service())
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root })
      const payment = await buyer.payV2(await quote(service(), asked))
      await good(stranger.create({ name: 'cities' }), 201)
      await good(stranger.store('cities', cities))
      expect((await ask(service(), asked, payment)).status).toBe(200)
    })
  },
  { devnet: true },
)
