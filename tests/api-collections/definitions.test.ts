import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import { startUpstream, type TestUpstream } from '../support/upstream.ts'

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())
/** The one host that the operator allows here. */
const url = () => `http://localhost:${upstream.port}`

describe('the definition of an API collection', () =>
  withService(
    (service) => {
      let seller: Data
      beforeEach(async () => {
        seller = await createData(service())
      })
      const define = (more: object, to = `${url()}/a/{city}`) =>
        seller.call('POST', '/api-collections', {
          name: 'weather',
          upstream: { url: to, headers: { Authorization: 'Bearer hush-hush' } },
          parameters: [{ name: 'city' }, { name: 'n', type: 'integer' }],
          ...more,
        })

      test('values of headers are kept encrypted, never shown, and bound to their place; the names are for keys of the application', async () => {
        const made = await define({ read: 'public', description: 'Weather' })
        expect(made.status, made.text).toBe(201)
        expect(made.body.upstream).toEqual({
          url: `${url()}/a/{city}`,
          method: 'GET',
          headers: ['authorization'],
        })
        const { collection_id: id } = made.body
        const open = `/api/apps/${seller.appId}/api-collections/weather`
        const shown = [
          made,
          await seller.call('GET', '/api-collections/weather'),
          await seller.call('GET', '/collections'),
          await seller.call('GET', '/collections/weather'),
          await service().request('GET', open),
        ]
        for (const { text } of shown) expect(text).not.toContain('hush')
        expect(shown[4]?.body).not.toHaveProperty('upstream')
        expect(shown[4]?.body.parameters).toHaveLength(2)
        expect(shown[3]?.body).toMatchObject({ collection_type: 'api', collection_id: id })
        const { chain } = await service().running.service.tenants.load(seller.appId)
        const entries: string[] = []
        for (let height = 1; height <= chain.head().height; height++)
          entries.push(JSON.stringify((await chain.readBlock(height))?.entries))
        expect(entries.join()).toContain('authorization')
        expect(entries.join()).not.toContain('hush')
        const before = upstream.got.length
        expect((await seller.call('GET', '/api-collections/weather/data?city=a&n=1')).status).toBe(
          200,
        )
        expect(upstream.got[before]?.headers.authorization).toBe('Bearer hush-hush')
        // A header that somebody moves to another collection, by hand, opens nowhere.
        await define({ name: 'other' })
        const { number } = (await service().running.service.tenants.load(seller.appId)).application
        const [row] = await service().database.query<{ body: string }>(
          sql`SELECT body FROM ${sql.id(`app_${number}`, 'definition')} WHERE id = ${id}`,
        )
        const sealed = JSON.parse(row?.body ?? '').api.headers.authorization
        await service().database.execute(
          sql`UPDATE ${sql.id(`app_${number}`, 'definition')} SET body = jsonb_set(body::jsonb, '{api,headers,authorization}', ${JSON.stringify(sealed)}::jsonb)::text WHERE kind = 'collection'`,
        )
        await service().restart()
        expect((await seller.call('GET', '/api-collections/weather/data?city=a&n=1')).status).toBe(
          200,
        )
        const got = upstream.got.length
        expect((await seller.call('GET', '/api-collections/other/data?city=a&n=1')).status).toBe(
          502,
        )
        expect(upstream.got).toHaveLength(got)
      })

      test('an API collection is asked by its data alone: lists, SQL, queries, views and writes say so', async () => {
        expect((await define({ read: 'public' })).status).toBe(201)
        await seller.create({ name: 'plain' })
        const root = `${seller.appId}::weather`
        const from = `SELECT * FROM "${seller.appId}"::weather`
        const replies = [
          await seller.list('weather'),
          await seller.listOpenly('weather'),
          await service().request('POST', '/query/sql', {
            body: { sql: from },
            headers: seller.headers,
          }),
          await seller.call('POST', '/queries', { name: 'q', source_collection: 'weather' }),
          await seller.call('POST', '/views', {
            name: 'v',
            source_collections: ['weather'],
            query: { select: ['id'] },
          }),
          await seller.record('weather', 'a'),
          await seller.call('POST', '/collections/weather/explain', { query: {} }),
        ]
        for (const [at, { status, body }] of replies.entries())
          expect([status, body.code], `${at}: ${body.error}`).toEqual([409, 'API_COLLECTION'])
        expect(replies[0]?.body.error).toContain('/api-collections/weather/data')
        expect((await seller.store('weather', [{ id: 'a' }])).status).toBe(409)
        for (const part of ['stats', 'preview', 'indexes']) {
          const { status, text } = await seller.call('GET', `/collections/weather/${part}`)
          expect(status, `${part}: ${text}`).toBe(200)
        }
        const plain = await seller.call('GET', '/api-collections/plain')
        expect([plain.status, plain.body.code]).toEqual([404, 'COLLECTION_NOT_FOUND'])
        for (const [name, type] of [
          ['weather', 'document'],
          ['plain', 'api'],
        ]) {
          const put = await seller.call('PUT', `/collections/${name}`, { collection_type: type })
          expect([put.status, put.body.details?.field]).toEqual([400, '/collection_type'])
        }
        expect((await define({})).body.code).toBe('COLLECTION_EXISTS')
        expect(root).toContain('weather')
        const gone = await seller.call('DELETE', '/collections/weather')
        expect(gone.status).toBe(200)
        expect((await seller.call('GET', '/api-collections/weather/data')).status).toBe(404)
      })

      test('rules set its price under its own kind of target, and giving it away has to be confirmed', async () => {
        await define({ price: { per_access: '5' }, read: 'public' })
        const target = { api_collection: 'weather' }
        const rule = { target, operation: 'read', model: 'per_access', amount: '70' }
        const put = await seller.call('PUT', '/pricing', { rules: [rule] })
        expect(put.status, put.text).toBe(200)
        expect(put.body.rules).toEqual([rule])
        const path = `/api/apps/${seller.appId}/api-collections/weather`
        expect((await service().request('GET', path)).body.price.per_access).toBe('70')
        const quoted = await service().request('GET', `${path}/data?city=a&n=1`)
        expect([quoted.status, quoted.body.accepts?.[0]?.maxAmountRequired]).toEqual([402, '70'])
        const open = await service().request('GET', `/api/apps/${seller.appId}/pricing`)
        expect(open.body.rules).toEqual([rule])
        const free = { rules: [{ ...rule, amount: '0' }] }
        const refused = await seller.call('PUT', '/pricing', free)
        expect(refused.body).toMatchObject({
          code: 'PRICE_REMOVED',
          details: { confirm_free: [target] },
        })
        const confirmed = await seller.call('PUT', '/pricing', { ...free, confirm_free: [target] })
        expect(confirmed.status).toBe(200)
        const write = await seller.call('PUT', '/pricing', {
          rules: [{ ...rule, operation: 'write' }],
        })
        expect(write.status).toBe(400)
        const unknown = { ...rule, target: { api_collection: 'nothing' } }
        expect((await seller.call('PUT', '/pricing', { rules: [unknown] })).status).toBe(404)
      })
    },
    {
      config: {
        networks: [idleNetwork],
        allowedUpstreams: [{ host: 'localhost', port: undefined }],
      },
    },
  ))
