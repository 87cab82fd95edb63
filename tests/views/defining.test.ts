import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import {
  createFromSql,
  createSeller,
  createView,
  grouped,
  listRows,
  perMarket,
} from '../support/views.ts'

withService((service) => {
  test('views and collections share their names, and a name is taken once', async () => {
    const app = await createSeller(service())
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

  test('the oldest form of public clients defines a view, with groups beside the query, joins and counts', async () => {
    const app = await createSeller(service())
    await app.store('markets', [{ id: 'BTC' }, { id: 'ETH' }, { id: 'XMR' }])
    await createView(app, {
      name: 'funding',
      source_collections: ['markets', 'sales'],
      query: {
        find: {},
        select: {},
        sales: { resolve: { market: '$data.id' }, model: 'sales', many: true },
      },
      group_by: ['id'],
      aggregate: { amount: { $sum: 'sales.amount' }, trades: { $count: 'sales' } },
      refresh_mode: 'live',
    })
    await app.store('sales', [{ id: 's9', market: 'XMR', amount: 2 }])
    await app.store('markets', [{ id: 'ETH', deleted: true }])
    expect(listRows(await app.list('funding'), 'id')).toEqual([
      { id: 'BTC', amount: 3, trades: 2 },
      { id: 'XMR', amount: 2, trades: 1 },
    ])
    const { body } = await app.call('GET', '/collections/sales/indexes')
    expect(body.indexes).toMatchObject([{ field: 'market' }])
  })

  test('a view that takes the place of another one keeps what the new definition does not say: variables, mode, description', async () => {
    const app = await createSeller(service())
    const at = `"${app.appId}"::`
    const replace = (select: string, more: object = {}) =>
      app.call('POST', '/views/sql', {
        sql: `CREATE OR REPLACE MATERIALIZED VIEW ${at}seen AS SELECT ${select} FROM ${at}sales`,
        ...more,
      })
    const said = {
      variables: { market: 'market', least: 'amount.$gte' },
      refresh_mode: 'live',
      description: 'what was sold',
    }
    expect((await replace('market, amount', said)).body.view).toMatchObject(said)
    const json = { name: 'seen', query: { select: ['id', 'market', 'amount'] }, or_replace: true }
    expect((await createView(app, json)).view).toMatchObject({ ...said, status: 'live' })
    const read = (parameters: string) => app.call('GET', `/views/seen/data?${parameters}`)
    expect(listRows(await read('market=BTC&least=2'))).toEqual([
      { id: 's1', market: 'BTC', amount: 2 },
    ])
    const refused = await replace('amount')
    expect(refused).toMatchObject({
      status: 400,
      body: { details: { field: '/variables/market' } },
    })
    expect(refused.body.error).toContain('is kept from the view that is replaced')
    const other = { variables: { least: 'amount.$gt' }, refresh_mode: 'lazy', description: '' }
    expect((await replace('amount', other)).body.view).toMatchObject(other)
    expect((await read('market=BTC')).status).toBe(400)
    expect((await replace('market', { variables: {} })).body.view.variables).toEqual({})
    expect((await read('least=1')).status).toBe(400)
  })

  test('own sources are shown by their plain names, however the view was defined', async () => {
    const app = await createSeller(service())
    const at = `"${app.appId}"::`
    const { view: fromSql } = await createFromSql(
      app,
      `CREATE MATERIALIZED VIEW ${at}one AS SELECT market FROM ${at}sales`,
    )
    const source_collections = [`${app.appId}::sales`, 'sales']
    const { view: fromJson } = await createView(app, {
      name: 'other',
      query: { select: ['market'] },
      source_collections,
    })
    for (const view of [fromSql, fromJson]) expect(view.source_collections).toEqual(['sales'])
  })

  test('views over views follow from the collections beneath them, and a cycle is refused and named', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    await createView(app, {
      name: 'large',
      source_collections: ['totals'],
      query: { select: ['market', 'total'], find: { total: { greaterThan: 5 } } },
      refresh_mode: 'lazy',
    })
    expect(listRows(await app.list('large'))).toEqual([{ market: 'ETH', total: 7 }])
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

  test('a collection or view that another view needs is deleted only together with that view', async () => {
    const app = await createSeller(service())
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

  test('a view that predefined queries read, and what it is made of, are deleted only together with the queries', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    const at = `"${app.appId}"::`
    const queries = [
      { name: 'best', source_collection: 'totals', base_query: { find: {} } },
      { name: 'summed', sql: `SELECT sum(total) AS total FROM ${at}totals` },
      { name: 'summed', sql: `SELECT sum(amount) AS total FROM ${at}sales` },
      { name: 'other', sql: `SELECT count(*) AS n FROM ${at}elsewhere` },
    ]
    await app.create({ name: 'elsewhere' })
    for (const query of queries)
      expect((await app.call('POST', '/queries', query)).status).toBe(201)
    const refused = await app.call('DELETE', '/views/totals')
    expect(refused).toMatchObject({
      status: 409,
      body: { details: { queries: ['best', 'summed'] } },
    })
    expect(refused.body.error).toMatch(/^totals is needed by the queries best, summed; /)
    expect(await app.call('DELETE', '/collections/sales')).toMatchObject({
      status: 409,
      body: { details: { views: ['totals'], queries: ['best', 'summed'] } },
    })
    expect((await app.call('DELETE', '/views/totals', { cascade: true })).status).toBe(200)
    const ask = (name: string) => app.call('GET', `/queries/${name}`)
    expect((await ask('best')).body.code).toBe('QUERY_NOT_FOUND')
    // Its second version does not read the view.
    expect((await ask('summed')).body.version).toBe(2)
    expect((await app.call('DELETE', '/collections/sales', { cascade: true })).status).toBe(200)
    expect((await ask('summed')).body.code).toBe('QUERY_NOT_FOUND')
    expect((await ask('other')).status).toBe(200)
  })

  test('a view is kept in the most tables that the limit allows, and one more is refused', async () => {
    const app = await createSeller(service())
    // Each max is kept in a table of its own, beside that of the rows.
    const create = (name: string, tables: number) => {
      const select = Array.from({ length: tables - 1 }, (_, at) => ({
        [`c${at}`]: { $max: `f${at}` },
      }))
      return app.call('POST', '/views', { name, source_collections: ['sales'], query: { select } })
    }
    const most = await create('most', limits.viewTablesMax)
    expect(most.status, most.text).toBe(201)
    expect(await create('more', limits.viewTablesMax + 1)).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_FAILED', details: { field: '/query' } },
    })
  })

  test('a view is refused where the statements that fill it would be too long, though its definition is not', async () => {
    const app = await createSeller(service())
    const sum = (terms: number) => Array.from({ length: terms }, (_, at) => `a${at}`).join(' + ')
    // Each of the three is in the condition several times, and the condition in the statements.
    const create = (name: string, terms: number) =>
      app.call('POST', '/views/sql', {
        sql: `CREATE MATERIALIZED VIEW "${app.appId}"::${name} AS SELECT market, max(price) AS high FROM "${app.appId}"::sales
          WHERE ${sum(terms)} BETWEEN SYMMETRIC ${sum(20)} AND ${sum(terms)} GROUP BY market`,
      })
    const short = await create('short', 20)
    expect(short.status, short.text).toBe(201)
    const long = await create('long', 200)
    expect(long).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_FAILED', details: { field: '/sql', problem: 'is too complex' } },
    })
  })

  test('an index on a view serves its readers, and cannot be unique or have a price', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live' })
    const made = await app.call('POST', '/indexes', { collection: 'totals', field: 'total' })
    expect(made.status, made.text).toBe(200)
    await app.store('sales', [{ id: 's5', market: 'SOL', amount: 50 }])
    const find = { total: { greaterThanOrEqual: 7 } }
    expect(listRows(await app.list('totals', { find }))).toEqual([
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
    const app = await createSeller(service())
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
    const { tenants, viewBuilder } = service().running.service
    const tenant = await tenants.load(app.appId)
    for (const name of ['totals', 'slow']) {
      const id = tenant.data.catalog.viewsByName.get(name)?.id ?? ''
      await viewBuilder.whenDone(app.appId, id)
      expect(listRows(await app.list(name)), name).toEqual(wanted)
    }
  })
})
