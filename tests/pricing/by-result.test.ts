import { expect, test } from 'vitest'
import { ask, createFundedBuyer, depositing, list, quote } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { expectBalanced, readEarnings, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { sales } from '../support/views.ts'
import { createSeller, readAmount } from './support.ts'

withService(
  (service) => {
    const price = { per_access: '50', per_row: '100' }
    const seller = (more: object = {}) =>
      createSeller(service(), { read: 'public', price, quote: 'by_result', ...more })
    const reading = ({ appId }: Data, more: object = {}) =>
      list({ root: `${appId}::sales`, ...more })
    const readCharge = async (reply: { headers: Headers }) =>
      BigInt((await readReceipt(service(), reply)).amount)

    test('a quote is for what the answer holds, says so, needs no limit, and is the charge', async () => {
      const app = await seller()
      const buyer = await createFundedBuyer(service())
      const required = await quote(service(), reading(app))
      expect(readAmount(required)).toBe(350n)
      const [entry] = required.body.accepts
      expect(entry.description).toMatch(/the answer holds 3 in \d+ bytes/)
      expect(entry.extra.costBreakdown).toMatchObject({ per_access: 50, per_row: 300 })
      const bought = await ask(service(), reading(app), await buyer.payV2(required))
      expect(bought.status, bought.text).toBe(200)
      expect(await readCharge(bought)).toBe(350n)
      const none = reading(app, { find: { id: 'none' }, limit: 9 })
      expect(readAmount(await quote(service(), none))).toBe(50n)
      const asked = await service().request('POST', '/api/pricing/quote', {
        body: {
          ...{ app: app.appId, operation_type: 'read', collection: 'sales', size_kb: 1 },
          query: { limit: 9 },
        },
      })
      expect(asked.body).toMatchObject({ total_cost_atomic: '350', rows: 3 })
    })

    test('an answer that came to hold more than was quoted is asked for anew, and the payment is unused', async () => {
      const app = await seller()
      const buyer = await createFundedBuyer(service())
      for (const pay of [buyer.payV2, buyer.payV1]) {
        const required = await quote(service(), reading(app))
        const before = readAmount(required)
        const payment = await pay(required)
        await app.store('sales', [{ id: `later ${before}`, amount: 1 }])
        const refused = await ask(service(), reading(app), payment)
        expect(refused.status, refused.text).toBe(402)
        expect(readAmount(refused)).toBe(before + 100n)
      }
      const payment = await buyer.payV2(await quote(service(), reading(app)))
      const last = await app.store('sales', [{ id: 'later 350', deleted: true }])
      expect(last.status, last.text).toBe(200)
      // Fewer came: the charge is for those.
      expect(await readCharge(await ask(service(), reading(app), payment))).toBe(450n)
      await expectBalanced(service())
    })

    test('a quote by result buys nothing once its seller does not quote so any more: the answer may hold more than was quoted', async () => {
      const app = await seller()
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), depositing(buyer.address, '5000'))
      const wide = reading(app, { limit: 9 })
      const payments = [buyer.payV2, buyer.payV1].map(async (pay) =>
        pay(await quote(service(), wide)),
      )
      const [v2, v1] = await Promise.all(payments)
      const policy = { access_policy: { read: 'public', price } }
      const changed = await app.call('PUT', '/collections/sales', policy)
      expect(changed.status, changed.text).toBe(200)
      await app.store('sales', [{ id: 'later', amount: 1 }])
      for (const payment of [v2, v1])
        for (const wish of [{}, { 'x-balance': 'off' }]) {
          const refused = await ask(service(), wide, { ...payment, ...wish })
          expect(refused.status, refused.text).toBe(402)
          expect(readAmount(refused)).toBe(950n)
        }
      expect(await readEarnings(service(), app)).toBe(0n)
      await expectBalanced(service())
    })

    test('who has a pass gets the answer by the same payment though the first try was cut off', async () => {
      const app = await seller()
      const target = { collection: 'sales' }
      const rules = [{ target, operation: 'read', model: 'time_pass', hours: 1, amount: '500' }]
      expect((await app.call('PUT', '/pricing', { rules })).status).toBe(200)
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), depositing(buyer.address, '1000'))
      const raw = JSON.stringify({ target, hours: 1 })
      const pass = { method: 'POST', path: `/api/apps/${app.appId}/passes`, raw }
      expect((await buyer.buy(service(), pass)).status).toBe(200)
      const payment = await buyer.payV2(await quote(service(), reading(app)))
      service().world.atFailpoints((point) => {
        if (point === 'payment.claimed') throw new Error('it died')
      })
      expect((await ask(service(), reading(app), payment)).status).toBe(500)
      service().world.atFailpoints(undefined)
      const again = await ask(service(), reading(app), payment)
      expect(again.status, again.text).toBe(200)
      expect(await readCharge(again)).toBe(0n)
    })

    test('an empty answer that is free needs no payment', async () => {
      const app = await seller({ empty_answer: 'free' })
      const none = await ask(service(), reading(app, { find: { id: 'none' } }))
      expect([none.status, none.body.records]).toEqual([200, []])
    })

    test('a query says it for itself, and a request over a source whose owner does not is quoted by itself', async () => {
      const app = await createSeller(service(), { read: 'public', price })
      const query = { name: 'all', source_collection: 'sales', price, quote: 'by_result' }
      const made = await app.call('POST', '/queries', query)
      expect([made.status, made.body.quote]).toEqual([201, 'by_result'])
      const path = `/api/queries/${app.appId}/all/data`
      expect(readAmount(await quote(service(), { method: 'GET', path }))).toBe(350n)
      expect(readAmount(await quote(service(), reading(app, { limit: 9 })))).toBe(950n)
    })

    test('a quote of a query counts as a run of it, as it runs it', async () => {
      const app = await createSeller(service(), { read: 'public', price })
      const rate_limit = { requests: 2, window_seconds: 3600 }
      const query = {
        name: 'few',
        source_collection: 'sales',
        price,
        quote: 'by_result',
        rate_limit,
      }
      expect((await app.call('POST', '/queries', query)).status).toBe(201)
      const body = { app: app.appId, query: 'few' }
      const send = () => service().request('POST', '/api/pricing/quote', { body })
      const path = `/api/queries/${app.appId}/few/data`
      expect((await send()).body).toMatchObject({ rows: 3 })
      await quote(service(), { method: 'GET', path })
      expect(await send()).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } })
    })

    test('a quote tells no values that SQL would compute, as the size of what it makes of them', async () => {
      const app = await seller({ offered: { filter: ['id'] } })
      const from = `"${app.appId}"::sales`
      const id = sales[0]?.id
      const sizes = [2, 3, 4].map((times) => `repeat('x', ${times})`)
      const told = sizes.map(async (text) => {
        const sql = `SELECT CASE WHEN amount > 0 THEN ${text} END AS x FROM ${from} WHERE id = '${id}' LIMIT 1`
        const reply = await service().request('POST', '/api/pricing/quote', {
          body: {
            ...{ app: app.appId, operation_type: 'read', collection: 'sales', size_kb: 1 },
            query: { sql },
          },
        })
        const { request, ...quoted } = reply.body
        return { status: reply.status, quoted }
      })
      const [first, ...others] = await Promise.all(told)
      expect(first).toMatchObject({ status: 200, quoted: { total_cost_atomic: '150' } })
      for (const one of others) expect(one).toEqual(first)
      const plain = await service().request('POST', '/query/sql', {
        body: { sql: `SELECT id, amount FROM ${from}` },
      })
      expect(readAmount(plain)).toBe(350n)
    })

    test('a quote tells no values that queries and views of other applications compute', async () => {
      const app = await seller({ derive: { per_access: '5' } })
      const other = await createData(service())
      const grant = { grantee: other.appId, collection: 'sales', per_access: '5' }
      expect((await app.call('POST', '/grants', grant)).status).toBe(201)
      const quotes: { query: object; view: object }[] = []
      for (const times of [2, 30]) {
        const name = `of_${times}`
        const select = `SELECT id, CASE WHEN amount > 0 THEN repeat('x', ${times}) END AS x FROM "${app.appId}"::sales`
        const query = { name, sql: `${select} LIMIT 2`, price: { per_access: '0' } }
        expect((await other.call('POST', '/queries', query)).status).toBe(201)
        const sql = `CREATE MATERIALIZED VIEW "${other.appId}"::view_${name} AS ${select}`
        expect((await other.call('POST', '/views/sql', { sql })).status).toBe(201)
        const refreshed = await other.call('POST', `/views/view_${name}/refresh`, {})
        expect(refreshed.status, refreshed.text).toBe(200)
        const send = async (body: object) => {
          const path = '/api/pricing/quote'
          const reply = await service().request('POST', path, { body, headers: other.headers })
          expect(reply.status, reply.text).toBe(200)
          const { request, ...quoted } = reply.body
          return quoted
        }
        const ofView = { operation_type: 'read', collection: `view_${name}`, size_kb: 1 }
        quotes.push({
          query: await send({ app: other.appId, query: name }),
          view: await send({ app: other.appId, ...ofView, query: { limit: 2 } }),
        })
      }
      expect(quotes[1]).toEqual(quotes[0])
    })
  },
  { devnet: true },
)
