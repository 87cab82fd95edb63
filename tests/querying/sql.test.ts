import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

const cities = [
  { id: 'a', name: 'Wien', people: 2_000_000, country: 'AT' },
  { id: 'b', name: 'Graz', people: 300_000, country: 'AT' },
  { id: 'c', name: 'Bern', people: 130_000, country: 'CH' },
]
const countries = [
  { id: 'AT', name: 'Austria' },
  { id: 'CH', name: 'Switzerland' },
]

describePerEngine('SQL over HTTP', (service) => {
  let data: Data
  beforeAll(async () => {
    data = await createData(service())
    await data.create({ name: 'big-cities' })
    await data.create({
      name: 'days',
      schema_definition: { fields: { at: { type: 'date' }, n: { type: 'number' } } },
    })
    await data.store('cities', cities)
    await data.store('countries', countries)
    await data.store('big-cities', [{ id: 'x', 'Mixed Case': 1 }])
    await data.store('days', [
      { id: '1', at: '2024-05-01T10:00:00Z', n: 1 },
      { id: '2', at: '2024-06-01', n: 2 },
    ])
  })

  const ask = (sql: string, more: object = {}) =>
    service().request('POST', '/query/sql', { body: { sql, ...more }, headers: data.headers })

  test('SQL answers data, count, the statement, application, collection and the position that was read', async () => {
    const sql = `SELECT name, people FROM "${data.appId}"::cities WHERE people > 200000 ORDER BY people LIMIT 5`
    const { status, body } = await ask(sql)
    expect(status).toBe(200)
    expect(body).toEqual({
      data: [
        { name: 'Graz', people: 300_000 },
        { name: 'Wien', people: 2_000_000 },
      ],
      count: 2,
      query: sql,
      app_id: data.appId,
      collection: 'cities',
      as_of: { block_height: expect.any(Number), sequence: expect.any(Number) },
    })
  })

  test('SQL gives whole records as they were stored, digits included', async () => {
    await data.storeText('digits', '{"id":"a","n":1.50,"big":123456789012345678901234567890}')
    const { text } = await ask(`SELECT * FROM "${data.appId}"::digits`)
    expect(text).toContain('{"id":"a","n":1.50,"big":123456789012345678901234567890}')
  })

  test('SQL joins, groups and nests queries over own collections, and takes names with - in double quotes', async () => {
    const app = data.appId
    const joined = await ask(
      `SELECT k.name AS country, count(*) AS n, sum(c.people) AS people
       FROM "${app}"::countries k JOIN "${app}"::cities c ON c.country = k.id
       GROUP BY k.name ORDER BY people DESC`,
    )
    expect(joined.body).toMatchObject({
      data: [
        { country: 'Austria', n: 2, people: 2_300_000 },
        { country: 'Switzerland', n: 1, people: 130_000 },
      ],
      collection: 'countries',
    })
    const inner = await ask(
      `SELECT name FROM "${app}"::countries WHERE id IN (SELECT country FROM "${app}"::cities WHERE people < 200000)`,
    )
    expect(inner.body.data).toEqual([{ name: 'Switzerland' }])
    const quoted = await ask(`SELECT * FROM "${app}"::"big-cities"`)
    expect(quoted.body.data).toEqual([{ id: 'x', 'Mixed Case': 1 }])
  })

  test('a parameter is a value: a list for $1, an object for :name', async () => {
    const evil = "' OR 1=1 --"
    const from = `SELECT id FROM "${data.appId}"::cities WHERE name`
    expect((await ask(`${from} = $1`, { params: ['Bern'] })).body.data).toEqual([{ id: 'c' }])
    expect((await ask(`${from} = :city`, { params: { city: 'Graz' } })).body.data).toEqual([
      { id: 'b' },
    ])
    expect((await ask(`${from} = $1`, { params: [evil] })).body).toMatchObject({ count: 0 })
  })

  test('a field has the type that the schema declares', async () => {
    const from = `FROM "${data.appId}"::days`
    const { body } = await ask(`SELECT id ${from} WHERE at > '2024-05-01' AND at < '2024-05-02'`)
    expect(body.data).toEqual([{ id: '1' }])
    const months = await ask(`SELECT extract(month FROM at) AS m, n + 1 AS n ${from} ORDER BY n`)
    expect(months.body.data).toEqual([
      { m: 5, n: 2 },
      { m: 6, n: 3 },
    ])
  })

  test('SQL with history gives every version to keys of the application', async () => {
    await data.store('versions', [{ id: 'a', n: 1 }])
    await data.store('versions', [{ id: 'a', n: 2 }])
    const sql = `SELECT n FROM "${data.appId}"::versions`
    expect((await ask(sql)).body.data).toEqual([{ n: 2 }])
    expect((await ask(sql, { include_history: true })).body.data).toEqual([{ n: 1 }, { n: 2 }])
  })

  test('a name is clear by a closed schema, but not with history: earlier versions are of earlier schemas', async () => {
    const closed = {
      type: 'object',
      properties: { id: { type: 'string' }, city: { type: 'string' } },
      additionalProperties: false,
    }
    await data.create({ name: 'visits' })
    await data.store('visits', [{ id: 'v', city: 'a', country: 'XX' }])
    const changed = await data.call('PUT', '/collections/visits', { schema_definition: closed })
    expect(changed.status, changed.text).toBe(200)
    await data.store('visits', [{ id: 'v', city: 'a' }])
    const app = data.appId
    const sql = `SELECT country FROM "${app}"::visits v JOIN "${app}"::cities c ON v.city = c.id`
    expect((await ask(sql)).body.data).toEqual([{ country: 'AT' }])
    const all = await ask(sql, { include_history: true })
    expect([all.status, all.body.error]).toEqual([400, expect.stringContaining('whose it is')])
  })

  test.each([
    ['SELECT 1 FROM cities', '/sql'],
    ['DROP TABLE cities', undefined],
    ['SELECT pg_sleep(1)', undefined],
    ['SELECT * FROM pg_catalog.pg_class', undefined],
    ['', undefined],
  ])('the statement %j is refused with 400', async (sql, field) => {
    const { status, body } = await ask(sql)
    expect(status).toBe(400)
    expect(body.code).toBe('VALIDATION_FAILED')
    if (field !== undefined) expect(body.details.field).toBe(field)
  })

  test('an application or collection that is not there is 404', async () => {
    expect(await ask('SELECT * FROM nobody::x')).toMatchObject({
      status: 404,
      body: { code: 'APPLICATION_NOT_FOUND' },
    })
    expect(await ask(`SELECT * FROM "${data.appId}"::nothing`)).toMatchObject({
      status: 404,
      body: { code: 'COLLECTION_NOT_FOUND' },
    })
  })

  test('a number out of range is refused with 400, which tells no value', async () => {
    const huge = '9'.repeat(300)
    const reply = await ask(
      `SELECT power(cast($1 AS numeric), 400000) AS x FROM "${data.appId}"::cities`,
      { params: [huge] },
    )
    expect(reply.status, reply.text).toBeLessThan(500)
    if (reply.status !== 200) expect(reply.text).not.toContain('9999')
  })

  describe('POST /list', () => {
    test('a list joins records of other collections into each record, and counts all that match', async () => {
      const { body } = await data.list('cities', {
        find: {
          people: { gt: 200_000 },
          land: {
            model: 'countries',
            many: false,
            resolve: { find: { id: '$data.country' }, select: { name: true } },
          },
        },
        select: { name: true },
        limit: 1,
      })
      expect(body).toMatchObject({
        records: [{ name: 'Wien', land: { name: 'Austria' } }],
        total: 2,
        limit: 1,
      })
    })

    test('a list gives groups, aggregates and distinct values in pages', async () => {
      const groups = { group_by: 'country', aggregate: { n: { $count: '*' } } }
      const first = await data.list('cities', { ...groups, limit: 1 })
      expect(first.body).toMatchObject({ records: [{ country: 'AT', n: 2 }], total: 2, limit: 1 })
      const second = await data.list('cities', { ...groups, limit: 1, offset: 1 })
      expect(second.body).toMatchObject({ records: [{ country: 'CH', n: 1 }], page: 2 })
      expect((await data.list('cities', { distinct: 'country' })).body.records).toEqual([
        { country: 'AT' },
        { country: 'CH' },
      ])
      expect(await data.list('cities', { ...groups, include_history: true })).toMatchObject({
        status: 400,
        body: { details: { field: '/include_history' } },
      })
    })

    test('every path asks for a shard key that every query must state', async () => {
      await data.store('sharded', [{ id: 'a', market: 'X', n: 1 }])
      const { status } = await data.call('PATCH', '/collections/sharded/sharding', {
        keys: [{ field: 'market', type: 'discrete' }],
        enforce_in_queries: true,
      })
      expect(status).toBe(200)
      const join = (find: object) => ({
        find: { s: { model: 'sharded', resolve: { find } } },
        limit: 1,
      })
      const open = [
        () => data.list('sharded', { aggregate: { n: { $count: '*' } } }),
        () => data.list('cities', join({ n: 1 })),
        () => ask(`SELECT count(*) FROM "${data.appId}"::sharded`),
        () => ask(`SELECT * FROM "${data.appId}"::sharded WHERE market = 'X' OR n = 1`),
        () =>
          ask(
            `SELECT c.name FROM "${data.appId}"::cities c, "${data.appId}"::sharded s WHERE s.n = 1`,
          ),
      ]
      for (const asked of open) expect((await asked()).status).toBe(400)
      const stated = [
        () => data.list('sharded', { find: { market: 'X' }, aggregate: { n: { $count: '*' } } }),
        () => data.list('cities', join({ market: 'X' })),
        () => data.list('cities', join({ market: '$data.name' })),
        () => ask(`SELECT * FROM "${data.appId}"::sharded WHERE market IN ('X', 'Y') AND n = 1`),
        () =>
          ask(`SELECT c.name FROM "${data.appId}"::cities c
            JOIN "${data.appId}"::sharded s ON s.market = c.name`),
      ]
      for (const asked of stated) expect((await asked()).status).toBe(200)
      const { body } = await ask(`SELECT * FROM "${data.appId}"::sharded WHERE n = 1`)
      expect(body.error).toContain(`market for each ${data.appId}::sharded`)
    })
  })
})
