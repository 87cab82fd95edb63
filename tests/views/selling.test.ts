import { expect, test } from 'vitest'
import { ask, createFundedBuyer, list, quote } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { expectBalanced, readAccounts, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'
import { createView, grouped, listRows, perMarket, sales } from '../support/views.ts'

const computePlatformShare = (amount: bigint) => (amount * 2000n) / 10_000n
const readAmount = (required: TestReply) => BigInt(required.body.accepts[0].maxAmountRequired)

withService(
  (service) => {
    /** An application with sales under a policy. */
    async function seller(access_policy: object): Promise<Data> {
      const app = await createData(service())
      await app.create({ name: 'sales', access_policy })
      await app.store('sales', sales)
      return app
    }

    const data = (app: Data, query = '') => ({
      method: 'GET',
      path: `/api/apps/${app.appId}/views/totals/data${query}`,
    })

    test('a view that its owner has not priced costs what its sources do, and is sold once', async () => {
      const app = await seller({
        read: 'public',
        price: { per_access: '40', per_row: '100' },
        derive: { per_access: '70' },
      })
      const { view } = await createView(app, { name: 'totals', query: perMarket })
      expect(view.price).toEqual({ per_access: '70', per_row: '100', per_kb: '0' })
      const buyer = await createFundedBuyer(service())
      const asked = data(app, '?limit=3')
      const required = await quote(service(), asked)
      expect(readAmount(required)).toBe(370n)
      const payment = await buyer.payV2(required)
      const reply = await ask(service(), asked, payment)
      expect(listRows(reply)).toEqual(grouped)
      expect(await readEarnings(service(), app)).toBe(270n - computePlatformShare(270n))
      expect((await ask(service(), asked, payment)).text).toBe(reply.text)
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      expect(await readEarnings(service(), app)).toBe(270n - computePlatformShare(270n))
      await expectBalanced(service())
    })

    test('a price that its owner gives a view, or a rule for the view, counts in place of the prices of its sources', async () => {
      const app = await seller({ read: 'public', price: { per_row: '100' } })
      const price = { per_access: '5' }
      const { view } = await createView(app, { name: 'totals', query: perMarket, price })
      expect(view.price).toEqual({ per_access: '5', per_row: '0', per_kb: '0' })
      expect(view.access_policy).toEqual({ read: 'public', price })
      expect(readAmount(await quote(service(), data(app)))).toBe(5n)
      const quoted = async () => {
        const body = {
          app_id: app.appId,
          collection: 'totals',
          operation_type: 'read',
          size_kb: 0,
          rows: 2,
        }
        return (await service().request('POST', '/api/pricing/quote', { body })).body
      }
      expect((await quoted()).total_cost_atomic).toBe('5')
      const rules = [
        { target: { view: 'totals' }, operation: 'read', model: 'per_row', amount: '30' },
      ]
      const set = await app.call('PUT', '/pricing', { rules })
      expect(set.body.rules).toEqual(rules)
      expect((await quoted()).total_cost_atomic).toBe('65')
      expect(readAmount(await quote(service(), data(app, '?limit=2')))).toBe(65n)
      for (const target of [{ view: 'none' }, { view: 'sales' }])
        expect(
          await app.call('PUT', '/pricing', {
            rules: [{ target, operation: 'read', model: 'per_row', amount: '1' }],
          }),
        ).toMatchObject({ status: 404, body: { code: 'VIEW_NOT_FOUND' } })
    })

    test('joins, groups, counts and other verbs give nothing from a priced view', async () => {
      const app = await seller({ read: 'public', price: { per_row: '100' } })
      const price = { per_row: '100' }
      await createView(app, { name: 'totals', query: perMarket, refresh_mode: 'live', price })
      const root = `${app.appId}::totals`
      const open = (method: string, path: string, body?: object) =>
        service().request(method, path, body === undefined ? {} : { body })
      const refused = await Promise.all([
        open('POST', '/list', { root, aggregate: { n: { $count: '*' } } }),
        open('POST', '/query/sql', { sql: `SELECT count(*) AS n FROM "${app.appId}"::totals` }),
        open('POST', '/query/sql', {
          sql: `SELECT a.total FROM "${app.appId}"::totals a JOIN "${app.appId}"::totals b ON a.total = b.total`,
        }),
      ])
      for (const reply of refused)
        expect(reply).toMatchObject({ status: 403, body: { code: 'DERIVATION_DENIED' } })
      expect((await open('POST', '/list', { root, limit: 1 })).status).toBe(402)
      expect((await open('GET', data(app, '?limit=1').path)).status).toBe(402)
      const head = await service().request('HEAD', data(app, '?limit=1').path)
      expect(head.status).not.toBe(200)
      for (const path of ['preview', 'records/1', ''])
        expect(
          (await open('GET', `/api/apps/${app.appId}/collections/totals/${path}`)).status,
        ).toBe(404)
      expect((await open('GET', `/api/apps/${app.appId}/views/totals`)).status).toBe(401)
    })

    test('a source of another application needs its grant, charges every reader, and is paid exactly', async () => {
      const owner = await seller({ read: 'public', price: { per_row: '9' } })
      const app = await createData(service())
      const model = `${owner.appId}::sales`
      const body = { name: 'totals', source_collections: [model], query: perMarket }
      const price = { per_access: '11' }
      const without = await app.call('POST', '/views', { ...body, price })
      expect(without).toMatchObject({ status: 403, body: { code: 'GRANT_NEEDED' } })
      const bare = await owner.call('POST', '/grants', { grantee: app.appId, collection: 'sales' })
      expect(bare).toMatchObject({ status: 400, body: { details: { field: '/per_access' } } })
      const grant = await owner.call('POST', '/grants', {
        grantee: app.appId,
        collection: 'sales',
        per_access: '77',
      })
      expect(grant.status, grant.text).toBe(201)
      const live = await app.call('POST', '/views', { ...body, refresh_mode: 'live' })
      expect(live).toMatchObject({ status: 400, body: { details: { field: '/refresh_mode' } } })
      await createView(app, { ...body, price })
      const buyer = await createFundedBuyer(service())
      const before = await readAccounts(service())
      const asked = list({ root: `${app.appId}::totals` })
      expect(readAmount(await quote(service(), asked))).toBe(88n)
      expect(listRows(await buyer.buy(service(), asked))).toEqual(grouped)
      expect(await readEarnings(service(), app)).toBe(11n - computePlatformShare(11n))
      expect(await readEarnings(service(), owner)).toBe(77n - computePlatformShare(77n))
      const after = await readAccounts(service())
      expect((after.get('platform') ?? 0n) - (before.get('platform') ?? 0n)).toBe(
        computePlatformShare(11n) + computePlatformShare(77n),
      )
      // The view's own application pays for the source too; the source's application pays for the view alone.
      const own = await quote(service(), { ...asked, headers: app.headers })
      expect(readAmount(own)).toBe(77n)
      const his = await quote(service(), { ...asked, headers: owner.headers })
      expect(readAmount(his)).toBe(11n)
      await expectBalanced(service())

      const revoked = await owner.call('POST', `/grants/${grant.body.id}/revoke`, {})
      expect(revoked.status).toBe(200)
      for (const reply of [
        await app.list('totals'),
        await ask(service(), asked),
        await service().request('GET', data(app).path),
        await app.call('POST', '/views/totals/refresh', {}),
      ])
        expect(reply).toMatchObject({ status: 403, body: { code: 'GRANT_NEEDED' } })
      const { body: stale } = await app.call('GET', '/views/totals')
      expect(stale).toMatchObject({
        status: 'stale',
        refresh_metadata: { total_source_records: 0, total_view_records: 0 },
      })
    })

    test('a view neither reads nor refreshes what an owner no longer offers or no longer lets others derive from, and names that as the reason', async () => {
      const owner = await seller({ read: 'public' })
      await createView(owner, { name: 'ready', query: perMarket })
      const app = await createData(service())
      for (const source of [{ collection: 'sales' }, { view: 'ready' }])
        await owner.call('POST', '/grants', { grantee: app.appId, ...source })
      const views = {
        totals: ['sales', perMarket],
        again: ['ready', { select: ['total'] }],
      } as const
      for (const [name, [source, query]] of Object.entries(views))
        await createView(app, { name, query, source_collections: [`${owner.appId}::${source}`] })
      await createView(app, {
        name: 'outer',
        source_collections: ['totals'],
        query: { select: ['*'] },
      })
      const narrowed = { read: 'public', offered: { select: ['id', 'market'] } }
      const settings = { access_policy: narrowed }
      expect((await owner.call('PUT', '/collections/sales', settings)).status).toBe(200)
      for (const reply of [
        await app.list('totals'),
        await app.list('outer'),
        await app.listOpenly('outer'),
        await app.call('GET', '/views/totals/data'),
        await app.call('POST', '/views/totals/refresh', {}),
        await app.call('POST', '/views/outer/refresh', {}),
      ])
        expect(reply).toMatchObject({ status: 403, body: { code: 'FIELD_NOT_OFFERED' } })
      const shown = async (name: string) => (await app.call('GET', `/views/${name}`)).body
      for (const name of ['totals', 'outer'])
        expect(await shown(name)).toMatchObject({
          status: 'stale',
          stale_reason: `the owner of ${owner.appId}::sales does not offer amount to select by (any more)`,
          refresh_metadata: { total_source_records: 0, total_view_records: 0 },
        })
      // The owner's own view of it is his to give.
      expect((await app.list('again')).body.records).toEqual([{ total: 3 }, { total: 7 }])
      const wide = { read: 'public' }
      await owner.call('PUT', '/collections/sales', { access_policy: wide })
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      const undoing = { access_policy: { ...wide, derive: 'deny' } }
      await owner.call('PUT', '/collections/sales', undoing)
      expect((await app.list('totals')).body.code).toBe('GRANT_NEEDED')
      expect(await shown('totals')).toMatchObject({ status: 'stale' })
      expect((await app.call('POST', '/views/totals/refresh', {})).body.code).toBe('GRANT_NEEDED')
    })

    test('a view uses only what another application offers, also where the source is a view', async () => {
      const owner = await seller({ read: 'public' })
      const access_policy = { read: 'public', offered: { select: ['market'], filter: ['market'] } }
      await createView(owner, { name: 'ready', query: perMarket, access_policy })
      const app = await createData(service())
      await owner.call('POST', '/grants', { grantee: app.appId, view: 'ready' })
      const source_collections = [`${owner.appId}::ready`]
      const hidden = { status: 403, body: { code: 'FIELD_NOT_OFFERED' } }
      const where = { $gt: ['total', 5] }
      for (const query of [{ select: ['total'] }, { select: ['*'] }, { select: ['market'], where }])
        expect(
          await app.call('POST', '/views', { name: 'totals', query, source_collections }),
        ).toMatchObject(hidden)
      const query = { select: ['market'] }
      await createView(app, { name: 'totals', query, source_collections })
      expect((await app.list('totals')).body.records).toHaveLength(2)
    })

    test("a view over another application's source is refreshed to where its chain is", async () => {
      const owner = await seller({ read: 'public' })
      const app = await createData(service())
      await owner.call('POST', '/grants', { grantee: app.appId, collection: 'sales' })
      const body = { name: 'totals', source_collections: [`${owner.appId}::sales`] }
      await createView(app, { ...body, query: perMarket })
      await owner.store('sales', [{ id: 's8', market: 'SOL', amount: 2 }])
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      expect((await app.call('POST', '/views/totals/refresh', {})).status).toBe(200)
      const sol = { market: 'SOL', total: 2, trades: 1 }
      expect(listRows(await app.list('totals'))).toEqual([...grouped, sol])
      expect((await owner.call('DELETE', '/collections/sales')).status).toBe(200)
      expect((await app.list('totals')).body.code).toBe('GRANT_NEEDED')
    })
  },
  { devnet: true },
)
