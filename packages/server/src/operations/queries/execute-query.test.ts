import { createData, type Data } from '@tollbase/testing/data'
import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { createDeclaredData, createQueryCalls } from '@tollbase/testing/queries'
import type { TestReply } from '@tollbase/testing/service'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { beforeAll, describe, expect, test } from 'vitest'

describe('executeQuery', () =>
  withService((service) => {
    let data: Data
    let root: string
    beforeAll(async () => {
      data = await createDeclaredData(service())
      root = `"${data.appId}"::c`
    })
    const define = (body: object) => data.call('POST', '/queries', body)
    const ask = (name: string, query = '') =>
      service().request('GET', `/api/queries/${data.appId}/${name}/data${query}`)
    const base = (more: object = {}) => ({ name: 'q', source_collection: 'c', ...more })
    test('a parameter that is no UTF-8 in percent-encoding is refused, and every other is taken', async () => {
      await define({
        name: 'encoded',
        sql: `SELECT id FROM ${root} WHERE g = :g OR :g = 'ä b'`,
        parameters: [{ name: 'g', required: true }],
      })
      for (const text of ['%ff', 'K%f6ln', '%', '%zz', '%C3', '%ED%A0%80']) {
        const { status, body } = await ask('encoded', `?g=${text}`)
        expect([status, body.code, body.details?.field]).toEqual([
          400,
          'VALIDATION_FAILED',
          '/query/g',
        ])
      }
      expect((await ask('encoded', '?g=x&%ff=1')).body.details).toMatchObject({ field: '/query' })
      expect((await ask('encoded', '?g=%C3%A4+b')).body.data).toHaveLength(3)
      expect((await ask('encoded', '?g=y')).body.data).toEqual([{ id: 'd' }])
    })

    test('groups of fewer records than `min_group_size` are left out, however often a join gives a record', async () => {
      await define({
        name: 'large',
        sql: `SELECT g, count(*) AS n FROM ${root} GROUP BY g ORDER BY g`,
        min_group_size: 2,
      })
      expect((await ask('large')).body.data).toEqual([{ g: 'x', n: 2 }])
      await define({
        name: 'joined',
        sql: `SELECT a.g, count(*) AS n FROM ${root} a CROSS JOIN ${root} b GROUP BY a.g ORDER BY g`,
        min_group_size: 2,
      })
      expect((await ask('joined')).body.data).toEqual([{ g: 'x', n: 6 }])
      await define(
        base({
          name: 'grouped',
          base_query: { group_by: 'g', aggregate: { n: { $count: '*' } } },
          min_group_size: 2,
        }),
      )
      expect((await ask('grouped')).body.data).toEqual([{ g: 'x', n: 2 }])
      await define({
        name: 'whole',
        sql: `SELECT sum(n) AS n FROM ${root} WHERE n >= :n`,
        min_group_size: 2,
        parameters: [{ name: 'n', type: 'number' }],
      })
      expect((await ask('whole', '?n=1')).body.data).toEqual([{ n: 6 }])
      expect((await ask('whole', '?n=3')).body.data).toEqual([])
    })

    test('now() is another time at each run', async () => {
      await define({ name: 'time', sql: `SELECT id, now() AS at FROM ${root} LIMIT 1` })
      const at = async () => Date.parse((await ask('time')).body.data[0].at)
      const first = await at()
      service().world.advance(3_600_000)
      expect((await at()) - first).toBeGreaterThanOrEqual(3_600_000)
    })
  }))

const cities = [
  { id: 'wien', name: 'Wien', country: 'AT', rating: 9, price: 120.5, tags: ['river', 'opera'] },
  { id: 'graz', name: 'Graz', country: 'AT', rating: 7, price: 80, tags: ['clock'] },
  { id: 'linz', name: 'Linz', country: 'AT', rating: 6, price: 60, tags: ['river'] },
  { id: 'bonn', name: 'Bonn', country: 'DE', rating: 5, price: 70, tags: ['river'] },
  { id: 'koeln', name: 'Köln, am Rhein', country: 'DE', rating: 8, price: 100, tags: [] },
]

