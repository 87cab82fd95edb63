import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createBlobs } from '../support/blobs.ts'
import {
  ask,
  createFundedBuyer,
  list,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { expectBalanced, readEarnings, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'
import { createFromSql, createView, grouped, listRows, perMarket } from '../support/views.ts'
import { computePlatformShare, createSeller, readAmount } from './support.ts'

/**
 * The threats to a price, each tried over HTTP with money that moves. docs/price-safety.md argues why each is closed. L13 and
 * L14 are about sealed applications and retention, which are not there yet; tests/blobs has more of L11.
 */
test('every threat from L1 to L16 whose area is built has a test of its number', () => {
  const titles = readFileSync(import.meta.filename, 'utf8').match(/test\('L\d+: /g) ?? []
  const tried = titles.map((title) => Number(/\d+/.exec(title)?.[0]))
  expect(tried).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16])
})

withService(
  (service) => {
    const seller = (access_policy: object) => createSeller(service(), access_policy)
    const open = (method: string, path: string, body?: object): Promise<TestReply> =>
      service().request(method, path, body === undefined ? {} : { body })
    const openAs = (headers: PaymentHeader, path: string, body?: object) =>
      service().request(body === undefined ? 'GET' : 'POST', path, {
        headers,
        ...(body && { body }),
      })
    const makeSql = ({ appId }: Data, text: string) => text.replaceAll('APP', `"${appId}"`)
    const askSql = (app: Data, text: string) =>
      open('POST', '/query/sql', { sql: makeSql(app, text) })
    const openList = (app: Data, body: object, name = 'sales') =>
      open('POST', '/list', { root: `${app.appId}::${name}`, ...body })
    const dataOfView = (app: Data, query = '', view = 'totals') => ({
      method: 'GET',
      path: `/api/apps/${app.appId}/views/${view}/data${query}`,
    })
    const dataOfQuery = (app: Data, query = '', name = 'q') => ({
      method: 'GET',
      path: `/api/queries/${app.appId}/${name}/data${query}`,
    })
    const define = async (app: Data, body: object) => {
      const reply = await app.call('POST', '/queries', { name: 'q', ...body })
      expect(reply.status, reply.text).toBe(201)
      return reply.body
    }
    const denied = { status: 403, body: { code: 'DERIVATION_DENIED' } }
    const priced = { read: 'public', price: { per_row: '100' } }

    test('L1: a view or query over a paid collection is no cheaper unless its owner says so on record, and needs grant and price of other owners', async () => {
      const app = await seller(priced)
      await createFromSql(
        app,
        makeSql(app, 'CREATE MATERIALIZED VIEW APP::copy AS SELECT * FROM APP::sales'),
      )
      await createFromSql(
        app,
        makeSql(app, 'CREATE MATERIALIZED VIEW APP::second AS SELECT * FROM APP::copy'),
      )
      for (const name of ['copy', 'second'])
        expect(readAmount(await quote(service(), dataOfView(app, '?limit=3', name)))).toBe(300n)
      await define(app, { source_collection: 'sales' })
      await define(app, { name: 'again', source_collection: 'second' })
      for (const name of ['q', 'again'])
        expect(readAmount(await quote(service(), dataOfQuery(app, '?limit=3', name)))).toBe(300n)
      const { view } = await createView(app, {
        name: 'totals',
        query: perMarket,
        price: { per_access: '1' },
      })
      expect(view.access_policy.price).toEqual({ per_access: '1' })

      const thief = await createData(service())
      const sources = { source_collections: [`${app.appId}::sales`] }
      const stolen = { name: 'totals', ...sources, query: perMarket, price: { per_access: '0' } }
      expect((await thief.call('POST', '/views', stolen)).body.code).toBe('GRANT_NEEDED')
      const resold = { name: 'q', source_collection: `${app.appId}::sales`, price: {} }
      expect(await thief.call('POST', '/queries', resold)).toMatchObject(denied)
      await app.call('POST', '/grants', {
        grantee: thief.appId,
        collection: 'sales',
        per_access: '70',
      })
      await createView(thief, stolen)
      const buyer = await createFundedBuyer(service())
      expect(listRows(await buyer.buy(service(), dataOfView(thief)))).toEqual(grouped)
      expect(await readEarnings(service(), app)).toBe(70n - computePlatformShare(70n))
      expect(await readEarnings(service(), thief)).toBe(0n)
      await expectBalanced(service())
    })

    test('L2: rights and prices are those of the reader, never those of the maker of a view or query', async () => {
      const owner = await seller({ read: 'private', derive: { per_access: '20' } })
      const app = await createData(service())
      await owner.call('POST', '/grants', { grantee: app.appId, collection: 'sales' })
      const sources = { source_collections: [`${owner.appId}::sales`] }
      await createView(app, { name: 'totals', ...sources, query: perMarket })
      // A view that nobody declared public is as closed as its source.
      expect((await open('GET', dataOfView(app).path)).status).toBe(404)
      await createView(app, {
        name: 'shown',
        ...sources,
        query: perMarket,
        access_policy: 'public',
      })
      for (const headers of [{}, app.headers, service().operator])
        expect(
          readAmount(await quote(service(), { ...dataOfView(app, '', 'shown'), headers })),
        ).toBe(20n)
      const his = await ask(service(), { ...dataOfView(app, '', 'shown'), headers: owner.headers })
      expect(listRows(his)).toEqual(grouped)
      // The operator pays to read sold data as everybody does, and cannot read closed data.
      expect((await openAs(service().operator, dataOfView(app).path)).status).toBe(404)

      const query = {
        name: 'q',
        sql: makeSql(owner, 'SELECT count(*) AS n FROM APP::sales'),
        price: {},
      }
      expect((await app.call('POST', '/queries', query)).status).toBe(404)
      const policy = (read: string) => ({ access_policy: { read, derive: { per_access: '20' } } })
      await owner.call('PUT', '/collections/sales', policy('public'))
      await define(app, query)
      expect(readAmount(await quote(service(), dataOfQuery(app)))).toBe(20n)
      await owner.call('PUT', '/collections/sales', policy('key'))
      for (const headers of [{}, app.headers])
        expect((await ask(service(), { ...dataOfQuery(app), headers })).status).toBe(401)
      expect((await ask(service(), { ...dataOfQuery(app), headers: owner.headers })).status).toBe(
        200,
      )
    })

    test('L3: a query that packs many rows into few is derivation: denied, or sold at its own price whatever it gives', async () => {
      const packing = [
        'SELECT json_agg(market) AS a FROM APP::sales',
        "SELECT string_agg(id, ',') AS a FROM APP::sales",
        'SELECT min(price) AS a, max(price) AS b FROM APP::sales',
        'SELECT id, count(*) AS n FROM APP::sales GROUP BY id',
        'SELECT DISTINCT id FROM APP::sales',
        'SELECT id, row_number() OVER (ORDER BY price) AS n FROM APP::sales LIMIT 1',
        'SELECT id FROM APP::sales UNION ALL SELECT market FROM APP::sales LIMIT 1',
        'SELECT (SELECT max(amount) FROM APP::sales) AS a FROM APP::sales LIMIT 1',
        'SELECT a.id FROM (SELECT id, amount FROM APP::sales) a LIMIT 1',
      ]
      const grouping = { group_by: ['market'], aggregate: { n: { $sum: 'amount' } } }
      const app = await seller(priced)
      await createFromSql(
        app,
        makeSql(app, 'CREATE MATERIALIZED VIEW APP::copy AS SELECT * FROM APP::sales'),
      )
      for (const sql of [
        ...packing,
        ...packing.map((text) => text.replaceAll('::sales', '::copy')),
      ]) {
        const reply = await askSql(app, sql)
        // A sub-query that gives rows as they are is sold by the row.
        if (reply.status === 402) expect(readAmount(reply), sql).toBeGreaterThanOrEqual(100n)
        else expect(reply, sql).toMatchObject(denied)
      }
      for (const name of ['sales', 'copy'])
        expect(await openList(app, { ...grouping, limit: 1 }, name)).toMatchObject(denied)
      for (const [at, select] of packing.slice(0, 5).entries()) {
        const create = `CREATE MATERIALIZED VIEW APP::packed_${at} AS ${select}`
        await createFromSql(app, makeSql(app, create))
        expect(await openList(app, { limit: 1 }, `packed_${at}`), create).toMatchObject(denied)
      }
      const sold = await seller({ ...priced, derive: { per_access: '5000' } })
      for (const sql of packing.slice(0, 5))
        expect(readAmount(await askSql(sold, sql)), sql).toBe(5000n)
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: `${sold.appId}::sales`, ...grouping })
      const bought = await buyer.buy(service(), asked)
      expect(bought.status, bought.text).toBe(200)
      expect(await readEarnings(service(), sold)).toBe(5000n - computePlatformShare(5000n))
    })

    test('L4: nobody filters, sorts, groups or joins by a field that is not offered, neither in a view nor by a variable', async () => {
      const offered = { select: ['id', 'market'], filter: ['market'], sort: ['market'] }
      const app = await seller({ read: 'public', offered, derive: { per_access: '0' } })
      await createFromSql(
        app,
        makeSql(
          app,
          'CREATE MATERIALIZED VIEW APP::copy AS SELECT id, market, price FROM APP::sales',
        ),
        {
          access_policy: { read: 'public', offered, derive: { per_access: '0' } },
          variables: { least: 'price.$gte' },
        },
      )
      const hidden = { status: 403, body: { code: 'FIELD_NOT_OFFERED' } }
      for (const name of ['sales', 'copy']) {
        const replies = await Promise.all([
          openList(app, { select: { id: true, price: true } }, name),
          openList(app, {}, name),
          openList(app, { select: { id: true }, find: { price: { gt: 5 } } }, name),
          openList(app, { select: { id: true }, sortBy: 'price' }, name),
          openList(app, { group_by: ['price'], aggregate: { n: { $count: '*' } } }, name),
          openList(app, { aggregate: { n: { $sum: 'price' } } }, name),
          askSql(app, `SELECT id FROM APP::${name} WHERE price > 5`),
          askSql(app, `SELECT id FROM APP::${name} ORDER BY price`),
          askSql(app, `SELECT count(*) FILTER (WHERE price > 5) AS n FROM APP::${name}`),
          askSql(app, `SELECT a.id FROM APP::${name} a JOIN APP::${name} b ON a.price = b.price`),
        ])
        for (const reply of replies) expect(reply, reply.text).toMatchObject(hidden)
      }
      for (const query of ['', '?least=5', '?sortBy=price'])
        expect(await ask(service(), dataOfView(app, query, 'copy'))).toMatchObject(hidden)
      // A view that shows what its source does not offer is not public by mistake.
      const { view } = await createView(app, { name: 'totals', query: perMarket })
      expect(view.access_policy).toMatchObject({ read: 'key' })
    })

    test('L5: no answer tells how much there is before it is paid for', async () => {
      const [full, empty] = [await seller(priced), await createData(service())]
      await empty.create({ name: 'sales', access_policy: priced })
      const texts: string[] = []
      for (const app of [full, empty]) {
        await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
        await define(app, { source_collection: 'sales' })
        const asked = [
          openList(app, { limit: 2 }),
          openList(app, { limit: 0 }),
          openList(app, { limit: 2, offset: 1_000 }),
          openList(app, { limit: 2, find: { market: 'BTC' } }),
          openList(app, {}),
          askSql(app, 'SELECT id FROM APP::sales LIMIT 2'),
          askSql(app, 'SELECT count(*) AS n FROM APP::sales'),
          ask(service(), dataOfView(app, '?limit=2')),
          ask(service(), dataOfView(app, '?limit=0')),
          ask(service(), dataOfQuery(app, '?limit=2')),
          open('GET', `/api/apps/${app.appId}/collections/sales/stats`),
          open('GET', `/api/apps/${app.appId}/views`),
          open('GET', `/api/apps/${app.appId}/views/totals`),
          open('POST', `/api/apps/${app.appId}/collections/sales/explain`, { find: {} }),
          open('GET', `/api/apps/${app.appId}/collections/sales?include_stats=true`),
        ]
        const replies = await Promise.all(asked)
        for (const { status } of replies.slice(10, 14)) expect(status).toBe(401)
        const same = replies.map(({ status, text }) => `${status} ${steady(text, app)}`)
        texts.push(same.join('\n'))
      }
      expect(texts[0]).toBe(texts[1])
      const preview = await open('GET', `/api/apps/${full.appId}/collections/sales/preview`)
      expect(preview.body).toMatchObject({ row_count_band: '1-9', sample: [] })
      const buyer = await createFundedBuyer(service())
      const one = await buyer.buy(service(), list({ root: `${full.appId}::sales`, limit: 1 }))
      expect(one.body.total).toBe(1)
    })

    test('L6: a join charges every source, however few of its rows are seen and whoever owns the other one', async () => {
      const paid = await seller({ ...priced, derive: { per_access: '900' } })
      const shut = await seller(priced)
      const bait = await seller({ read: 'public' })
      await bait.store('sales', [{ id: 's1', market: 'BTC' }])
      await createFromSql(
        shut,
        makeSql(shut, 'CREATE MATERIALIZED VIEW APP::copy AS SELECT * FROM APP::sales'),
      )
      const joins = (app: Data, name = 'sales') =>
        [
          `SELECT p.price FROM MY::sales m JOIN APP::${name} p ON p.id = m.id`,
          `SELECT m.id FROM MY::sales m LEFT JOIN APP::${name} p ON p.id = m.id WHERE p.id IS NULL`,
          `SELECT m.id FROM MY::sales m WHERE m.id IN (SELECT id FROM APP::${name})`,
          `SELECT m.id FROM MY::sales m WHERE EXISTS (SELECT 1 AS one FROM APP::${name} p WHERE p.id = m.id AND p.price > 11)`,
          `SELECT a.id FROM APP::${name} a JOIN APP::${name} b ON a.id = b.id`,
          `WITH p AS (SELECT id FROM APP::${name}) SELECT m.id FROM MY::sales m JOIN p ON p.id = m.id`,
        ].map((text) => makeSql(app, text).replaceAll('MY', `"${bait.appId}"`))
      for (const sql of [...joins(shut), ...joins(shut, 'copy')])
        expect(await openAs(bait.headers, '/query/sql', { sql }), sql).toMatchObject(denied)
      for (const sql of joins(paid)) {
        const reply = await openAs(bait.headers, '/query/sql', { sql })
        expect(readAmount(reply), sql).toBeGreaterThanOrEqual(900n)
      }
      const resolve = (app: Data) => ({
        root: `${bait.appId}::sales`,
        find: { p: { resolve: { id: '$data.id' }, model: `${app.appId}::sales` } },
      })
      expect(await openAs(bait.headers, '/list', resolve(shut))).toMatchObject(denied)
      const buyer = await createFundedBuyer(service())
      const asked = { ...list(resolve(paid)), headers: bait.headers }
      expect((await buyer.buy(service(), asked)).status).toBe(200)
      expect(await readEarnings(service(), paid)).toBe(900n - computePlatformShare(900n))
    })

    test('L7: a parameter is a value: no text, list, object or absence of it widens what is sold', async () => {
      const app = await seller({ read: 'key' })
      await define(app, {
        source_collection: 'sales',
        base_query: { find: { amount: { $lt: 5 } } },
        parameters: [{ name: 'market', field_path: 'market' }],
        price: { per_access: '10' },
        public: true,
      })
      await createView(app, {
        name: 'totals',
        query: perMarket,
        variables: { market: 'market' },
        access_policy: { read: 'public', price: { per_access: '10' } },
      })
      const refused = [
        '',
        '?market=',
        '?market=BTC&market=ETH',
        '?market[]=BTC',
        '?market[$ne]=x',
        '?market.$ne=x',
        '?market=BTC&find={}',
        '?market=BTC&amount=7',
        '?market=BTC&sort=price',
        '?market=BTC&where=1',
      ]
      for (const query of refused) {
        const reply = await ask(service(), dataOfQuery(app, query))
        expect(reply.status, query).toBe(400)
      }
      for (const query of refused.slice(2)) {
        const reply = await ask(service(), dataOfView(app, query))
        expect(reply.status, query).toBe(400)
      }
      const buyer = await createFundedBuyer(service())
      const wild = [
        '%',
        '_',
        '*',
        '.*',
        'null',
        '{"$ne":null}',
        '["BTC","ETH"]',
        "' OR 1=1 --",
        'ETH',
      ]
      for (const text of wild.map(encodeURIComponent)) {
        const reply = await buyer.buy(service(), dataOfQuery(app, `?market=${text}`))
        expect(reply.body, text).toMatchObject({ data: [], count: 0 })
      }
      for (const text of wild.slice(0, -1).map(encodeURIComponent)) {
        const reply = await buyer.buy(service(), dataOfView(app, `?market=${text}`))
        expect(reply.body, text).toMatchObject({ data: [], count: 0 })
      }
      const body = { app: app.appId, query: 'q', parameters: { market: { $ne: 1 } } }
      expect((await open('POST', '/api/pricing/quote', body)).status).toBe(400)
    })

    test('L8: pages are charged by their rows, a page past the end gives nothing, and a cursor belongs to its list alone', async () => {
      const app = await seller(priced)
      await createFromSql(
        app,
        makeSql(app, 'CREATE MATERIALIZED VIEW APP::copy AS SELECT * FROM APP::sales'),
      )
      await define(app, { source_collection: 'sales', base_query: { limit: 2 } })
      const root = `${app.appId}::sales`
      for (const limit of [-1, 1e9, 1.5, '1', null])
        expect((await openList(app, { limit })).status, String(limit)).toBe(400)
      for (const query of ['?limit=-1', '?limit=1e9', '?limit=x', '?offset=-1', '?limit=1&limit=2'])
        for (const asked of [dataOfView(app, query, 'copy'), dataOfQuery(app, query)])
          expect((await ask(service(), asked)).status, asked.path).toBe(400)
      for (const asked of [
        list({ root, limit: 0 }),
        dataOfView(app, '?limit=0', 'copy'),
        dataOfQuery(app, '?limit=0'),
      ]) {
        const nothing = await ask(service(), asked)
        expect(nothing.body.records ?? nothing.body.data).toEqual([])
      }
      const buyer = await createFundedBuyer(service())
      let earned = 0n
      for (const [asked, rows] of [
        [list({ root, limit: 2, sortBy: 'id' }), 2n],
        [list({ root, limit: 2, offset: 1, sortBy: 'id' }), 2n],
        [list({ root, limit: 2, offset: 99 }), 0n],
        [dataOfView(app, '?limit=9&offset=2', 'copy'), 1n],
        [dataOfQuery(app, '?limit=5'), 2n],
        [dataOfQuery(app, '?limit=5&offset=1'), 1n],
      ] as const) {
        const reply = await buyer.buy(service(), asked)
        expect(reply.status, reply.text).toBe(200)
        earned += rows * 100n - computePlatformShare(rows * 100n)
        expect(await readEarnings(service(), app), asked.path).toBe(earned)
      }
      const page = await buyer.buy(service(), list({ root, limit: 1, sortBy: 'id' }))
      const cursor = page.body.next_cursor
      expect(cursor).toEqual(expect.any(String))
      for (const [name, more] of [
        ['sales', { sortBy: 'price' }],
        ['sales', { sortBy: 'id', find: { market: 'BTC' } }],
        ['copy', { sortBy: 'id' }],
      ] as const)
        expect((await openList(app, { limit: 1, cursor, ...more }, name)).status).toBe(400)
      const forged = `${cursor.slice(0, -2)}AA`
      expect((await openList(app, { limit: 1, sortBy: 'id', cursor: forged })).status).toBe(400)
      expect((await openList(app, { limit: 1, sortBy: 'id', cursor })).status).toBe(402)
      await expectBalanced(service())
    })

    test('L9: errors and quotes tell nothing about stored data, before or after a payment', async () => {
      const word = 'Hochsicherheitstrakt'
      const app = await seller({
        read: 'public',
        price: { per_access: '10' },
        derive: { per_access: '10' },
      })
      await define(app, {
        sql: makeSql(
          app,
          'SELECT sum(CAST(secret AS numeric) / (amount - :n)) AS a FROM APP::sales',
        ),
        parameters: [{ name: 'n', type: 'number' }],
        price: { per_access: '10' },
      })
      const questions = [
        'SELECT CAST(secret AS numeric) AS a FROM APP::sales',
        'SELECT 1 / (amount - 2) AS a FROM APP::sales',
        'SELECT CAST(secret AS timestamp) AS a FROM APP::sales',
        'SELECT power(10, 400) * amount AS a FROM APP::sales',
        'SELECT id FROM APP::sales WHERE CAST(secret AS boolean)',
      ].map((text) => JSON.stringify({ sql: makeSql(app, text) }))
      const asked = [
        ...questions.map((raw) => ({ method: 'POST', path: '/query/sql', raw })),
        dataOfQuery(app, '?n=2'),
      ]
      const texts = async () => {
        const replies = await Promise.all(asked.map((one) => ask(service(), one)))
        return replies.map(({ status, text }) => `${status} ${steady(text, app)}`)
      }
      const before = await texts()
      await app.store('sales', [{ id: 's4', market: 'X', amount: 2, secret: word }])
      expect(await texts()).toEqual(before)
      const buyer = await createFundedBuyer(service())
      let tried = 0
      for (const one of asked) {
        if ((await ask(service(), one)).status !== 402) continue
        const reply = await buyer.buy(service(), one)
        expect(reply.status, reply.text).not.toBe(500)
        if (reply.status !== 200) expect(reply.text).not.toContain(word)
        tried += 1
      }
      expect(tried).toBeGreaterThan(0)
    })

    test('L10: neither a key that is taken nor a payment of somebody else tells or gives anything', async () => {
      const app = await seller(priced)
      const at = `/api/apps/${app.appId}/collections/sales/records`
      const [there, not] = await Promise.all(['s1', 's7'].map((key) => open('GET', `${at}/${key}`)))
      expect(there?.status).toBe(402)
      expect(steady(there?.text ?? '', app)).toBe(
        steady((not?.text ?? '').replaceAll('s7', 's1'), app),
      )
      const write = (id: string) =>
        open('POST', '/store', { root: `${app.appId}::sales`, data: [{ id }], strict: true })
      const [taken, fresh] = [await write('s1'), await write('s7')]
      expect(taken.status).toBe(401)
      expect(steady(taken.text, app)).toBe(steady(fresh.text, app))

      await createView(app, { name: 'totals', query: perMarket, price: { per_row: '100' } })
      const [first, second] = [
        await createFundedBuyer(service()),
        await createFundedBuyer(service()),
      ]
      const asked = dataOfView(app, '?limit=2')
      const payment = await first.payV2(await quote(service(), asked))
      expect((await ask(service(), asked, payment)).status).toBe(200)
      // The same money buys nothing else, and another's request is sold anew.
      const other = dataOfView(app, '?limit=1')
      expect((await ask(service(), other, payment)).status).toBe(409)
      const own = await second.buy(service(), asked)
      expect(own.headers.get('idempotent-replayed')).toBeNull()
      expect(await readEarnings(service(), app)).toBe(2n * (200n - computePlatformShare(200n)))
      expect(await readBalance(service(), second.address)).toBe(0n)
    })

    test('L11: no verb, range or condition gets a byte of a priced blob, and its id is good for no other collection', async () => {
      const app = await createBlobs(service())
      const price = { per_access: '100', per_kb: '1024' }
      await app.data.create({ name: 'files', collection_type: 'blob', access_policy: { price } })
      await app.data.create({ name: 'open', collection_type: 'blob', access_policy: 'public' })
      const { blob_id } = (await app.upload('files', 'dear')).body
      const tag = `"${String(blob_id).slice('blob_'.length)}"`
      const tries = [{}, { range: 'bytes=0-0' }, { 'if-none-match': tag }, { 'if-range': tag }]
      for (const more of tries) {
        const headers = { 'x-app-key': '', ...more }
        expect((await app.download('files', blob_id, headers)).status).toBe(402)
        expect((await app.head('files', blob_id, headers)).status).toBe(402)
        expect((await app.download('open', blob_id, headers)).status).toBe(404)
        expect((await app.download('..%2ffiles', blob_id, headers)).status).toBe(404)
      }
    })

    test('L12: proofs, blocks, receipts, tasks and metrics show hashes, never what is sold', async () => {
      const word = 'Hochsicherheitstrakt'
      const app = await createData(service())
      await app.create({ name: 'sales', access_policy: priced })
      const stored = await app.store('sales', [{ id: 's1', market: word, amount: 1 }])
      const { ticket_id: ticket, view } = await createView(app, {
        name: 'totals',
        query: perMarket,
        price: { per_row: '100' },
      })
      expect(view.name).toBe('totals')
      const buyer = await createFundedBuyer(service())
      const bought = await buyer.buy(service(), dataOfView(app, '?limit=2'))
      expect(bought.text).toContain(word)
      const at = `/api/apps/${app.appId}`
      const receipt = await readReceipt(service(), bought)
      const { block_height: height, sequence } = stored.body.results[0]
      const replies = await Promise.all([
        open('GET', `${at}/collections/sales/records/s1/proof`),
        open('GET', `${at}/collections/sales/records/s1/history`),
        open('GET', `${at}/chain/proof?height=${height}&sequence=${sequence}`),
        open('GET', `${at}/chain/proof?collection=sales&key=s1`),
        open('GET', `${at}/chain/blocks/${height}`),
        open('GET', `${at}/chain/blocks/${bought.body.as_of.block_height}`),
        open('GET', `${at}/chain/checkpoint`),
        open('GET', `/task/${stored.body.ticket_id}`),
        open('GET', `/task/${ticket}`),
        open('GET', `${at}/collections/sales/changes`),
        open('GET', '/metrics'),
        openAs(service().operator, '/metrics'),
      ])
      for (const reply of replies) expect(reply.text).not.toContain(word)
      expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThan(4)
      expect(JSON.stringify(receipt)).not.toContain(word)
    })

    test('L15: a preview is one fixed sample, and no parameter makes it another', async () => {
      const app = await createData(service())
      await app.create({
        name: 'sales',
        access_policy: { ...priced, preview: { rows: 2, fields: ['id'] } },
      })
      await app.store(
        'sales',
        Array.from({ length: 9 }, (_, at) => ({ id: `r${at}`, n: at })),
      )
      await createView(app, { name: 'totals', query: { select: ['id', 'n'] } })
      const at = `/api/apps/${app.appId}/collections`
      const sample = async (query = '') => (await open('GET', `${at}/sales/preview${query}`)).body
      const first = await sample()
      expect(first.sample).toHaveLength(2)
      for (const row of first.sample) expect(Object.keys(row)).toEqual(['id'])
      for (const query of ['', '?limit=9', '?offset=5', '?sortBy=n', '?seed=3', '?rows=9']) {
        const again = await sample(query)
        if (again.sample !== undefined) expect(again.sample, query).toEqual(first.sample)
      }
      await app.store('sales', [{ id: 'r99', n: 99 }])
      expect((await sample()).sample).toEqual(first.sample)
      expect((await open('GET', `${at}/totals/preview`)).status).toBe(404)
    })

    test('L16: a group below the size that its seller sets is left out, so one record changes nothing that is told', async () => {
      const app = await seller({ read: 'key' })
      await define(app, {
        sql: makeSql(
          app,
          'SELECT market, sum(amount) AS total FROM APP::sales GROUP BY market ORDER BY market',
        ),
        min_group_size: 3,
        price: { per_access: '10' },
        public: true,
      })
      await app.store('sales', [{ id: 's4', market: 'BTC', amount: 1 }])
      const buyer = await createFundedBuyer(service())
      const told = async () => (await buyer.buy(service(), dataOfQuery(app))).body.data
      const before = await told()
      expect(before).toEqual([{ market: 'BTC', total: 4 }])
      await app.store('sales', [{ id: 's5', market: 'ETH', amount: 100 }])
      expect(await told()).toEqual(before)
      await app.store('sales', [{ id: 's6', market: 'ETH', amount: 1 }])
      expect(await told()).toEqual([...before, { market: 'ETH', total: 108 }])
      // Each read costs.
      expect(await readEarnings(service(), app)).toBe(3n * (10n - computePlatformShare(10n)))
    })

    /** Removes from a reply the parts that differ from request to request, and from application to application. */
    function steady(text: string, app: Data): string {
      return (
        text
          .replaceAll(app.appId, 'app')
          .replace(/"request_id":"[^"]*"/g, '')
          .replace(/"(quoteId|expiresAt|created_at|updated_at|collection_id|id)":"[^"]*"/g, '')
          // A quote for a plain transfer has an address of its own.
          .replace(/"(payTo|expiresAt)":[^,}]*/g, '')
          .replace(/"as_of":\{[^}]*\}|"lag":\{[^}]*\}/g, '')
      )
    }
  },
  { devnet: true },
)
