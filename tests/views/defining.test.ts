import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import { createFromSql, createView, grouped, newSeller, perMarket, rowsOf } from './support.ts'

withService((service) => {
  test('views and collections share their names, and a name is taken once', async () => {
    const app = await newSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const body = { source_collections: ['sales'], query: perMarket }
    const again = await app.call('POST', '/views', { ...body, name: 'totals' })
    expect(again).toMatchObject({ status: 409, body: { code: 'VIEW_EXISTS' } })
    expect(again.body.error).toContain('already exists')
    const taken = await app.call('POST', '/views', { ...body, name: 'sales' })
    expect(taken).toMatchObject({ status: 409, body: { code: 'COLLECTION_EXISTS' } })
    expect(taken.body.error).toContain('already exists')
    expect(await app.create({ name: 'totals' })).toMatchObject({
      status: 409,
      body: { code: 'VIEW_EXISTS' },
    })
    expect((await app.store('totals', [{ id: 'x' }])).status).toBe(409)
  })

  test('IF NOT EXISTS keeps what is there, OR REPLACE puts a new definition in its place', async () => {
    const app = await newSeller(service())
    const at = `"${app.appId}"::`
    const totals = `SELECT market, sum(amount) AS total, count(*) AS trades FROM ${at}sales GROUP BY market`
    const first = await createFromSql(app, `CREATE MATERIALIZED VIEW ${at}totals AS ${totals}`)
    expect(rowsOf(await app.list('totals'))).toEqual(grouped)
    await app.call('POST', '/indexes', { collection: 'totals', field: 'market', name: 'by_market' })
    const kept = await createFromSql(
      app,
      `CREATE MATERIALIZED VIEW IF NOT EXISTS ${at}totals AS SELECT id FROM ${at}sales`,
    )
    expect(kept.ticket_id).toBe(first.ticket_id)
    expect(kept.message).toContain('already exists')
    expect(rowsOf(await app.list('totals'))).toEqual(grouped)
    const { view } = await createFromSql(
      app,
      `CREATE OR REPLACE MATERIALIZED VIEW ${at}totals AS SELECT market, max(amount) AS most FROM ${at}sales GROUP BY market`,
      { refresh_mode: 'live' },
    )
    expect(view.status).toBe('live')
    expect(rowsOf(await app.list('totals'))).toEqual([
      { market: 'BTC', most: 2 },
      { market: 'ETH', most: 7 },
    ])
    const { body } = await app.call('GET', '/collections/totals/indexes')
    expect(body.indexes).toMatchObject([{ name: 'by_market', status: 'active' }])
    expect((await app.call('GET', '/views')).body.views).toHaveLength(1)
  })

  test('views over views follow from the collections beneath them, and a cycle is refused by name', async () => {
    const app = await newSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    await createView(app, {
      name: 'large',
      source_collections: ['totals'],
      query: { select: ['market', 'total'], find: { total: { greaterThan: 5 } } },
      refresh_mode: 'lazy',
    })
    expect(rowsOf(await app.list('large'))).toEqual([{ market: 'ETH', total: 7 }])
    const at = `"${app.appId}"::`
    const refused = await app.call('POST', '/views/sql', {
      sql: `CREATE OR REPLACE MATERIALIZED VIEW ${at}totals AS SELECT market FROM ${at}large`,
    })
    expect(refused.status).toBe(400)
    expect(refused.body.error).toContain('large')
    const other = await app.call('POST', '/views/sql', {
      sql: `CREATE OR REPLACE MATERIALIZED VIEW ${at}totals AS SELECT market FROM ${at}sales`,
    })
    expect(other).toMatchObject({ status: 409, body: { details: { views: ['large'] } } })
  })

  test('what a view needs is not deleted, unless the views go with it', async () => {
    const app = await newSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    await createView(app, {
      name: 'large',
      source_collections: ['totals'],
      query: { select: ['market'] },
    })
    expect(await app.call('DELETE', '/collections/sales')).toMatchObject({
      status: 409,
      body: { details: { views: ['totals', 'large'] } },
    })
    expect(await app.call('DELETE', '/views/totals')).toMatchObject({
      status: 409,
      body: { details: { views: ['large'] } },
    })
    expect((await app.call('DELETE', '/views/totals', { cascade: true })).status).toBe(200)
    expect((await app.list('large')).status).toBe(404)
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    expect((await app.call('DELETE', '/collections/sales', { cascade: true })).status).toBe(200)
    expect((await app.call('GET', '/views')).body).toEqual({ views: [] })
    expect((await app.store('sales', [{ id: 'new', market: 'BTC', amount: 1 }])).status).toBe(200)
  })

  test('an index on a view serves its readers, and cannot be unique or have a price', async () => {
    const app = await newSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    const made = await app.call('POST', '/indexes', { collection: 'totals', field: 'total' })
    expect(made.status, made.text).toBe(200)
    await app.store('sales', [{ id: 's5', market: 'SOL', amount: 50 }])
    const find = { total: { greaterThanOrEqual: 7 } }
    expect(rowsOf(await app.list('totals', { find }))).toEqual([
      grouped[1],
      { market: 'SOL', total: 50, trades: 1 },
    ])
    const unique = { collection: 'totals', field: 'trades', unique_constraint: true }
    expect((await app.call('POST', '/indexes', unique)).status).toBe(400)
    expect((await app.call('DELETE', `/collections/totals/indexes/${made.body.name}`)).status).toBe(
      200,
    )
  })

  test('a field that becomes unique changes which versions count, in views too', async () => {
    const app = await newSeller(service())
    await app.store('sales', [{ id: 's7', market: 'ETH', amount: 5 }])
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    await createView(app, { name: 'slow', query: perMarket })
    await app.call('POST', '/indexes', {
      collection: 'sales',
      field: 'market',
      unique_constraint: true,
    })
    const wanted = [
      { market: 'BTC', total: 1, trades: 1 },
      { market: 'ETH', total: 5, trades: 1 },
    ]
    const { tenancy, views } = service().running.service
    const tenant = await tenancy.tenant(app.appId)
    for (const name of ['totals', 'slow']) {
      const id = tenant.data.catalog.viewsByName.get(name)?.id ?? ''
      await views.settled(app.appId, id)
      expect(rowsOf(await app.list(name)), name).toEqual(wanted)
    }
  })
})