describe('executeQuery of a public query', () =>
  withService(
    (service) => {
      let data: Data
      beforeAll(async () => {
        data = await createData(service())
        await data.create({ name: 'cities', access_policy: 'public' })
        await data.store('cities', cities)
      })
      const make = async (body: object) => {
        const reply = await data.call('POST', '/queries', body)
        expect(reply.status, reply.text).toBe(201)
        return reply
      }
      const ask = (name: string, query = '', headers = {}): Promise<TestReply> =>
        service().request('GET', `/api/queries/${data.appId}/${name}/data${query}`, { headers })
      const listIds = (reply: TestReply) => {
        expect(reply.status, reply.text).toBe(200)
        return reply.body.data.map((row: { id: string }) => row.id)
      }

      test('a query of the base form answers anybody by an equality, an operator and a page, as the public clients define it', async () => {
        await make({
          name: 'by-country',
          source_collection: 'cities',
          base_query: { find: {}, select: { id: true, name: true }, sort: ['-rating'] },
          parameters: [
            { name: 'country', field_path: 'country', required: true },
            { name: 'min_price', field_path: 'price.$gte', type: 'number', default: 0 },
            { name: 'limit', field_path: 'limit', default: 2 },
          ],
        })
        const reply = await ask('by-country', '?country=AT')
        expect(reply.body).toEqual({
          data: [
            { id: 'wien', name: 'Wien' },
            { id: 'graz', name: 'Graz' },
          ],
          count: 2,
          query: 'by-country',
          version: 1,
          as_of: { block_height: expect.any(Number), sequence: expect.any(Number) },
        })
        expect(listIds(await ask('by-country', '?country=AT&min_price=100'))).toEqual(['wien'])
        expect(listIds(await ask('by-country', '?country=AT&limit=9'))).toEqual([
          'wien',
          'graz',
          'linz',
        ])
        expect(listIds(await ask('by-country', '?country=AT&limit=1&offset=1'))).toEqual(['graz'])
      })

      test('a query of SQL binds its parameters as values, lists among them', async () => {
        await make({
          name: 'in-sql',
          sql: `SELECT c.country, count(*) AS n, max(c.rating) AS best FROM "${data.appId}"::cities c
                WHERE c.rating >= :least AND c.country IN (:countries) GROUP BY c.country ORDER BY country LIMIT :most`,
          parameters: [
            { name: 'least', type: 'integer', min: 0, max: 10 },
            { name: 'countries', type: 'list', items: 'enum', values: ['AT', 'DE'] },
            { name: 'most', type: 'integer', default: 10 },
          ],
        })
        expect((await ask('in-sql', '?least=6&countries=AT&countries=DE')).body.data).toEqual([
          { country: 'AT', n: 3, best: 9 },
          { country: 'DE', n: 1, best: 8 },
        ])
        expect((await ask('in-sql', '?least=6&countries=AT&countries=DE&most=1')).body.count).toBe(
          1,
        )
        expect(
          (await ask('in-sql', '?least=6&countries=AT&countries=DE&limit=1&offset=1')).body.data,
        ).toEqual([{ country: 'DE', n: 1, best: 8 }])
      })

      test.each([
        ['?country=AT&nothing=1', '/query/nothing'],
        ['', '/query/country'],
        ['?country=AT&country=DE', '/query/country'],
        ['?country=AT&min_price=cheap', '/query/min_price'],
        ['?country=', '/query/country'],
        ['?country=AT&limit=-1', '/query/limit'],
        ['?country[$gte]=A', '/query/country[$gte]'],
        ['?country=AT&min_price=NaN', '/query/min_price'],
        ['?country=AT&min_price=1e999', '/query/min_price'],
      ])('the parameters %j are refused with 400 that names %j', async (query, field) => {
        const reply = await ask('by-country', query)
        expect(reply).toMatchObject({ status: 400, body: { details: { field } } })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))

describe('executeQuery', () =>
  withService(
    (service) => {
      test("a caller past the query's rate gets 429 with Retry-After, each caller alone, and keys of the application never", async () => {
        const { ask, data, define } = await createQueryCalls(service())
        const other = await service().createApp()
        await define({
          name: 'slow',
          source_collection: 'open',
          rate_limit: { requests: 2, window_seconds: 600 },
        })
        for (const status of [200, 200, 429]) expect((await ask('slow')).status).toBe(status)
        const refused = await ask('slow')
        expect(refused.body).toMatchObject({ code: 'RATE_LIMITED', details: { limit: 'query' } })
        const wait = Number(refused.headers.get('retry-after'))
        expect(wait).toBeGreaterThan(200)
        expect(wait).toBeLessThanOrEqual(300)
        for (const status of [200, 200, 429])
          expect((await ask('slow', other.headers)).status).toBe(status)
        for (let count = 0; count < 5; count++)
          expect((await ask('slow', data.headers)).status).toBe(200)
        service().world.advance(wait * 1000)
        expect((await ask('slow')).status).toBe(200)
        expect((await ask('slow')).status).toBe(429)
      })

      test('neither new wallets nor more keys of one application get more than its rate', async () => {
        const { ask, data, define } = await createQueryCalls(service())
        const other = await createData(service())
        const rate_limit = { requests: 1, window_seconds: 600 }
        await define({ name: 'rare', source_collection: 'open', rate_limit })
        const { body: more } = await other.call('POST', '/keys', { name: 'more' })
        expect((await ask('rare', other.headers)).status).toBe(200)
        expect((await ask('rare', { 'x-app-key': more.key })).status).toBe(429)
        const path = `/api/queries/${data.appId}/rare/data`
        const send = () => askSigned(service(), makeTestWallet(), { method: 'GET', path })
        expect((await send()).status).toBe(200)
        expect((await send()).status).toBe(429)
      })

      test('each version has its own rate, which a new version leaves as it was', async () => {
        const { ask, data, define } = await createQueryCalls(service())
        const version = (requests: number) =>
          define({
            name: 'paced',
            source_collection: 'open',
            rate_limit: { requests, window_seconds: 600 },
          })
        await version(2)
        await version(1)
        for (const status of [200, 429]) expect((await ask('paced')).status).toBe(status)
        for (const status of [200, 200, 429])
          expect((await ask('paced', {}, '?version=1')).status).toBe(status)
        const described = await service().request(
          'GET',
          `/api/apps/${data.appId}/queries/paced?version=1`,
        )
        expect(described.body.rate_limit).toEqual({ requests: 2, window_seconds: 600 })
      })

      test('the answer has the format that the client accepts, and is JSON where the client names none', async () => {
        const { ask, define } = await createQueryCalls(service())
        await define({ name: 'formats', source_collection: 'open', base_query: { select: ['id'] } })
        const readType = async (accept: string, query = '') =>
          (await ask('formats', { accept }, query)).headers.get('content-type')?.split(';')[0]
        expect(await readType('*/*')).toBe('application/json')
        expect(await readType('text/html')).toBe('application/json')
        expect(await readType('text/csv')).toBe('text/csv')
        expect(await readType('application/json;q=0.5, text/csv')).toBe('text/csv')
        expect(await readType('application/x-ndjson, application/json;q=0.9')).toBe(
          'application/x-ndjson',
        )
        expect(await readType('text/csv', '?format=json')).toBe('application/json')
        expect((await ask('formats', {}, '?format=xml')).status).toBe(400)
      })

      test('CSV is read back by programs, and holds nothing that a spreadsheet runs', async () => {
        const { ask, define } = await createQueryCalls(service())
        await define({ name: 'whole', source_collection: 'open' })
        const { text } = await ask('whole', {}, '?format=csv')
        expect(text).toBe(
          [
            `id,secret,'=name,"two\nlines",big,list`,
            `a,xyzzy,'=1+2,"say ""so"", then\r\ngo",,`,
            'b,,,,12345678901234567000,"[1,""2""]"',
            '',
          ].join('\r\n'),
        )
        const lines = (await ask('whole', {}, '?format=ndjson')).text.split('\n')
        expect(lines).toHaveLength(3)
        expect(lines.slice(0, 2).map((line) => JSON.parse(line).id)).toEqual(['a', 'b'])
      })

      test('a query answers under every prefix of its path', async () => {
        const { data, define } = await createQueryCalls(service())
        await define({ name: 'paths', source_collection: 'open', base_query: { select: ['id'] } })
        const { appId } = data
        for (const path of [
          `/api/queries/${appId}/paths/data`,
          `/queries/${appId}/paths/data`,
          `/api/apps/${appId}/queries/paths/data`,
          `/apps/${appId}/queries/paths/data`,
        ])
          expect((await service().request('GET', path)).body.count, path).toBe(2)
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
