import { expect, test } from 'vitest'
import {
  type Asked,
  ask,
  createFundedBuyer,
  list,
  makeBuyer,
  type PaymentHeader,
} from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

/** Each condition is nearly a KiB, so a query is some sixty points. */
const tests = Array.from({ length: 68 }, (_, at) => `id <> '${at}${'x'.repeat(900)}'`)

withService(
  (service) => {
    let addresses = 0
    /** A caller from an address of its own, which has all its points. */
    const openCaller = () => {
      addresses += 1
      const from = { 'x-forwarded-for': `192.0.2.${addresses}` }
      const send = (asked: Asked, headers: PaymentHeader = {}) =>
        ask(service(), asked, { ...headers, ...from })
      const readLeft = async () => {
        const { headers } = await send({ method: 'GET', path: '/api/apps/not-there' })
        return Number(/"address";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])
      }
      return {
        send,
        /** The points of its address that a request takes. */
        measure: async (asked: Asked, status: number) => {
          const before = await readLeft()
          const reply = await send(asked)
          expect(reply.status, reply.text).toBe(status)
          return before - (await readLeft())
        },
      }
    }

    /** An application with long queries that are not in memory; each is sold if it has a price. */
    const openQueries = async (names: readonly string[], price?: object) => {
      const data = await createData(service())
      await data.publish('open', [{ id: 'a' }])
      const sql = `SELECT id FROM "${data.appId}"::open WHERE ${tests.join(' AND ')}`
      for (const name of names) {
        const defined = await data.call('POST', '/queries', { name, sql, ...(price && { price }) })
        expect(defined.status, defined.text).toBe(201)
      }
      return data
    }
    const run = (app: string, name: string, query = ''): Asked => ({
      method: 'GET',
      path: `/api/queries/${app}/${name}/data${query}`,
    })
    const post = (path: string, body: object): Asked => ({
      ...{ method: 'POST', path, raw: JSON.stringify(body) },
    })

    test('each request that has a query read pays for that: refused ones, quotes and passes as well', async () => {
      const names = ['run', 'shape', 'quoted', 'unquoted', 'pass']
      const data = await openQueries(names, { per_access: '100' })
      const target = { query: 'pass' }
      const sold = { target, operation: 'read', model: 'time_pass', hours: 1, amount: '500' }
      expect((await data.call('PUT', '/pricing', { rules: [sold] })).status).toBe(200)
      const { appId: app } = data
      const asked: readonly (readonly [Asked, number])[] = [
        [run(app, 'run'), 402],
        [run(app, 'shape', '?version=x'), 400],
        [post('/api/pricing/quote', { app_id: app, query: 'quoted' }), 200],
        [post('/api/pricing/quote', { app_id: app, query: 'unquoted', max_kb: 'x' }), 400],
        [post(`/api/apps/${app}/passes`, { target, hours: 1 }), 402],
      ]
      for (const [one, status] of asked) {
        const { measure } = openCaller()
        expect(await measure(one, status), one.path).toBeGreaterThan(30)
        expect(await measure(one, status), one.path).toBeLessThan(20)
      }
    })

    test('a payment that buys nothing counts with the work that it causes, for queries that are read and for its body', async () => {
      const data = await openQueries(['a', 'b', 'c'])
      const priced = await openMarket(service(), { price: { per_row: '100' } })
      const asked = list({ root: priced.root, limit: 3 })
      const unneeded = await makeBuyer().payV2(await openCaller().send(asked))
      const countRefused = async (all: readonly Asked[]) => {
        const { send } = openCaller()
        let refused = 0
        for (const one of all) {
          const { status, body } = await send(one, unneeded)
          if (status === 429 && body.details.limit === 'payment') refused += 1
        }
        return refused
      }
      const raw = `{"root":"${priced.root}","limit":3,"pad":"${'x'.repeat(500_000)}"}`
      const large = { method: 'POST', path: '/list', raw }
      const unread = ['a', 'b', 'c'].map((name) => run(data.appId, name))
      expect(await countRefused(unread)).toBeGreaterThan(0)
      expect(await countRefused(unread)).toBe(0)
      expect(await countRefused([large, large, large, large])).toBeGreaterThan(0)
      expect(await countRefused([asked, asked, asked, asked])).toBe(0)
    })

    test('a payment that buys something costs its address nothing, whatever that owes for other requests', async () => {
      const names = ['a', 'b', 'c'] as const
      const data = await openQueries(names, { per_access: '100' })
      const buyer = await createFundedBuyer(service())
      const payments = await Promise.all(
        names.map(async (name) => {
          const asked = run(data.appId, name)
          const required = await openCaller().send(asked)
          expect(required.status, required.text).toBe(402)
          return { asked, header: await buyer.payV2(required) }
        }),
      )
      const { send } = openCaller()
      const raw = `{"root":"not::there","pad":"${'x'.repeat(500_000)}"}`
      const isRefused = async () =>
        (await send({ method: 'GET', path: '/api/apps/not-there' })).status === 429
      for (let n = 0; n < 12 && !(await isRefused()); n++)
        await send({ method: 'POST', path: '/list', raw })
      expect(await isRefused()).toBe(true)
      // No plan is in memory any more, so each payment has its query read.
      expect((await data.call('POST', '/collections', { name: 'other' })).status).toBe(201)
      for (const { asked, header } of payments) {
        const bought = await send(asked, header)
        expect(bought.status, bought.text).toBe(200)
      }
    })
  },
  {
    devnet: true,
    config: { rateLimits: { address: 200, payment: 6 }, trustProxy: ['127.0.0.1'] },
  },
)
