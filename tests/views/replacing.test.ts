import { expect, test, vi } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import type { StoredView } from '../../packages/server/src/model/definitions.ts'
import { markStale } from '../../packages/server/src/projections/view-state.ts'
import { define } from '../../packages/server/src/services/applications/define.ts'
import type { Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'
import { createSeller, createView, grouped, listRows, perMarket } from '../support/views.ts'
import { holdTable } from './support.ts'

withService((service) => {
  const loadTenant = (app: Data) => service().running.service.tenants.load(app.appId)
  const readState = async (app: Data, name: string) =>
    (await app.call('GET', `/views/${name}`)).body

  const ofTotals = { source_collections: ['totals'], query: { select: ['market', 'total'] } }
  const markets = { source_collections: ['sales'], query: { select: ['market'], distinct: true } }

  /** Asks for another definition of the view `totals`, which is not filled until it is released. */
  async function startReplacing(app: Data) {
    const { data } = await loadTenant(app)
    const { view } = requirePresent(data.catalog.viewsByName.get('totals'), 'the view')
    const held = await holdTable(service(), app, data.catalog.byName.get('sales')?.table)
    const body = { name: 'totals', ...markets, or_replace: true }
    const replacing = app.call('POST', '/views', body)
    const findNew = () => [...data.catalog.views.values()].find((one) => one.view.replaces)
    await expect.poll(findNew).toBeDefined()
    const next = requirePresent(findNew(), 'the replacement').view
    const finish = async (): Promise<TestReply> => {
      await held.release()
      return replacing
    }
    return { old: view, next, finish }
  }

  /** Defines a view of `totals`, as earlier versions of the service did while that was being replaced. */
  async function defineOn(app: Data, old: StoredView, more: Partial<StoredView> = {}) {
    const tenant = await loadTenant(app)
    const model = `${app.appId}::totals`
    const view: StoredView = {
      ...old,
      ...{ id: 'view_of_totals', number: tenant.data.catalog.nextNumber, name: 'of_totals' },
      query: { select: ['market', 'total'], from: model },
      source_collections: ['totals'],
      sources: [{ model, app: app.appId, id: old.id }],
      inner: { ...old.inner, [model]: old.query },
      ...more,
    }
    await define(tenant, [{ kind: 'view', id: view.id, body: view }])
    return view
  }

  test('no view is made of one that is being replaced, or of its replacement, and neither is granted; later both are possible', async () => {
    const [app, other] = [await createSeller(service()), await createSeller(service())]
    await createView(app, { name: 'totals', query: perMarket })
    const { old, next, finish } = await startReplacing(app)
    try {
      for (const name of ['totals', old.id, next.id]) {
        const body = { name: 'second', source_collections: [name], query: { select: ['market'] } }
        const made = await app.call('POST', '/views', body)
        expect(made, made.text).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
        const grant = { grantee: other.appId, view: name }
        const given = await app.call('POST', '/grants', grant)
        expect(given, given.text).toMatchObject({
          status: 409,
          body: { code: 'CONFLICT', error: expect.stringContaining('totals is being replaced') },
        })
      }
    } finally {
      await finish()
    }
    expect(listRows(await app.list('totals'))).toEqual([{ market: 'BTC' }, { market: 'ETH' }])
    await createView(app, { name: 'second', ...ofTotals, query: { select: ['market'] } })
    const grant = { grantee: other.appId, view: 'totals' }
    expect((await app.call('POST', '/grants', grant)).status).toBe(201)
  })

  test('a view that became a source, or was granted, while it was being replaced stays, and its replacement says why it stands still', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const tenant = await loadTenant(app)
    const start = await startReplacing(app)
    const second = await defineOn(app, start.old)
    const created_at = new Date().toISOString()
    const grant = { id: 'g', grantee: 'shop', source: start.old.id, per_access: '5', created_at }
    await define(tenant, [{ kind: 'grant', id: 'g', body: grant }])
    expect((await start.finish()).status).toBe(201)
    await service().running.service.viewBuilder.whenDone(app.appId, start.next.id)
    await service().running.service.viewBuilder.whenDone(app.appId, second.id)
    expect(await readState(app, 'totals')).toMatchObject({
      status: 'lazy',
      replacement: { status: 'stale', stale_reason: expect.stringContaining('of_totals') },
    })
    expect(listRows(await app.list('totals'))).toEqual(grouped)
    expect(listRows(await app.list('of_totals'))).toHaveLength(2)
    const again = { name: 'totals', ...markets, or_replace: true }
    expect((await app.call('POST', '/views', again)).status).toBe(409)
    expect((await app.call('DELETE', '/views/of_totals')).status).toBe(200)
    const refused = await app.call('POST', '/views', again)
    expect(refused).toMatchObject({ status: 409, body: { details: { grantees: ['shop'] } } })
    expect((await app.call('DELETE', '/grants/g')).status).toBe(200)
    await createView(app, again)
    expect(listRows(await app.list('totals'))).toEqual([{ market: 'BTC' }, { market: 'ETH' }])
    expect(tenant.data.catalog.views.size).toBe(1)
  })

  test('a view stays where its replacement is deleted, or has stopped, just before the view would be', async () => {
    for (const isStopped of [false, true]) {
      const app = await createSeller(service())
      await createView(app, { name: 'totals', query: perMarket })
      const tenant = await loadTenant(app)
      const { old, next, finish } = await startReplacing(app)
      const run = vi.spyOn(tenant.definitions, 'run')
      const changing = tenant.definitions.run(async () => {
        // The second one is to delete the view.
        await expect.poll(() => run.mock.calls.length).toBe(2)
        const stale = { view: next.id, reason: 'it is too large' }
        if (isStopped) await markStale(service().database, tenant.schema, stale)
        else await define(tenant, [{ kind: 'view', id: next.id, body: undefined }])
      })
      await Promise.all([changing, finish()])
      const { views } = tenant.data.catalog
      expect([...views.keys()]).toEqual(isStopped ? [old.id, next.id] : [old.id])
      expect(listRows(await app.list('totals'))).toEqual(grouped)
    }
  })

  test('a view that is granted cannot be replaced, because the views of others are made of it', async () => {
    const [app, other] = [await createSeller(service()), await createSeller(service())]
    await createView(app, { name: 'totals', query: perMarket })
    const give = { grantee: other.appId, view: 'totals', per_access: '7' }
    const { body: grant } = await app.call('POST', '/grants', give)
    const from = `${app.appId}::totals`
    await createView(other, {
      ...{ name: 'theirs', source_collections: [from] },
      query: { select: ['market'], from },
    })
    const again = { name: 'totals', ...markets, or_replace: true }
    const refused = await app.call('POST', '/views', again)
    expect(refused).toMatchObject({
      status: 409,
      body: { code: 'CONFLICT', details: { grantees: [other.appId] } },
    })
    expect(await readState(other, 'theirs')).toMatchObject({ status: 'lazy' })
    expect((await app.call('POST', `/grants/${grant.id}/revoke`)).status).toBe(200)
    await createView(app, again)
    expect(await readState(other, 'theirs')).toMatchObject({ status: 'stale' })
    expect((await app.call('GET', '/grants')).body.grants).toEqual([])
  })

  test('a view that a predefined query names by its id cannot be replaced, and is deleted with the query', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    const { id = '' } = (await loadTenant(app)).data.catalog.viewsByName.get('totals') ?? {}
    const at = `"${app.appId}"::`
    for (const [name, source] of [
      ['by-id', id],
      ['by-name', 'totals'],
    ]) {
      const query = { name, sql: `SELECT market FROM ${at}${source}` }
      const made = await app.call('POST', '/queries', query)
      expect(made.status, made.text).toBe(201)
    }
    const again = { name: 'totals', ...markets, or_replace: true }
    expect(await app.call('POST', '/views', again)).toMatchObject({
      status: 409,
      body: { code: 'CONFLICT', details: { queries: ['by-id'] } },
    })
    expect(await app.call('DELETE', '/views/totals')).toMatchObject({
      status: 409,
      body: { details: { queries: ['by-id', 'by-name'] } },
    })
    expect((await app.call('DELETE', '/queries/by-id')).status).toBe(200)
    await createView(app, again)
  })

  test('a view whose source is gone is read by nobody, whatever its own level and price: what the source was made of may be granted no more', async () => {
    const [owner, app, third] = [
      await createSeller(service()),
      await createSeller(service()),
      await createSeller(service()),
    ]
    const from = `${owner.appId}::sales`
    const give = { grantee: app.appId, collection: 'sales', per_access: '100' }
    expect((await owner.call('POST', '/grants', give)).status).toBe(201)
    await createView(app, {
      ...{ name: 'totals', source_collections: [from] },
      query: { ...perMarket, from },
    })
    const { data } = await loadTenant(app)
    const { view: old } = requirePresent(data.catalog.viewsByName.get('totals'), 'the view')
    const access_policy = { read: 'public', price: { per_access: '1' } }
    const second = await defineOn(app, old, { access_policy })
    await createView(app, {
      ...{ name: 'last', source_collections: ['of_totals'], query: { select: ['market'] } },
      access_policy: { read: 'public' },
    })
    const granted = { grantee: third.appId, view: 'of_totals', per_access: '1' }
    expect((await app.call('POST', '/grants', granted)).status).toBe(201)
    const theirs = `${app.appId}::of_totals`
    await createView(third, {
      ...{ name: 'theirs', source_collections: [theirs], public: true },
      query: { select: ['market'], from: theirs },
    })
    await service().running.service.viewBuilder.whenDone(app.appId, second.id)
    await define(await loadTenant(app), [{ kind: 'view', id: old.id, body: undefined }])
    for (const name of ['of_totals', 'last']) {
      expect(await app.list(name)).toMatchObject({ status: 403, body: { code: 'GRANT_NEEDED' } })
      const path = `/api/apps/${app.appId}/views/${name}/data`
      expect((await service().request('GET', path)).status).toBe(404)
      expect(await readState(app, name)).toMatchObject({ status: 'stale' })
    }
    expect(await third.list('theirs')).toMatchObject({
      status: 403,
      body: { code: 'GRANT_NEEDED' },
    })
    const path = `/api/apps/${third.appId}/views/theirs/data`
    expect(await service().request('GET', path)).toMatchObject({
      status: 403,
      body: { code: 'GRANT_NEEDED' },
    })
  })
})
