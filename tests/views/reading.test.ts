import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import {
  createFromSql,
  createSeller,
  createView,
  grouped,
  perMarket,
  sales,
} from '../support/views.ts'

withService((service) => {
  test('a view is read in a list, in groups, in joins and in SQL, at its own position', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    const at = `"${app.appId}"::`
    const sql = (text: string) =>
      service().request('POST', '/query/sql', { body: { sql: text }, headers: app.headers })
    const listed = await app.list('totals', { sortBy: 'total', sortDirection: 'desc', limit: 1 })
    expect(listed.body.records).toEqual([grouped[1]])
    expect(listed.body.total).toBe(2)
    expect(listed.body.next_cursor).toBeUndefined()
    const one = await sql(`SELECT market, total * 2 AS twice FROM ${at}totals WHERE total > 5`)
    expect(one.body.data).toEqual([{ market: 'ETH', twice: 14 }])
    expect(one.body.lag).toEqual({ blocks: 0, ms: 0 })
    const joined = await sql(
      `SELECT s.id, t.total FROM ${at}sales s JOIN ${at}totals t ON t.market = s.market ORDER BY s.id`,
    )
    expect(joined.body.data).toEqual([
      { id: 's1', total: 3 },
      { id: 's2', total: 3 },
      { id: 's3', total: 7 },
    ])
    const groups = await app.list('totals', { aggregate: { all: { $sum: 'total' } } })
    expect(groups.body.records).toEqual([{ all: 10 }])
    const found = await app.list('sales', {
      find: { of: { model: 'totals', many: false, resolve: { find: { market: '$data.market' } } } },
      limit: 1,
    })
    expect(found.body.records).toEqual([{ ...sales[0], of: grouped[0] }])
  })

  test('texts of a view count as long as its definition may make them, in SQL and in predefined queries', async () => {
    const app = await createSeller(service())
    const at = `"${app.appId}"::`
    const long = `concat(${Array.from({ length: 16 }, () => 'market').join(', ')})`
    await createFromSql(
      app,
      `CREATE MATERIALIZED VIEW ${at}long AS SELECT id, ${long} AS x FROM ${at}sales`,
    )
    const ask = (sql: string) =>
      service().request('POST', '/query/sql', { body: { sql }, headers: app.headers })
    expect((await ask(`SELECT id, upper(x) AS y FROM ${at}long LIMIT 1`)).status).toBe(200)
    const twice = `SELECT concat(x, x) AS y FROM ${at}long LIMIT 1`
    const stored = await app.call('POST', '/queries', { name: 'twice', sql: twice })
    for (const refused of [await ask(twice), stored]) {
      expect(refused.status).toBe(400)
      expect(refused.text).toContain('concat could give more than 16 MiB')
    }
  })

  test('a reader who asks for no order gets the order of the definition: all its columns, directions and places of null', async () => {
    const app = await createSeller(service())
    await app.create({ name: 'places' })
    const rows = [
      { id: 'a', land: 'AT', size: 1 },
      { id: 'b', land: 'DE', size: 2 },
      { id: 'c', land: 'DE', size: 9 },
      { id: 'd', land: 'AT', size: 5 },
      { id: 'e', land: null, size: 3 },
      { id: 'f', land: 'DE', size: 2 },
    ]
    await app.store('places', rows)
    const select = ['id', 'land', 'size']
    const order_by = [
      { by: 'land', nulls: 'first' },
      { by: 'size', direction: 'desc' },
      { by: 'id', direction: 'desc' },
    ]
    for (const [name, more] of Object.entries({ sorted: {}, cut: { limit: 4 } })) {
      const query = { from: 'places', select, order_by, ...more }
      await createView(app, { name, query, source_collections: ['places'], refresh_mode: 'live' })
    }
    const ids = (list: { id: string }[]) => list.map(({ id }) => id).join('')
    expect(ids((await app.list('sorted')).body.records)).toBe('edacfb')
    expect(ids((await app.list('cut')).body.records)).toBe('edac')
    const page = await app.call('GET', '/views/sorted/data?limit=3&offset=3')
    expect(ids(page.body.data)).toBe('cfb')
    const own = await app.list('sorted', { sortBy: 'size', limit: 2 })
    expect(ids(own.body.records)).toBe('ab')
    await app.store('places', [{ id: 'd', land: 'DE', size: 4 }])
    expect(ids((await app.list('sorted')).body.records)).toBe('eacdfb')
  })

  test('cursors and history belong to records, and are refused for a view', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const cursor = await app.list('totals', { cursor: 'x', limit: 1 })
    expect(cursor).toMatchObject({ status: 400, body: { details: { field: '/cursor' } } })
    const history = await app.list('totals', { include_history: true })
    expect(history).toMatchObject({ status: 400, body: { details: { field: '/include_history' } } })
  })

  test('explain tells how a view would be read as it does for a collection; a view has no preview and no dry run', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    await createView(app, { name: 'rows', query: { select: ['id', 'price'] } })
    const index = await app.call('POST', '/indexes', { collection: 'rows', field_name: 'price' })
    expect(index.status, index.text).toBe(200)
    const explain = (collection: string, query: object) =>
      app.call('POST', `/collections/${collection}/explain`, { query })
    const found = await explain('rows', { find: { price: { gt: 5 } }, limit: 1 })
    expect(found.body.estimated_cost, found.text).toBeGreaterThan(0)
    const sql = `SELECT t.total FROM "${app.appId}"::totals t JOIN "${app.appId}"::sales s ON s.market = t.market`
    for (const asked of [{ sql }, { aggregate: { all: { $sum: 'total' } } }]) {
      const reply = await explain('totals', asked)
      expect(reply.body.estimated_cost, reply.text).toBeGreaterThan(0)
    }
    expect(await explain('none', {})).toMatchObject({
      status: 404,
      body: { code: 'COLLECTION_NOT_FOUND' },
    })
    const preview = await app.call('GET', '/collections/totals/preview')
    expect(preview).toMatchObject({ status: 404, body: { code: 'COLLECTION_NOT_FOUND' } })
    const at = `"${app.appId}"::`
    const create = { sql: `CREATE MATERIALIZED VIEW ${at}more AS SELECT id FROM ${at}sales` }
    const query = { name: 'more', source_collections: ['sales'], query: perMarket }
    for (const [path, body] of Object.entries({ '/views/sql': create, '/views': query }))
      expect(await app.call('POST', path, { ...body, dry_run: true })).toMatchObject({
        status: 400,
        body: { details: { field: '/dry_run' } },
      })
    expect((await app.call('GET', '/views/more')).status).toBe(404)
  })

  test('a view is for keys where one of its sources is, unless its owner says otherwise', async () => {
    const app = await createSeller(service())
    await app.create({ name: 'closed', access_policy: { read: 'key' } })
    await app.store('closed', [{ id: 'c', market: 'BTC', amount: 1 }])
    const source_collections = ['closed']
    await createView(app, { name: 'inside', source_collections, query: perMarket })
    await createView(app, {
      name: 'outside',
      source_collections,
      query: perMarket,
      access_policy: { read: 'public' },
    })
    expect((await app.listOpenly('inside')).status).toBe(401)
    expect((await app.list('inside')).status).toBe(200)
    expect((await app.listOpenly('outside')).status).toBe(200)
    await app.create({
      name: 'half',
      access_policy: { read: 'public', offered: { select: ['market'] } },
    })
    await createView(app, { name: 'hidden', source_collections: ['half'], query: perMarket })
    expect((await app.listOpenly('hidden')).status).toBe(401)
    // The right to read and the price follow the source where the owner of the view did not state them.
    await createView(app, { name: 'after', query: perMarket })
    expect((await app.listOpenly('after')).status).toBe(200)
    const { body: shown } = await app.call('GET', '/views/after')
    expect(shown.access_policy).toEqual({ read: 'public' })
    const offering = (select: string[]) =>
      app.call('PUT', '/collections/sales', {
        access_policy: { read: 'public', offered: { select } },
      })
    await offering(['id', 'market'])
    expect((await app.listOpenly('after')).status).toBe(401)
    await offering(['market', 'amount'])
    expect((await app.listOpenly('after')).status).toBe(200)
    await app.call('PUT', '/collections/sales', { access_policy: { read: 'key' } })
    expect((await app.listOpenly('after')).status).toBe(401)
    await app.create({ name: 'secret', access_policy: { read: 'private' } })
    await createView(app, { name: 'unknown', source_collections: ['secret'], query: perMarket })
    expect((await app.listOpenly('unknown')).body.code).toBe('COLLECTION_NOT_FOUND')
    const data = await service().request('GET', `/api/apps/${app.appId}/views/unknown/data`)
    expect(data.body.code).toBe('VIEW_NOT_FOUND')
  })
})
