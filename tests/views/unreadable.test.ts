import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { StoredView } from '../../packages/server/src/model/definitions.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { deleteViewRows } from '../../packages/server/src/projections/view-tables.ts'
import { define } from '../../packages/server/src/services/applications/define.ts'
import type { Data } from '../support/data.ts'
import { makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { createSeller, createView, listRows, perMarket } from '../support/views.ts'

const quiet = () => undefined

withService((service) => {
  const load = (app: Data) => service().running.service.tenants.load(app.appId)

  /** Writes a view as another version of the service may have, by the definition of one that is there. */
  async function defineLike(
    app: Data,
    like: string,
    body: Partial<StoredView>,
  ): Promise<StoredView> {
    const tenant = await load(app)
    const { catalog } = tenant.data
    const known = catalog.viewsByName.get(like)?.view
    if (known === undefined) throw new Error(`no view ${like}`)
    const view = { ...known, id: `view_${body.name}`, number: catalog.nextNumber, ...body }
    await define(tenant, [{ kind: 'view', id: view.id, body: view }])
    return view
  }

  const unreadable = { select: [{ market: { $gone: 'market' } }], from: 'sales' }

  const listTables = async (app: Data, { number }: StoredView) => {
    const { schema } = await load(app)
    const rows = await service().database.query<{ name: string }>(sql`
      SELECT tablename::text AS name FROM pg_catalog.pg_tables
      WHERE schemaname = ${schema} AND (tablename = ${`v_${number}`} OR tablename::text ^@ ${`s_${number}_`})
      ORDER BY tablename`)
    return rows.map(({ name }) => name)
  }

  test('a view whose definition cannot be read any more is emptied and deleted with all of its tables, and its log still replays', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const kept = await defineLike(app, 'totals', { name: 'kept', query: unreadable })
    const gone = await defineLike(app, 'totals', { name: 'gone', query: unreadable })
    const { schema } = await load(app)
    const { viewBuilder } = service().running.service
    for (const { id } of [kept, gone]) await viewBuilder.whenDone(app.appId, id)
    // The tables that the version which could read it has made.
    for (const name of [`s_${gone.number}_1`, `s_${gone.number}_1d`])
      await service().database.execute(sql`CREATE TABLE ${sql.id(schema, name)} (leaf int8)`)
    const names = await listTables(app, gone)
    expect(names).toHaveLength(3)
    for (const name of names.filter((each) => each.startsWith('s_')))
      await service().database.execute(sql`INSERT INTO ${sql.id(schema, name)} (leaf) VALUES (1)`)
    const rows = sql.id(schema, `v_${gone.number}`)
    await service().database.execute(sql`INSERT INTO ${rows} (data, body) VALUES ('{}', '{}')`)
    await service().database.transaction((tx) => deleteViewRows(tx, schema, gone))
    for (const name of names)
      expect(await service().database.query(sql`SELECT leaf FROM ${sql.id(schema, name)}`)).toEqual(
        [],
      )
    const removed = await app.call('DELETE', '/views/gone')
    expect(removed.status, removed.text).toBe(200)
    expect(await listTables(app, gone)).toEqual([])
    await service().whileStopped(async (config) => {
      expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
    const again = makeData(service(), app)
    // The table of its rows is there, empty, so that whatever counts or reads them finds it.
    expect(await listTables(again, kept)).toEqual([`v_${kept.number}`])
    expect((await again.call('DELETE', '/views/kept')).status).toBe(200)
    expect(listRows(await again.list('totals'))).toHaveLength(2)
  })

  test('tables that another version has made beside the rows of a view go with the first work on it after an upgrade, and those of its definition are made', async () => {
    const app = await createSeller(service())
    const query = { ...perMarket, aggregate: { largest: { $max: 'amount' } }, limit: 10 }
    await createView(app, { name: 'good', query, refresh_mode: 'live' })
    await createView(app, { name: 'lost', query, refresh_mode: 'live' })
    const { schema, data } = await load(app)
    const [good, lost] = ['good', 'lost'].map((name) => data.catalog.viewsByName.get(name)?.view)
    if (good === undefined || lost === undefined) throw new Error('no views')
    const names = await listTables(app, good)
    expect(names.length).toBeGreaterThan(1)
    const { database } = service()
    const [own = ''] = names.filter((name) => name.startsWith('s_'))
    await database.execute(sql`DROP TABLE ${sql.id(schema, own)}`)
    await database.execute(sql`CREATE TABLE ${sql.id(schema, `s_${good.number}_old`)} (leaf int8)`)
    await database.execute(
      sql`UPDATE ${sql.id(schema, 'definition')} SET body = replace(body, '$max', '$gone') WHERE id = ${lost.id}`,
    )
    for (const { number } of [good, lost])
      await database.execute(sql`COMMENT ON TABLE ${sql.id(schema, `v_${number}`)} IS NULL`)
    await service().restart()
    const again = makeData(service(), app)
    const { viewBuilder } = service().running.service
    for (const { id } of [good, lost]) await viewBuilder.whenDone(app.appId, id)
    expect(await listTables(again, good)).toEqual(names)
    expect(await listTables(again, lost)).toEqual([`v_${lost.number}`])
    await again.store('sales', [{ id: 's4', market: 'BTC', price: 1, amount: 9 }])
    expect(listRows(await again.list('good'))).toEqual([
      { market: 'BTC', largest: 9 },
      { market: 'ETH', largest: 7 },
    ])
  })

  test('a view whose definition cannot be read any more is neither sold nor open beyond what its source offers', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    await defineLike(app, 'totals', { name: 'lost', query: unreadable })
    const setPolicy = (access_policy: object) =>
      app.call('PUT', '/collections/sales', { access_policy })
    const price = { per_access: '5' }
    const sold = await setPolicy({ read: 'public', price, derive: 'deny' })
    expect(sold.status, sold.text).toBe(200)
    const read = () => service().request('GET', `/api/apps/${app.appId}/views/lost/data`)
    expect(await read()).toMatchObject({ status: 403, body: { code: 'DERIVATION_DENIED' } })
    const narrow = await setPolicy({ read: 'public', price, offered: { select: ['market'] } })
    expect(narrow.status, narrow.text).toBe(200)
    const described = await app.call('GET', '/views/lost')
    expect(described.body.view?.access_policy ?? described.body.access_policy).toMatchObject({
      read: 'key',
    })
  })

  test('a view whose definition cannot be read any more uses all fields of what another application grants', async () => {
    const [owner, app] = [await createSeller(service()), await createSeller(service())]
    await owner.call('PUT', '/collections/sales', { access_policy: { read: 'key' } })
    const granted = await owner.call('POST', '/grants', { grantee: app.appId, collection: 'sales' })
    expect(granted.status, granted.text).toBe(201)
    const from = `${owner.appId}::sales`
    const query = { select: ['market'], from }
    await createView(app, { name: 'markets', query, source_collections: [from] })
    await defineLike(app, 'markets', { name: 'lost', query: { ...unreadable, from } })
    const policy = { read: 'key', offered: { select: ['market'] } }
    const narrow = await owner.call('PUT', '/collections/sales', { access_policy: policy })
    expect(narrow.status, narrow.text).toBe(200)
    expect(await app.call('POST', '/views/markets/refresh', {})).toMatchObject({ status: 200 })
    const refused = await app.call('POST', '/views/lost/refresh', {})
    expect(refused.body.code, refused.text).toBe('FIELD_NOT_OFFERED')
  })

  test('a view that was taken in while a name in GROUP BY was still a column is kept up as it was', async () => {
    const app = await createSeller(service())
    const query = {
      select: [{ market: { $lower: 'market' } }, { n: { $count: '*' } }],
      from: `${app.appId}::sales`,
      group_by: ['market'],
    }
    const refused = await app.call('POST', '/views', { name: 'new', query })
    expect(refused.status, refused.text).toBe(400)
    await createView(app, { name: 'totals', query: perMarket })
    const old = await defineLike(app, 'totals', { name: 'old', query })
    await service().running.service.viewBuilder.whenDone(app.appId, old.id)
    expect(listRows(await app.list('old'))).toEqual([
      { market: 'btc', n: 2 },
      { market: 'eth', n: 1 },
    ])
  })

  test('a predefined query that was taken in while a name in GROUP BY was still a column answers as it did', async () => {
    const app = await createSeller(service())
    const text = (by: string) =>
      `SELECT lower(market) AS market, count(*) AS n FROM "${app.appId}"::sales GROUP BY ${by}`
    const create = (by: string) => app.call('POST', '/queries', { name: 'old', sql: text(by) })
    expect((await create('market')).status).toBe(400)
    const made = await create('1')
    expect(made.status, made.text).toBe(201)
    const tenant = await load(app)
    const stored = tenant.data.catalog.queries.get('old')?.at(-1)
    if (stored === undefined) throw new Error('no query old')
    const body = { ...stored, version: 2, sql: text('market') }
    await define(tenant, [{ kind: 'query', id: 'old@2', body }])
    const reply = await service().request('GET', `/api/queries/${app.appId}/old/data`)
    expect(reply.body.version, reply.text).toBe(2)
    expect(listRows(reply)).toEqual([
      { market: 'btc', n: 2 },
      { market: 'eth', n: 1 },
    ])
  })
})
