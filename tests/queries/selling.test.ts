import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'
import { type Asked, ask, createFundedBuyer, quote, readBalance } from '../support/buyer.ts'
import {
  cities,
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readEarnings,
  readReceipt,
  store,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

const readAmount = (required: TestReply) => BigInt(required.body.accepts[0].maxAmountRequired)
const computePlatformShare = (amount: bigint) => (amount * 2000n) / 10_000n

describe('sales of predefined queries', () =>
  withService(
    (service) => {
      const send = (method: string) => (market: Market, path: string, body: object) =>
        service().request(method, `/api/apps/${market.appId}${path}`, {
          body,
          headers: market.headers,
        })
      const post = send('POST')
      const put = send('PUT')
      const define = async (market: Market, body: object) => {
        const reply = await post(market, '/queries', { name: 'q', ...body })
        expect(reply.status, reply.text).toBe(201)
        return reply
      }
      const data = ({ appId }: Market, query = '', name = 'q'): Asked => ({
        method: 'GET',
        path: `/api/queries/${appId}/${name}/data${query}`,
      })
      const named = ({ appId }: Market) => `"${appId}"::cities`

      test("a query is sold at its owner's price: quoted for the limit, charged for the rows, kept for a retry, with a receipt that verifies", async () => {
        const market = await openMarket(service(), { policy: { read: 'key' } })
        await define(market, {
          source_collection: 'cities',
          base_query: { select: ['name'] },
          parameters: [{ name: 'least', field_path: 'population.$gte', type: 'integer' }],
          price: { per_access: '10', per_row: '100' },
          public: true,
        })
        const buyer = await createFundedBuyer(service())
        const asked = data(market, '?least=100003&limit=4')
        const required = await quote(service(), asked)
        expect(readAmount(required)).toBe(410n)
        expect(required.body.accepts[0].extra.costBreakdown).toMatchObject({
          per_access: 10,
          per_row: 400,
        })
        const payment = await buyer.payV2(required)
        const reply = await ask(service(), asked, payment)
        expect(reply.status, reply.text).toBe(200)
        expect(reply.body).toMatchObject({
          data: [{ name: 'Salzburg' }, { name: 'Innsbruck' }],
          count: 2,
          query: 'q',
          version: 1,
        })
        const due = 210n
        expect(await readBalance(service(), buyer.address)).toBe(200n)
        expect(await readEarnings(service(), market)).toBe(due - computePlatformShare(due))
        const again = await ask(service(), asked, payment)
        expect(again.text).toBe(reply.text)
        expect(again.headers.get('idempotent-replayed')).toBe('true')
        const receipt = await readReceipt(service(), reply)
        const { body: known } = await service().request('GET', '/.well-known/tollbase')
        const { checks } = verifyDocument(JSON.stringify(receipt), {
          trustedKey: known.receipt_public_key,
          request: {
            method: 'GET',
            path: `/api/queries/${market.appId}/q/data`,
            query: 'least=100003&limit=4',
            body: Buffer.alloc(0),
          },
          reply: Buffer.from(reply.text),
        })
        expect(checks.filter(({ ok }) => !ok)).toEqual([])
        // Another value of a parameter is another request.
        const other = await ask(service(), data(market, '?least=1&limit=4'), payment)
        expect(other.status).toBe(409)
        await expectBalanced(service())
      })

      test('CSV and NDJSON are sold too, and a retry has the type of the first answer', async () => {
        const market = await openMarket(service())
        await define(market, { source_collection: 'cities', price: { per_access: '5' } })
        const buyer = await createFundedBuyer(service())
        for (const [format, type, first] of [
          ['csv', 'text/csv', 'id,name,population\r\nc0,Wien,100000\r\n'],
          ['ndjson', 'application/x-ndjson', '{"id":"c0","name":"Wien","population":100000}\n'],
        ] as const) {
          const asked = data(market, `?format=${format}`)
          const payment = await buyer.payV2(await quote(service(), asked))
          const reply = await ask(service(), asked, payment)
          expect(reply.status, reply.text).toBe(200)
          expect(reply.headers.get('content-type')).toContain(type)
          expect(reply.text.startsWith(first), reply.text).toBe(true)
          const again = await ask(service(), asked, payment)
          expect(again.text).toBe(reply.text)
          expect(again.headers.get('content-type')).toBe(reply.headers.get('content-type'))
        }
      })

      test('a query without a price costs what its sources cost, as rows or derived', async () => {
        const market = await openMarket(service(), {
          price: { per_access: '3', per_row: '7' },
          policy: { derive: { per_access: '50' } },
        })
        await define(market, { name: 'rows', source_collection: 'cities' })
        await define(market, { name: 'groups', sql: `SELECT count(*) AS n FROM ${named(market)}` })
        expect(readAmount(await quote(service(), data(market, '?limit=2', 'rows')))).toBe(17n)
        expect(readAmount(await quote(service(), data(market, '', 'groups')))).toBe(50n)
        expect(await ask(service(), data(market, '', 'rows'))).toMatchObject({
          status: 400,
          body: { details: { field: '/query/limit' } },
        })
      })

      test('a query over a priced source that denies derivation is sold only at a price of its own, which is recorded', async () => {
        const market = await openMarket(service(), { price: { per_row: '7' } })
        const sql = `SELECT count(*) AS n FROM ${named(market)}`
        expect(await post(market, '/queries', { name: 'q', sql })).toMatchObject({
          status: 403,
          body: { code: 'DERIVATION_DENIED' },
        })
        const { body } = await define(market, { sql, price: { per_access: '0' } })
        expect(body.price).toMatchObject({ per_access: '0', explicit: true })
        expect((await ask(service(), data(market))).body.data).toEqual([{ n: 5 }])
        const own = await post(market, '/queries', { name: 'inside', sql, public: false })
        expect(own.status, own.text).toBe(201)
      })

      test('a query over a view that is not for sale is sold only at a price of its own', async () => {
        const market = await openMarket(service(), { price: { per_row: '7' } })
        const made = await post(market, '/views/sql', {
          sql: `CREATE MATERIALIZED VIEW "${market.appId}"::counted AS SELECT count(*) AS n FROM ${named(market)}`,
        })
        expect(made.status, made.text).toBe(201)
        const body = { root: `${market.appId}::counted`, limit: 1 }
        const denied = { status: 403, body: { code: 'DERIVATION_DENIED' } }
        expect(await service().request('POST', '/list', { body })).toMatchObject(denied)
        const query = { name: 'q', source_collection: 'counted' }
        expect(await post(market, '/queries', query)).toMatchObject(denied)
        await define(market, { ...query, price: { per_access: '30' } })
        expect(readAmount(await quote(service(), data(market, '?limit=1')))).toBe(30n)
      })

      test('a price that is set on a source later counts for queries that exist', async () => {
        const market = await openMarket(service())
        await define(market, { sql: `SELECT count(*) AS n FROM ${named(market)}` })
        expect((await ask(service(), data(market))).status).toBe(200)
        const priced = { access_policy: { read: 'public', price: { per_row: '7' } } }
        await put(market, '/collections/cities', priced)
        expect(await ask(service(), data(market))).toMatchObject({
          status: 403,
          body: { code: 'DERIVATION_DENIED' },
        })
        await put(market, '/collections/cities', {
          access_policy: { ...priced.access_policy, derive: { per_access: '9' } },
        })
        expect(readAmount(await quote(service(), data(market)))).toBe(9n)
      })

      test('rules of the application overrule the price of the definition, for all versions alike', async () => {
        const market = await openMarket(service())
        await define(market, { source_collection: 'cities', price: { per_access: '5' } })
        await define(market, { source_collection: 'cities', price: { per_access: '50' } })
        const amounts = () =>
          Promise.all(
            ['?version=1', '?version=2', ''].map(async (version) =>
              readAmount(await quote(service(), data(market, version))),
            ),
          )
        expect(await amounts()).toEqual([5n, 50n, 50n])
        const rule = {
          target: { query: 'q' },
          operation: 'read',
          model: 'per_access',
          amount: '70',
        }
        expect((await put(market, '/pricing', { rules: [rule] })).body.rules).toEqual([rule])
        expect(await amounts()).toEqual([70n, 70n, 70n])
        const nowhere = { ...rule, target: { query: 'nothing' } }
        expect(await put(market, '/pricing', { rules: [nowhere] })).toMatchObject({
          status: 404,
          body: { code: 'QUERY_NOT_FOUND' },
        })
        const openly = await service().request('GET', `/api/apps/${market.appId}/pricing`)
        expect(openly.body.rules).toEqual([rule])
      })

      test('a quote beforehand tells outsiders the price, and keys of the application that it is free', async () => {
        const market = await openMarket(service())
        await define(market, {
          source_collection: 'cities',
          parameters: [{ name: 'name', field_path: 'name' }],
          price: { per_access: '5', per_row: '1' },
        })
        const body = { app: market.appId, query: 'q', parameters: { name: 'Wien', limit: 3 } }
        const quoted = await service().request('POST', '/api/pricing/quote', { body })
        expect(quoted.status, quoted.text).toBe(200)
        expect(quoted.body).toMatchObject({ total_cost_atomic: '8', type: 'read_quote' })
        const { headers } = market
        const own = await service().request('POST', '/api/pricing/quote', { body, headers })
        expect(own.body.total_cost_atomic).toBe('0')
        const wrong = { ...body, parameters: {} }
        expect(
          (await service().request('POST', '/api/pricing/quote', { body: wrong })).status,
        ).toBe(400)
        const dry = await post(market, '/queries/q/dry-run', { parameters: body.parameters })
        expect(dry.body.price_cap).toMatchObject({ amount: '8', per_access: '5', per_row: '3' })
        const open = await post(market, '/queries/q/dry-run', { parameters: { name: 'Wien' } })
        expect(open.body.price_cap).toBeNull()
      })

      test('each source of another application must allow the query, charges everybody but its own owner, and gets its part', async () => {
        const home = await openMarket(service())
        const other = await openMarket(service(), { price: { per_row: '9' } })
        const sql = `SELECT a.name, b.population FROM ${named(home)} a JOIN ${named(other)} b ON a.id = b.id ORDER BY population`
        expect(
          await post(home, '/queries', { name: 'q', sql, price: { per_access: '30' } }),
        ).toMatchObject({
          status: 403,
          body: { code: 'DERIVATION_DENIED' },
        })
        const rows = { name: 'resold', source_collection: other.root, price: { per_access: '1' } }
        expect((await post(home, '/queries', rows)).status).toBe(403)
        const allow = { read: 'public', price: { per_row: '9' }, derive: { per_access: '77' } }
        await put(other, '/collections/cities', { access_policy: allow })
        await define(home, { sql, price: { per_access: '30' } })
        await define(home, rows)
        const asked = data(home)
        const buyer = await createFundedBuyer(service())
        const before = await readAccounts(service())
        expect(readAmount(await quote(service(), asked))).toBe(107n)
        const reply = await buyer.buy(service(), asked)
        expect(reply.status, reply.text).toBe(200)
        expect(reply.body.data).toEqual(
          cities.map(({ name, population }) => ({ name, population })),
        )
        expect(await readEarnings(service(), home)).toBe(30n - computePlatformShare(30n))
        expect(await readEarnings(service(), other)).toBe(77n - computePlatformShare(77n))
        const after = await readAccounts(service())
        expect((after.get('platform') ?? 0n) - (before.get('platform') ?? 0n)).toBe(
          computePlatformShare(30n) + computePlatformShare(77n),
        )
        // Rows of another owner's collection cost what they cost there, and the reseller's price on top.
        expect(readAmount(await quote(service(), data(home, '?limit=2', 'resold')))).toBe(19n)
        const withKey = (market: Market) => ({ ...asked, headers: market.headers })
        expect(readAmount(await quote(service(), withKey(home)))).toBe(77n)
        expect(readAmount(await quote(service(), withKey(other)))).toBe(30n)
        await put(other, '/collections/cities', { access_policy: { ...allow, derive: 'deny' } })
        expect((await ask(service(), asked)).status).toBe(403)
        expect((await ask(service(), data(home, '?limit=2', 'resold'))).status).toBe(403)
        await expectBalanced(service())
      })

      test('keys of the application that may read run its queries for nothing', async () => {
        const market = await openMarket(service())
        await define(market, { source_collection: 'cities', price: { per_row: '100' } })
        const reply = await ask(service(), { ...data(market), headers: market.headers })
        expect(reply.status).toBe(200)
        expect(reply.body.count).toBe(5)
      })

      test('an answer of more KB than were bought is refused, and says what to ask for', async () => {
        const records = Array.from({ length: 40 }, (_, at) => ({
          id: `r${at}`,
          pad: 'x'.repeat(99),
        }))
        const market = await openMarket(service(), { records })
        await define(market, { source_collection: 'cities', price: { per_kb: '10' } })
        const buyer = await createFundedBuyer(service())
        const asked = data(market, '?max_kb=2')
        expect(readAmount(await quote(service(), asked))).toBe(20n)
        for (const format of ['', '&format=csv', '&format=ndjson']) {
          const refused = await buyer.buy(service(), data(market, `?max_kb=2${format}`))
          expect(refused.status).toBe(413)
          expect(refused.body.details).toMatchObject({ max_kb: 8, limit: 16 })
        }
        const { body } = await buyer.buy(service(), data(market, '?max_kb=8'))
        expect(body.data).toEqual(records)
      })

      test('a CSV that would be longer than an answer may be is refused before anything is charged', async () => {
        const records = Array.from({ length: 3_000 }, (_, at) => ({ id: `r${at}`, [`k${at}`]: at }))
        const market = await openMarket(service(), { records })
        await define(market, { source_collection: 'cities', price: { per_access: '1000' } })
        const buyer = await createFundedBuyer(service())
        const refused = await buyer.buy(service(), data(market, '?format=csv'))
        expect(refused.status, refused.text).toBe(413)
        expect(refused.body.details).toMatchObject({ charged: '0', limit: 2048 })
        expect(await readEarnings(service(), market)).toBe(0n)
        expect(await readBalance(service(), buyer.address)).toBe(1_000n)
        const sold = await buyer.buy(service(), data(market, '?format=csv&limit=2048'))
        expect(sold.status).toBe(200)
        expect(sold.headers.get('content-type')).toContain('text/csv')
        expect(sold.text.split('\r\n')).toHaveLength(2048 + 2)
        expect(await readEarnings(service(), market)).toBe(1_000n - computePlatformShare(1_000n))
      })

      test('each version has its own price, which a later version does not change, and its quotes buy no other version', async () => {
        const market = await openMarket(service())
        await define(market, { source_collection: 'cities', price: { per_access: '5' } })
        const buyer = await createFundedBuyer(service())
        const asked = data(market, '?version=1')
        const payment = await buyer.payV2(await quote(service(), asked))
        const unnamed = await buyer.payV2(await quote(service(), data(market)))
        await define(market, { source_collection: 'cities', price: { per_access: '500' } })
        const refused = await ask(service(), data(market), unnamed)
        expect(refused.status).toBe(402)
        expect(readAmount(refused)).toBe(500n)
        const reply = await ask(service(), asked, payment)
        expect(reply.status, reply.text).toBe(200)
        expect(await readEarnings(service(), market)).toBe(5n - computePlatformShare(5n))
        await store(service(), market, [{ id: 'new', name: 'Neu', population: 1 }])
        const again = await ask(service(), asked, payment)
        expect(again.text).toBe(reply.text)
      })
    },
    { devnet: true },
  ))
