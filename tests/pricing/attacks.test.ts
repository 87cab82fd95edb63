import { expect, test } from 'vitest'
import { ask, createFundedBuyer, quote, readBalance } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { expectBalanced, readEarnings, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { createFromSql, createView, grouped, listRows, perMarket, sales } from '../support/views.ts'
import { computePlatformShare, createSeller, readAmount } from './support.ts'

/** Attacks on views and predefined queries beside the list of threats. */
withService(
  (service) => {
    const seller = (access_policy: object) => createSeller(service(), access_policy)
    const dataOfView = (app: Data, query = '', view = 'totals') => ({
      method: 'GET',
      path: `/api/apps/${app.appId}/views/${view}/data${query}`,
    })
    const open = (method: string, path: string, body?: object) =>
      service().request(method, path, body === undefined ? {} : { body })
    const grant = async (owner: Data, to: Data, more: object) => {
      const reply = await owner.call('POST', '/grants', { grantee: to.appId, ...more })
      expect(reply.status, reply.text).toBe(201)
      return reply.body
    }

    test('a view over a view that its owner has priced costs what that view costs, not what is beneath it', async () => {
      const app = await seller({ read: 'public' })
      await createView(app, { name: 'totals', query: perMarket, price: { per_row: '500' } })
      const { view } = await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW "${app.appId}"::again AS SELECT * FROM "${app.appId}"::totals`,
      )
      expect(view.price).toEqual({ per_access: '0', per_row: '500', per_kb: '0' })
      expect((await open('GET', dataOfView(app, '?limit=1', 'again').path)).status).toBe(402)
    })

    test('a view that takes the place of a priced or closed one keeps its policy where nothing else is said', async () => {
      const app = await seller({ read: 'public' })
      const sql = (more: string) =>
        `CREATE OR REPLACE MATERIALIZED VIEW "${app.appId}"::totals AS SELECT market, sum(amount) AS total${more} FROM "${app.appId}"::sales GROUP BY market`
      await createFromSql(app, sql(''), {
        access_policy: { read: 'public', price: { per_access: '50' } },
      })
      await createFromSql(app, sql(', count(*) AS n'))
      expect(readAmount(await quote(service(), dataOfView(app)))).toBe(50n)
      await createFromSql(app, sql(''), { access_policy: 'private' })
      await createFromSql(app, sql(', count(*) AS n'))
      expect((await open('GET', dataOfView(app).path)).status).toBe(404)
      await createFromSql(app, sql(''), { access_policy: 'public' })
      expect((await open('GET', dataOfView(app).path)).status).toBe(200)
    })

    test('a view takes its name for stores too: no record gets between a view and its readers', async () => {
      const app = await seller({ read: 'public' })
      await createView(app, { name: 'totals', query: perMarket })
      for (const reply of [
        await app.store('totals', [{ id: 'x', market: 'FAKE' }]),
        await app.create({ name: 'totals' }),
        await app.call('POST', '/indexes', { collection: 'totals', field: 'market', unique: true }),
      ])
        expect([400, 404, 409], reply.text).toContain(reply.status)
      const batch = {
        operations: [{ type: 'create', collection: 'totals', data: { id: 'x', market: 'FAKE' } }],
      }
      const batched = await app.call('POST', '/batch', batch)
      expect(batched.status, batched.text).not.toBe(200)
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      const both = await Promise.all([
        app.store('raced', [{ id: 'x', market: 'FAKE' }]),
        app.call('POST', '/views', {
          name: 'raced',
          source_collections: ['sales'],
          query: perMarket,
        }),
      ])
      const won = both.filter(({ status }) => status < 300)
      expect(won.length, both.map(({ text }) => text).join()).toBe(1)
    })

    test('no verb but GET gives what a view or query sells', async () => {
      const app = await seller({ read: 'public' })
      const price = { per_access: '5' }
      await createView(app, { name: 'totals', query: perMarket, price })
      const stored = await app.call('POST', '/queries', {
        name: 'q',
        source_collection: 'sales',
        price,
      })
      expect(stored.status, stored.text).toBe(201)
      for (const path of [dataOfView(app).path, `/api/queries/${app.appId}/q/data`])
        for (const method of ['HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE', 'PATCH']) {
          const reply = await service().request(method, path)
          if (method !== 'OPTIONS') expect(reply.status, `${method} ${path}`).not.toBe(200)
          expect(reply.text).not.toContain('BTC')
        }
    })

    test('strangers learn nothing of a private view, on no path', async () => {
      const app = await seller({ read: 'public' })
      await createView(app, { name: 'totals', query: perMarket, access_policy: 'private' })
      const other = await createData(service())
      const root = `${app.appId}::totals`
      const none = `${app.appId}::nothing`
      const at = `/api/apps/${app.appId}`
      const shape = ({ status, text }: { status: number; text: string }) =>
        `${status} ${text.replaceAll('nothing', 'totals').replace(/"request_id":"[^"]*"/, '')}`
      const pairs: [string, string, (name: string) => object | undefined][] = [
        ['POST', '/list', (name) => ({ root: `${app.appId}::${name}` })],
        ['POST', '/list', (name) => ({ root: `${app.appId}::${name}`, limit: 'x' })],
        [
          'POST',
          '/list',
          (name) => ({ root: `${app.appId}::${name}`, aggregate: { n: { $count: '*' } } }),
        ],
        ['POST', '/query/sql', (name) => ({ sql: `SELECT market FROM "${app.appId}"::${name}` })],
        [
          'POST',
          '/query/sql',
          (name) => ({
            sql: `SELECT s.id FROM "${app.appId}"::sales s JOIN "${app.appId}"::${name} t ON t.market = s.market`,
          }),
        ],
        ['GET', `${at}/views/NAME/data`, () => undefined],
        ['GET', `${at}/views/NAME/data?nope=1`, () => undefined],
        ['GET', `${at}/views/NAME`, () => undefined],
        ['DELETE', `${at}/views/NAME`, () => ({})],
        ['POST', `${at}/views/NAME/refresh`, () => ({})],
        ['GET', `${at}/collections/NAME`, () => undefined],
        ['GET', `${at}/collections/NAME/preview`, () => undefined],
        ['GET', `${at}/collections/NAME/stats`, () => undefined],
        ['GET', `${at}/collections/NAME/indexes`, () => undefined],
        ['GET', `${at}/collections/NAME/changes`, () => undefined],
        ['GET', `${at}/collections/NAME/records/1`, () => undefined],
        ['POST', `${at}/collections/NAME/explain`, () => ({ find: {} })],
        [
          'POST',
          '/api/pricing/quote',
          (name) => ({ app_id: app.appId, collection: name, operation_type: 'read', size_kb: 1 }),
        ],
        [
          'POST',
          '/api/pricing/quote',
          (name) => ({ app_id: app.appId, collection: name, operation_type: 'write', size_kb: 1 }),
        ],
        ['POST', '/store', (name) => ({ root: `${app.appId}::${name}`, data: [{ id: 'x' }] })],
      ]
      expect(root).not.toBe(none)
      for (const headers of [{}, other.headers, service().operator] as Record<string, string>[]) {
        for (const [method, path, body] of pairs) {
          // The operator may do what Admin may, and describe.
          if (headers === service().operator && !/list|sql|data|changes|records/.test(path))
            continue
          const [real, nowhere] = await Promise.all(
            ['totals', 'nothing'].map((name) => {
              const sent = body(name)
              return service().request(method, path.replace('NAME', name), {
                headers,
                ...(sent && { body: sent }),
              })
            }),
          )
          if (real === undefined || nowhere === undefined) throw new Error('unreached')
          expect(real.text).not.toContain('BTC')
          expect.soft(shape(real), `${method} ${path}`).toBe(shape(nowhere))
        }
      }
    })

    test('no name from behind a granted view is shown to those who use the view', async () => {
      const owner = await createData(service())
      await owner.create({ name: 'hush', access_policy: 'key' })
      await owner.store('hush', sales)
      await createView(owner, {
        name: 'shown',
        source_collections: ['hush'],
        query: perMarket,
        access_policy: { read: 'public' },
      })
      const app = await createData(service())
      const given = await grant(owner, app, { view: 'shown' })
      const sql = `SELECT market, total FROM "${owner.appId}"::shown`
      const texts: string[] = []
      const keep = async (reply: Promise<{ text: string; status: number }>) => {
        const { text, status } = await reply
        texts.push(text)
        return status
      }
      const create = (name: string, more: object = {}) =>
        keep(
          app.call('POST', '/views/sql', {
            sql: `CREATE MATERIALIZED VIEW "${app.appId}"::${name} AS ${sql}`,
            ...more,
          }),
        )
      expect(await create('lives', { refresh_mode: 'live' })).toBe(400)
      expect(await create('totals')).toBe(201)
      expect(
        await keep(
          app.call('POST', '/views', {
            name: 'bad',
            source_collections: ['hush'],
            query: { select: ['market'], from: `${owner.appId}::shown` },
          }),
        ),
      ).toBe(400)
      await keep(app.call('GET', '/views/totals'))
      await keep(app.call('GET', '/views'))
      await keep(app.call('POST', '/views/totals/refresh', {}))
      expect(await keep(ask(service(), dataOfView(app)))).toBe(200)
      // The source of the view goes.
      expect((await owner.call('DELETE', '/views/shown', { cascade: true })).status).toBe(200)
      expect((await owner.call('DELETE', `/grants/${given.id}`)).status).toBe(404)
      expect(await keep(ask(service(), dataOfView(app)))).toBe(403)
      await keep(app.call('GET', '/views/totals'))
      await keep(app.call('POST', '/views/totals/refresh', {}))
      expect(await create('more')).toBe(404)
      for (const text of texts) expect.soft(text).not.toContain(`${owner.appId}::hush`)
    })

    test('a grant that the first of three owners takes back ends reading for everybody, and nobody is told his name', async () => {
      const [first, second, third] = [
        await seller({ read: 'private' }),
        await createData(service()),
        await createData(service()),
      ]
      const given = await grant(first, second, { collection: 'sales', per_access: '7' })
      const price = { per_access: '5' }
      await createView(second, {
        name: 'totals',
        source_collections: [`${first.appId}::sales`],
        query: perMarket,
        access_policy: { read: 'public', price },
      })
      await grant(second, third, { view: 'totals', per_access: '9' })
      await createView(third, {
        name: 'totals',
        source_collections: [`${second.appId}::totals`],
        query: { select: ['market', 'total', 'trades'] },
        access_policy: { read: 'public', price: { per_access: '11' } },
      })
      const buyer = await createFundedBuyer(service())
      const asked = dataOfView(third)
      expect(readAmount(await quote(service(), asked))).toBe(7n + 9n + 11n)
      expect(listRows(await buyer.buy(service(), asked))).toEqual(grouped)
      for (const [app, due] of [
        [first, 7n],
        [second, 9n],
        [third, 11n],
      ] as const)
        expect(await readEarnings(service(), app)).toBe(due - computePlatformShare(due))
      await expectBalanced(service())
      const payment = await buyer.payV2(await quote(service(), asked))
      const before = await readBalance(service(), buyer.address)
      expect((await first.call('DELETE', `/grants/${given.id}`)).status).toBe(200)
      const late = await ask(service(), asked, payment)
      expect(late.status).toBe(403)
      expect(await readBalance(service(), buyer.address)).toBe(before)
      const texts = [
        late.text,
        (await third.call('GET', '/views/totals')).text,
        (await third.call('POST', '/views/totals/refresh', {})).text,
        (
          await third.call('POST', '/views', {
            name: 'next',
            source_collections: [`${second.appId}::totals`],
            query: { select: ['market'] },
          })
        ).text,
      ]
      for (const text of texts) {
        expect.soft(text).toMatch(/grant/)
        expect.soft(text).not.toContain(first.appId)
      }
    })

    test('a grant without an amount over what later gets a price and no derive price sells nothing, and quotes nothing', async () => {
      const owner = await seller({ read: 'public' })
      const app = await createData(service())
      await grant(owner, app, { collection: 'sales' })
      await createView(app, {
        name: 'totals',
        source_collections: [`${owner.appId}::sales`],
        query: perMarket,
      })
      expect((await ask(service(), dataOfView(app))).status).toBe(200)
      const priced = { access_policy: { read: 'public', price: { per_row: '7' } } }
      expect((await owner.call('PUT', '/collections/sales', priced)).status).toBe(200)
      const read = await ask(service(), dataOfView(app))
      expect(read.status, read.text).toBe(403)
      expect((await app.list('totals')).status).toBe(403)
      const body = {
        app_id: app.appId,
        collection: 'totals',
        operation_type: 'read',
        size_kb: 0,
        rows: 1,
      }
      const quoted = await open('POST', '/api/pricing/quote', body)
      expect(quoted.status, quoted.text).toBe(403)
      const asked = await open('POST', '/api/pricing/quote', { ...body, query: { limit: 1 } })
      expect(asked.status, asked.text).toBe(403)
      const refreshed = await app.call('POST', '/views/totals/refresh', {})
      expect(refreshed.status, refreshed.text).not.toBe(500)
    })

    test('a buyer is charged what was quoted when the price of the owner or of another one rises before the payment comes', async () => {
      const owner = await seller({ read: 'public', derive: { per_access: '20' } })
      const app = await createData(service())
      await grant(owner, app, { collection: 'sales' })
      await createView(app, {
        name: 'totals',
        source_collections: [`${owner.appId}::sales`],
        query: perMarket,
        price: { per_access: '10' },
      })
      const buyer = await createFundedBuyer(service())
      const asked = dataOfView(app)
      const payment = await buyer.payV2(await quote(service(), asked))
      const rule = {
        target: { view: 'totals' },
        operation: 'read',
        model: 'per_access',
        amount: '1000',
      }
      expect((await app.call('PUT', '/pricing', { rules: [rule] })).status).toBe(200)
      const reply = await ask(service(), asked, payment)
      expect(reply.status, reply.text).toBe(200)
      expect(await readEarnings(service(), app)).toBe(10n - computePlatformShare(10n))
      expect(await readEarnings(service(), owner)).toBe(20n - computePlatformShare(20n))
      // The other's price rises: he gets what the quote has for him, and nothing of the seller's part.
      const second = await buyer.payV2(await quote(service(), asked))
      const dearer = { access_policy: { read: 'public', derive: { per_access: '5000' } } }
      expect((await owner.call('PUT', '/collections/sales', dearer)).status).toBe(200)
      const late = await ask(service(), asked, second)
      expect(late.status, late.text).toBe(200)
      expect(await readEarnings(service(), app)).toBe(
        1010n - computePlatformShare(10n) - computePlatformShare(1000n),
      )
      expect(await readEarnings(service(), owner)).toBe(2n * (20n - computePlatformShare(20n)))
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(readAmount(await quote(service(), asked))).toBe(6000n)
      await expectBalanced(service())
    })

    test('a view of another shape that takes the place while a buyer pays is not what his quote buys, and his payment stays unused', async () => {
      const app = await seller({ read: 'public' })
      const sql = (columns: string) =>
        `CREATE OR REPLACE MATERIALIZED VIEW "${app.appId}"::totals AS SELECT ${columns} FROM "${app.appId}"::sales`
      await createFromSql(app, sql('id, market'), { price: { per_row: '5' } })
      const buyer = await createFundedBuyer(service())
      const asked = dataOfView(app, '?limit=3')
      const payment = await buyer.payV2(await quote(service(), asked))
      await createFromSql(app, sql('id, price, amount'), { price: { per_row: '500' } })
      const refused = await ask(service(), asked, payment)
      expect(refused.status, refused.text).toBe(402)
      expect(await readEarnings(service(), app)).toBe(0n)
      expect(readAmount(refused)).toBe(1500n)
      const reply = await ask(service(), asked, await buyer.payV2(refused))
      expect(reply.status, reply.text).toBe(200)
      expect(Object.keys(reply.body.data[0])).toEqual(['id', 'price', 'amount'])
      expect(await readEarnings(service(), app)).toBe(1500n - computePlatformShare(1500n))
      await expectBalanced(service())
    })

    test('a paid answer is given again after the view, its grant, or the version of the query is gone', async () => {
      const owner = await seller({ read: 'public', derive: { per_access: '20' } })
      const app = await createData(service())
      const given = await grant(owner, app, { collection: 'sales' })
      await createView(app, {
        name: 'totals',
        source_collections: [`${owner.appId}::sales`],
        query: perMarket,
      })
      const stored = await owner.call('POST', '/queries', {
        name: 'q',
        source_collection: 'sales',
        price: { per_access: '3' },
      })
      expect(stored.status, stored.text).toBe(201)
      const buyer = await createFundedBuyer(service())
      const both = [
        dataOfView(app),
        { method: 'GET', path: `/api/queries/${owner.appId}/q/data?version=1` },
      ]
      const sold: (readonly [
        (typeof both)[number],
        Awaited<ReturnType<typeof buyer.payV2>>,
        string,
      ])[] = []
      for (const asked of both) {
        const payment = await buyer.payV2(await quote(service(), asked))
        const reply = await ask(service(), asked, payment)
        expect(reply.status, reply.text).toBe(200)
        sold.push([asked, payment, reply.text])
      }
      const unused = await buyer.payV2(await quote(service(), both[1] ?? dataOfView(app)))
      await owner.call('DELETE', `/grants/${given.id}`)
      await app.call('DELETE', '/views/totals', {})
      expect((await owner.call('DELETE', '/queries/q?version=1', {})).status).toBe(200)
      for (const [asked, payment, text] of sold) {
        const again = await ask(service(), asked, payment)
        expect(again.status, again.text).toBe(200)
        expect(again.text).toBe(text)
      }
      const gone = await ask(service(), both[1] ?? dataOfView(app), unused)
      expect(gone.status).toBe(404)
      await expectBalanced(service())
    })

    test('two payments at once for one quote buy once each, however often each is sent', async () => {
      const app = await seller({ read: 'public', price: { per_row: '10' } })
      await createView(app, { name: 'totals', query: perMarket, price: { per_row: '10' } })
      const buyer = await createFundedBuyer(service())
      const asked = dataOfView(app, '?limit=2')
      const required = await quote(service(), asked)
      const [one, two] = [await buyer.payV2(required), await buyer.payV2(required)]
      const replies = await Promise.all(
        [one, one, two, one].map((payment) => ask(service(), asked, payment)),
      )
      const good = replies.filter(({ status }) => status === 200)
      for (const reply of replies) expect([200, 402, 409, 503], reply.text).toContain(reply.status)
      const receipts = new Set(good.map(({ headers }) => headers.get('x-receipt-id')))
      expect(receipts.size).toBe(2)
      expect(await readEarnings(service(), app)).toBe(2n * (20n - computePlatformShare(20n)))
      await expectBalanced(service())
    })

    test('an answer over a view and fresher records states the older position of the two', async () => {
      const app = await seller({ read: 'public' })
      await createView(app, { name: 'totals', query: perMarket, price: { per_row: '100' } })
      await app.store('sales', [{ id: 's9', market: 'ETH', amount: 100 }])
      const alone = await app.list('totals')
      const at = alone.body.as_of
      const fresh = (await app.list('sales')).body.as_of
      expect(at).not.toEqual(fresh)
      const sql = (text: string) =>
        service().request('POST', '/query/sql', {
          headers: app.headers,
          body: { sql: text.replaceAll('APP', `"${app.appId}"`) },
        })
      for (const text of [
        'SELECT t.total, s.id FROM APP::totals t JOIN APP::sales s ON s.market = t.market',
        'SELECT t.total, s.id FROM APP::sales s JOIN APP::totals t ON s.market = t.market',
        'SELECT id FROM APP::sales WHERE market IN (SELECT market FROM APP::totals)',
      ]) {
        const reply = await sql(text)
        expect(reply.status, reply.text).toBe(200)
        expect.soft(reply.body.as_of, text).toEqual(at)
        expect.soft(reply.body.lag, text).toMatchObject({ blocks: expect.any(Number) })
      }
      const joined = await app.list('sales', {
        find: { totals: { resolve: { market: '$data.market' }, model: 'totals' } },
      })
      expect(joined.status, joined.text).toBe(200)
      expect.soft(joined.body.as_of).toEqual(at)
    })

    test('a stale view that is sold says how old it is, on the answer and on its receipt', async () => {
      const app = await seller({ read: 'public', price: { per_row: '10' } })
      await createView(app, { name: 'totals', query: perMarket, price: { per_row: '10' } })
      const before = (await app.list('totals')).body.as_of
      await app.store('sales', [{ id: 's9', market: 'ETH', amount: 100 }])
      const buyer = await createFundedBuyer(service())
      const reply = await buyer.buy(service(), dataOfView(app, '?limit=5'))
      expect(reply.body.as_of).toEqual(before)
      expect(reply.body.lag.blocks).toBeGreaterThan(0)
      expect((await readReceipt(service(), reply)).as_of).toEqual(before)
    })

    test('a deletion of everything while a view is refreshed and bought ends in an answer, or in no answer and no money', async () => {
      for (let round = 0; round < 3; round++) {
        const app = await seller({ read: 'public', price: { per_row: '10' } })
        await createView(app, { name: 'totals', query: perMarket, price: { per_row: '10' } })
        await createView(app, {
          name: 'again',
          source_collections: ['totals'],
          query: { select: ['market', 'total', 'trades'] },
        })
        const buyer = await createFundedBuyer(service())
        const asked = dataOfView(app, '?limit=2')
        const payment = await buyer.payV2(await quote(service(), asked))
        const [bought, ...others] = await Promise.all([
          ask(service(), asked, payment),
          app.call('POST', '/views/totals/refresh', {}),
          app.call('POST', '/views/again/refresh', {}),
          app.call('DELETE', '/collections/sales', { cascade: true }),
        ])
        for (const reply of [bought, ...others]) expect(reply.status, reply.text).not.toBe(500)
        const earned = await readEarnings(service(), app)
        expect(earned).toBe(bought.status === 200 ? 20n - computePlatformShare(20n) : 0n)
        await expectBalanced(service())
      }
    })
  },
  { devnet: true },
)
