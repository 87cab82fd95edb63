import { describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const perRow = (collection: string, amount = '1000') => ({
  target: { collection },
  operation: 'read',
  model: 'per_row',
  amount,
})
const setPrices = async (app: Data, rules: readonly object[]) => {
  const { status, text } = await app.call('PUT', '/pricing', { rules })
  expect(status, text).toBe(200)
}

/** Every way by which a stranger could reach a collection `prices`. */
async function strangersWays(service: TestService, app: Data): Promise<Record<string, number>> {
  const at = `/api/apps/${app.appId}`
  const root = `${app.appId}::prices`
  const get = async (path: string) => (await service.request('GET', path)).status
  const post = async (path: string, body: object) =>
    (await service.request('POST', path, { body })).status
  return {
    list: await post('/list', { root, limit: 1 }),
    sql: await post('/query/sql', { sql: `SELECT id FROM "${app.appId}"::prices LIMIT 1` }),
    record: await get(`${at}/collections/prices/records/1`),
    description: await get(`${at}/collections/prices`),
    preview: await get(`${at}/collections/prices/preview`),
    quote: await post('/api/pricing/quote', {
      app_id: app.appId,
      collection: 'prices',
      operation_type: 'read',
      size_kb: 1,
    }),
  }
}

const all = (status: number) => ({
  list: status,
  sql: status,
  record: status,
  description: status,
  preview: status,
  quote: status,
})
const sold = { ...all(200), list: 402, sql: 402, record: 402 }

describe('collections whose access nobody has declared', () =>
  withService(
    (service) => {
      test.each<[string, (app: Data) => Promise<unknown>]>([
        ['a first store', (app) => app.store('prices', [])],
        [
          'a first index',
          (app) => app.call('POST', '/indexes', { collection: 'prices', field: 'n' }),
        ],
        [
          'a relation',
          (app) =>
            app.call('POST', '/relations', {
              parent_collection: 'prices',
              parent_field: 'id',
              child_collection: 'others',
              child_field: 'price',
            }),
        ],
        [
          'a batch',
          (app) =>
            app.call('POST', '/batch', {
              operations: [{ operation: 'create', collection: 'prices', data: { id: '0' } }],
            }),
        ],
        ['no policy', (app) => app.create({ name: 'prices' })],
        ['null', (app) => app.create({ name: 'prices', access_policy: null })],
        ['a policy without read', (app) => app.create({ name: 'prices', access_policy: {} })],
        [
          'a price of nothing',
          (app) => app.create({ name: 'prices', access_policy: { price: { per_row: '0' } } }),
        ],
      ])(
        'a collection that %s made is for its own keys, and a price opens it to buyers',
        async (_, make) => {
          const app = await createData(service())
          await make(app)
          await app.store('prices', [{ id: '1', item: 'tea', n: 1 }])
          expect(await strangersWays(service(), app)).toEqual(all(401))
          const shown = () => service().request('GET', `/api/apps/${app.appId}/collections`)
          expect((await shown()).body).toEqual([])
          expect((await app.list('prices', { find: { id: '1' } })).body.records).toHaveLength(1)
          await setPrices(app, [perRow('prices')])
          expect(await strangersWays(service(), app)).toEqual(sold)
          expect((await shown()).body).toHaveLength(1)
          // Without its price the collection is closed, not free.
          await setPrices(app, [])
          expect(await strangersWays(service(), app)).toEqual(all(401))
          await app.call('PUT', '/collections/prices', { access_policy: 'public' })
          expect(await strangersWays(service(), app)).toEqual(all(200))
        },
      )

      test('an undeclared collection stays closed after a restart', async () => {
        const app = await createData(service())
        await app.store('prices', [{ id: '1' }])
        await service().restart()
        expect(await strangersWays(service(), app)).toEqual(all(401))
      })

      test('no other application reads an undeclared collection, by SQL, a join or a view', async () => {
        const app = await createData(service())
        await app.store('prices', [{ id: '1', item: 'tea' }])
        const other = await createData(service())
        await other.store('own', [{ id: '1' }])
        const foreign = `"${app.appId}"::prices`
        const own = `"${other.appId}"::own`
        for (const sql of [
          `SELECT * FROM ${foreign}`,
          `SELECT o.id FROM ${own} o JOIN ${foreign} p ON p.id = o.id`,
          `SELECT id FROM ${own} WHERE id IN (SELECT id FROM ${foreign})`,
        ]) {
          const body = { sql }
          const reply = await service().request('POST', '/query/sql', {
            body,
            headers: other.headers,
          })
          expect(reply.status, sql).toBe(401)
        }
        const made = await other.call('POST', '/queries', {
          name: 'q',
          sql: `SELECT id FROM ${foreign}`,
        })
        expect(made.status).toBe(401)
      })

      test('the price of an undeclared collection opens its views and queries, and their own prices open none', async () => {
        const app = await createData(service())
        await app.store('prices', [{ id: '1', item: 'tea' }])
        const query = { select: ['item'] }
        const view = { source_collections: ['prices'], query }
        const made = await app.call('POST', '/views', { name: 'items', ...view })
        expect(made.body.view).toMatchObject({ access_policy: { read: 'key' } })
        const priced = { ...view, price: { per_access: '5' } }
        const costly = await app.call('POST', '/views', { name: 'dear', ...priced })
        expect(costly.body.view._warning).toContain('public')
        const asked = { source_collection: 'prices', base_query: query }
        const names = ['list', 'paid'] as const
        await app.call('POST', '/queries', { name: 'list', ...asked })
        await app.call('POST', '/queries', { name: 'paid', ...asked, price: { per_access: '5' } })
        const at = `/api/apps/${app.appId}`
        const readStatuses = async () => {
          const paths = [
            ...['items', 'dear'].map((name) => `${at}/views/${name}/data?limit=1`),
            ...names.map((name) => `/api/queries/${app.appId}/${name}/data?limit=1`),
          ]
          return Promise.all(
            paths.map(async (path) => (await service().request('GET', path)).status),
          )
        }
        expect(await readStatuses()).toEqual([401, 401, 401, 401])
        await setPrices(app, [perRow('prices')])
        expect(await readStatuses()).toEqual([402, 402, 402, 402])
        await setPrices(app, [])
        expect(await readStatuses()).toEqual([401, 401, 401, 401])
      })

      test('a query or view that says public publishes an undeclared collection, private data excepted', async () => {
        const app = await createData(service())
        await app.store('prices', [{ id: '1', item: 'tea' }])
        await app.create({ name: 'keyed', access_policy: 'key' })
        await app.create({ name: 'secret', access_policy: 'private' })
        const query = { select: ['item'] }
        for (const source of ['prices', 'keyed']) {
          const name = `of-${source}`
          const view = { name, source_collections: [source], query, public: true }
          const made = await app.call('POST', '/views', view)
          expect(made.body.view?.access_policy, made.text).toBe('public')
          const path = `/api/apps/${app.appId}/views/${name}/data`
          expect((await service().request('GET', path)).status).toBe(200)
          await app.call('POST', '/queries', { name, source_collection: source, public: true })
          const asked = `/api/queries/${app.appId}/${name}/data`
          expect((await service().request('GET', asked)).status).toBe(200)
          // A collection that becomes private takes back what was published.
          await app.call('PUT', `/collections/${source}`, { access_policy: 'private' })
          expect((await service().request('GET', path)).status).toBe(404)
          expect((await service().request('GET', asked)).status).toBe(401)
        }
        const view = { name: 'v', source_collections: ['secret'], query }
        for (const said of [{ public: true }, { access_policy: 'public' }]) {
          const refused = await app.call('POST', '/views', { ...view, ...said })
          expect(refused).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } })
        }
        const asked = { name: 'q', source_collection: 'secret', public: true }
        const refused = await app.call('POST', '/queries', asked)
        expect(refused.status).toBe(400)
        expect(refused.body.error).toContain('/public')
        const twice = { ...view, public: true, access_policy: { read: 'key' } }
        expect((await app.call('POST', '/views', twice)).body.error).toContain('/public')
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
