import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

const cities = [
  { id: 'wien', name: 'Wien', country: 'AT', rating: 9, price: 120.5, tags: ['river', 'opera'] },
  { id: 'graz', name: 'Graz', country: 'AT', rating: 7, price: 80, tags: ['clock'] },
  { id: 'linz', name: 'Linz', country: 'AT', rating: 6, price: 60, tags: ['river'] },
  { id: 'bonn', name: 'Bonn', country: 'DE', rating: 5, price: 70, tags: ['river'] },
  { id: 'koeln', name: 'Köln, am Rhein', country: 'DE', rating: 8, price: 100, tags: [] },
]

describe('a predefined query', () =>
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

      test('of the base form answers anybody, by an equality, an operator and a page, as the public clients define it', async () => {
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

      test('of SQL binds its parameters as values, times and lists among them', async () => {
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
      ])('refuses %s with 400 that names it', async (query, field) => {
        const reply = await ask('by-country', query)
        expect(reply).toMatchObject({ status: 400, body: { details: { field } } })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
