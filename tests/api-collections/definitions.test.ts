import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import { startUpstream, type TestUpstream } from './upstream.ts'

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())
/** The one host that the operator allows here. */
const url = () => `http://localhost:${upstream.port}`

/** Hosts that are not public, in every form that a URL can have. */
const inside = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0177.0.0.1/',
  'http://0/',
  'http://１２７.0.0.1/',
  'http://10.0.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://168.63.129.16/',
  'http://172.16.0.1/',
  'http://192.168.0.1/',
  'http://192.0.2.1/',
  'http://198.18.0.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://[::]/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:8.8.8.8]/',
  'http://[::127.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[64:ff9b:1::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2001:0:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[2001:db8::1]/',
  'http://[4000::1]/',
]

const malformed = [
  ['ftp://api.example.com/', 'http or https'],
  ['file:///etc/passwd', 'http or https'],
  ['gopher://api.example.com/', 'http or https'],
  ['//api.example.com/', 'must be a URL'],
  ['https://user:word@api.example.com/', 'no user'],
  ['https://@api.example.com/', 'no user'],
  ['https:me:hush@api.example.com/', 'no user'],
  ['https:/me:hush@api.example.com/', 'no user'],
  ['https://api.example.com\\@127.0.0.1/', 'backslashes'],
  ['https://api.example.com/a b', 'spaces'],
  ['https://api.example.com/\u0000', 'U+0000'],
  ['https://api.example.com/\r\nHost: x', 'control characters'],
  ['https://api.example.com/#a', 'fragment'],
  ['https://api.example.com/?q={city}', 'path alone'],
  ['https://api.example.com/{nothing}', 'none of the parameters'],
  ['https://api.example.com:25/', 'ports'],
  ['https://api.example.com:6379/', 'ports'],
  ['https://{city}.example.com/', ''],
] as const

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

      test('a URL into the own network is refused in every form, and so is all that is not a plain URL of HTTP', async () => {
        for (const one of inside) {
          const { status, body } = await define({ parameters: [] }, one)
          expect([status, body.details?.field], one).toEqual([400, '/upstream/url'])
          expect(body.error, one).toContain('public internet')
        }
        for (const [one, problem] of malformed) {
          const { status, body } = await define({ parameters: [{ name: 'city' }] }, one)
          expect(status, one).toBe(400)
          expect(body.error, one).toContain(problem)
        }
        expect((await seller.call('GET', '/collections')).body).toEqual([])
      })

      test('what is wrong with a parameter or a header is named by pointer', async () => {
        const p = (more: object, first: object = {}) => ({
          parameters: [
            { name: 'city', ...first },
            { name: 'n', ...more },
          ],
        })
        const refused: readonly (readonly [object, string])[] = [
          [p({ in: 'path' }), '/parameters/1/in'],
          [p({ in: 'body' }), '/parameters/1/in'],
          [p({ in: 'header' }), '/parameters/1/in'],
          [p({ field_path: 'n' }), '/parameters/1/field_path'],
          [p({ name: 'max_kb' }), '/parameters/1/name'],
          [p({ name: 'city' }), '/parameters/1'],
          [p({ as: 'units' }), '/parameters/1'],
          [p({}, { in: 'query' }), '/parameters/0/in'],
          [p({}, { as: 'x' }), '/parameters/0/as'],
          [p({}, { type: 'list', items: 'string' }), '/parameters/0/type'],
          [p({}, { required: false }), '/parameters/0/required'],
          [p({}, { default: '..' }), '/query/city'],
          [p({ default: '\ud800' }), ''],
          [{ cache_seconds: limits.upstreamCacheSecondsMax + 1 }, '/cache_seconds'],
          [{ price: { per_access: '1000000000000001' } }, '/price/per_access'],
          [{ price: { per_call: '1' } }, '/price/per_call'],
        ]
        const metric = `${url()}/a/{city}?units=metric`
        for (const [more, pointer] of refused) {
          const { status, body } = await define(more, metric)
          expect([status, body.details?.field], JSON.stringify(more)).toEqual([400, pointer])
        }
        const headers: readonly (readonly [Record<string, string>, string])[] = [
          [{ Host: 'localhost' }, '/Host'],
          [{ 'Transfer-Encoding': 'chunked' }, '/Transfer-Encoding'],
          [{ 'a b': 'x' }, '/a b'],
          [{ 'x-a': 'a\r\nhost: b' }, '/x-a'],
          [{ 'x-a': 'ä' }, '/x-a'],
          [{ 'x-a': '1', 'X-A': '2' }, '/X-A'],
          [Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`x-${at}`, 'v'])), ''],
        ]
        for (const [sent, pointer] of headers) {
          const { status, body } = await define({ upstream: { url: metric, headers: sent } })
          expect([status, body.details?.field], JSON.stringify(sent)).toEqual([
            400,
            `/upstream/headers${pointer}`,
          ])
        }
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

      test('parameters are typed, each is encoded for its place, and none can lead elsewhere', async () => {
        await define({
          upstream: { url: `${url()}/a/{city}?units=metric`, method: 'POST' },
          parameters: [
            { name: 'city', maxLength: 60 },
            { name: 'q', as: 'filter[q]', required: false },
            { name: 'tags', type: 'list', items: 'string', required: false },
            { name: 'n', type: 'integer', in: 'body', as: '__proto__', default: 5 },
            { name: 'on', type: 'boolean', in: 'body', required: false },
          ],
        })
        const ask = (query: string) => seller.call('GET', `/api-collections/weather/data?${query}`)
        const last = () => upstream.got.at(-1)
        const hostile = '?a=b&c#d;e%2f@evil.example:80 \u00e4+'
        const text = encodeURIComponent(hostile)
        expect((await ask(`city=${text}&q=${text}&tags=a%26b&tags=c&on=true`)).status).toBe(200)
        const asked = new URL(last()?.url ?? '', url())
        expect(last()?.url?.startsWith(`/a/${text}?units=metric&`)).toBe(true)
        expect([...asked.searchParams]).toEqual([
          ['units', 'metric'],
          ['filter[q]', hostile],
          ['tags', 'a&b'],
          ['tags', 'c'],
        ])
        expect(last()?.body).toBe('{"__proto__":5,"on":true}')
        expect(last()?.headers['content-type']).toBe('application/json')
        for (const city of [
          '..',
          '.',
          '...',
          'a/b',
          '/',
          'a\\b',
          '%00',
          'a%0d%0ab',
          '%2e%2e',
          '..%2fadmin',
        ]) {
          const encoded = city.includes('%') ? city : encodeURIComponent(city)
          const { status, body } = await ask(`city=${encoded}`)
          expect([status, body.details?.field], city).toEqual([400, '/query/city'])
        }
        const wrong: readonly (readonly [string, string])[] = [
          ['', '/query/city'],
          ['city=', '/query/city'],
          ['city=a&n=x', '/query/n'],
          ['city=a&n=1&n=2', '/query/n'],
          ['city=a&units=imperial', '/query/units'],
          ['city=a&limit=1', '/query/limit'],
          ['city=a&max_kb=0', '/query/max_kb'],
        ]
        for (const [query, field] of wrong) {
          const { status, body } = await ask(query)
          expect([status, body.details?.field], query).toEqual([400, field])
        }
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

      test('a collection of type api that has no upstream yet says so, and gets one by PUT', async () => {
        await seller.create({ name: 'empty', collection_type: 'api' })
        const path = '/api-collections/empty'
        expect((await seller.call('GET', `${path}/data`)).body.code).toBe('CONFLICT')
        const put = await seller.call('PUT', path, { upstream: { url: url() } })
        expect(put.status, put.text).toBe(200)
        expect((await seller.call('GET', `${path}/data`)).status).toBe(200)
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
