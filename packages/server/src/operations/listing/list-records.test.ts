import { limits } from '@tollbase/contract/limits'
import { createData, type Data, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import type { TestService } from '@tollbase/testing/service'
import { expect, test } from 'vitest'

describePerEngine('listRecords', (service) => {
  test('a list without a query has every record, whole and in the order of storing', async () => {
    const app = await cities(service())
    const { body } = await app.list('cities')
    expect(body.records).toEqual(people)
    expect(body).toMatchObject({ total: people.length, page: 1 })
  })

  test.each([
    [{ name: { is: 'Graz' } }, ['b']],
    [{ name: 'Graz' }, ['b']],
    [{ name: { isNot: 'Graz' } }, ['a', 'c', 'd']],
    [{ name: { in: ['Graz', 'Linz'] } }, ['b', 'c']],
    [{ name: { notIn: ['Graz', 'Linz'] } }, ['a', 'd']],
    [{ mayor: { isNull: true } }, ['b', 'c', 'd']],
    [{ mayor: { isNull: false } }, ['a']],
    [{ mayor: { exists: true } }, ['a', 'b']],
    [{ name: { startsWith: 'L' } }, ['c']],
    [{ name: { endsWith: 'burg' } }, ['d']],
    [{ name: { includes: 'al' } }, ['d']],
    [{ name: { startsWithCaseInsensitive: 'wI' } }, ['a']],
    [{ name: { endsWithCaseInsensitive: 'BURG' } }, ['d']],
    [{ name: { includesCaseInsensitive: 'RA' } }, ['b']],
    [{ name: { regExpMatches: '^[GL]' } }, ['b', 'c']],
    [{ people: { greaterThan: 290 } }, ['a', 'b']],
    [{ people: { greaterThanOrEqual: 291.5 } }, ['a', 'b']],
    [{ people: { lessThan: 200 } }, ['d']],
    [{ people: { lessThanOrEqual: 206 } }, ['c', 'd']],
    [{ people: { betweenOp: { from: 155, to: 206 } } }, ['c', 'd']],
    [{ tags: { includes: 'capital' } }, ['a']],
    [{ at: { country: { is: 'AT' } } }, ['a', 'b', 'c']],
    [{ 'at.country': { is: 'DE' } }, ['d']],
    [{ ip: { CIDR: '10.0.0.0/8' } }, ['a']],
    [{ ip: { isLocalIp: true } }, ['a']],
    [{ ip: { isExternalIp: true } }, ['b']],
    [{ name: { b64: Buffer.from('Linz').toString('base64') } }, ['c']],
    [{ and: [{ people: { gt: 100 } }, { people: { lt: 200 } }] }, ['d']],
    [{ or: [{ name: 'Graz' }, { name: 'Linz' }] }, ['b', 'c']],
    [{ not: [{ name: 'Graz' }] }, ['a', 'c', 'd']],
    [{ name: 'Graz', people: { gt: 1000 } }, []],
    [{}, ['a', 'b', 'c', 'd']],
  ])('a list with find %j has the records that match', async (find, expected) => {
    const app = await shared(service())
    expect(listIds(await app.list('cities', { find }))).toEqual(expected)
  })

  test.each([
    [{ people: { eq: 206 } }, ['c']],
    [{ people: { ne: 206 } }, ['a', 'b', 'd']],
    [{ people: { gt: 206 } }, ['a', 'b']],
    [{ people: { gte: 206 } }, ['a', 'b', 'c']],
    [{ people: { lt: 206 } }, ['d']],
    [{ people: { lte: 206 } }, ['c', 'd']],
    [{ people: { between: [155, 206] } }, ['c', 'd']],
    [{ name: { contains: 'in' } }, ['c']],
    [{ mayor: { isNotNull: true } }, ['a']],
  ])(
    'a list with find %j, in the second vocabulary, has the records that match',
    async (find, expected) => {
      const app = await shared(service())
      expect(listIds(await app.list('cities', { find }))).toEqual(expected)
    },
  )

  test.each([
    [{ name: { country: 'x' } }, '/find/name/country'],
    [{ name: { in: 'x' } }, '/find/name/in'],
    [{ and: 7 }, '/find/and'],
    [{ people: { betweenOp: { from: 1 } } }, '/find/people/betweenOp'],
    [{ name: { regExpMatches: '(' } }, '/find/name/regExpMatches'],
    [{ name: { regExpMatches: '(a+)+$' } }, '/find/name/regExpMatches'],
    [7, '/find'],
  ])('a list with find %j is refused, naming the place', async (find, field) => {
    const app = await shared(service())
    const { status, body } = await app.list('cities', { find })
    expect(status, JSON.stringify(body)).toBe(400)
    expect(body.details.field).toBe(field)
  })

  test.each([
    [{ name: true }, { name: 'Wien' }],
    [{ at: { country: true } }, { at: { country: 'AT' } }],
    [
      { 'at.country': true, id: true },
      { id: 'a', at: { country: 'AT' } },
    ],
    [{ absent: true }, {}],
    [
      { tags: false, at: false, ip: false, mayor: false, people: false },
      { id: 'a', name: 'Wien' },
    ],
  ])('a list with select %j has these fields', async (select, expected) => {
    const app = await shared(service())
    const { body } = await app.list('cities', { select, limit: 1 })
    expect(body.records).toEqual([expected])
  })

  test('the empty selections of the clients mean everything', async () => {
    const app = await shared(service())
    for (const select of [{}, [], null])
      expect((await app.list('cities', { select, limit: 1 })).body.records).toEqual([people[0]])
    expect((await app.list('cities', { select: { a: 1 } })).status).toBe(400)
  })

  test.each([
    [{ sortBy: 'people' }, ['d', 'c', 'b', 'a']],
    [{ sortBy: 'people', sortDirection: 'descending' }, ['a', 'b', 'c', 'd']],
    [{ sortBy: 'name', sortDirection: 'DESC' }, ['a', 'd', 'c', 'b']],
    [{ orderBy: 'name', sortDirection: 'ascending' }, ['b', 'c', 'd', 'a']],
    [{ sortBy: 'name', limit: 2 }, ['b', 'c']],
    [{ sortBy: 'name', limit: 2, offset: 2 }, ['d', 'a']],
    [{ limit: 1, offset: 3 }, ['d']],
    [{ limit: 0 }, []],
    [{ offset: 4 }, []],
    [
      { limit: null, offset: null, sortBy: null, sortDirection: null, find: null },
      ['a', 'b', 'c', 'd'],
    ],
  ])(
    'a list with %j has these records in this order, and the total of all',
    async (query, expected) => {
      const app = await shared(service())
      const reply = await app.list('cities', query)
      expect(listIds(reply)).toEqual(expected)
      expect(reply.body.total, 'the total counts all matches').toBe(4)
    },
  )

  test.each([
    [{ limit: -1 }],
    [{ limit: 1.5 }],
    [{ limit: '1' }],
    [{ limit: limits.rowsMax + 1 }],
    [{ offset: limits.offsetMax + 1 }],
    [{ sortBy: 7 }],
    [{ sortDirection: 'up', sortBy: 'a' }],
    [{ include_history: 'yes' }],
  ])('a list with %j is refused', async (query) => {
    const app = await shared(service())
    expect((await app.list('cities', query)).status).toBe(400)
  })

  test('a page tells its number, its limit and what it was read at', async () => {
    const app = await createData(service())
    const stored = await app.store('notes', [{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    const { body } = await app.list('notes', { limit: 2, offset: 2 })
    const last = stored.body.results[2]
    expect(body).toMatchObject({
      page: 2,
      limit: 2,
      total: 3,
      as_of: { block_height: last.block_height, sequence: last.sequence },
    })
  })

  test('a list of an empty collection answers no records and a total of 0', async () => {
    const app = await createData(service())
    await app.create({ name: 'empty', access_policy: 'public' })
    expect((await app.listOpenly('empty')).body).toMatchObject({ records: [], total: 0, page: 1 })
  })

  test('pages never show a record twice or lose one, whatever the order', async () => {
    const app = await createData(service())
    const data = Array.from({ length: 57 }, (_, at) => ({ id: `r${at}`, group: at % 3 }))
    await app.store('notes', data)
    for (const sortBy of [undefined, 'group', 'absent']) {
      const seen: string[] = []
      for (let offset = 0; offset < data.length; offset += 10)
        seen.push(
          ...listIds(await app.list('notes', { limit: 10, offset, ...(sortBy && { sortBy }) })),
        )
      expect(new Set(seen).size).toBe(data.length)
    }
  })

  test('history is for the application`s own readers', async () => {
    const app = await createData(service())
    await app.publish('notes', [{ id: 'a', v: 1 }])
    await app.store('notes', [{ id: 'a', v: 2 }])
    const own = await app.list('notes', { include_history: true })
    expect(own.body.records).toEqual([
      { id: 'a', v: 1 },
      { id: 'a', v: 2 },
    ])
    const open = await app.listOpenly('notes', { include_history: true })
    expect(open).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
  })

  test('others may use a field only for what its owner offers; the owner uses all', async () => {
    const app = await createData(service())
    const offered = { select: ['id', 'name', 'at'], filter: ['name', 'at.country'], sort: ['name'] }
    await app.create({ name: 'cities', access_policy: { read: 'public', offered } })
    await app.store('cities', people)
    const select = { id: true }
    const allowed = { find: { name: { gt: 'L' }, 'at.country': 'AT' }, sortBy: 'name', select }
    expect((await app.listOpenly('cities', allowed)).status).toBe(200)
    expect((await app.listOpenly('cities', { select: { 'at.country': true } })).status).toBe(200)
    const refused: [object, string][] = [
      [{}, 'select'],
      [{ select: { people: true } }, 'select'],
      [{ select: { people: false } }, 'select'],
      [{ select, find: { people: 1 } }, 'filter'],
      [{ select, find: { or: [{ name: 'x' }, { not: [{ people: { gt: 1 } }] }] } }, 'filter'],
      [{ select, find: { at: { is: 1 } } }, 'filter'],
      [{ select, sortBy: 'people' }, 'sort'],
    ]
    for (const [query, use] of refused) {
      const { status, body } = await app.listOpenly('cities', query)
      expect(status, JSON.stringify(query)).toBe(403)
      expect(body.code).toBe('FIELD_NOT_OFFERED')
      expect(body.error.toLowerCase()).toContain(use)
      expect((await app.list('cities', query)).status).toBe(200)
    }
  })

  test('an answer past the size cap is refused with what to do, and a limit helps', async () => {
    const app = await createData(service())
    const pad = 'x'.repeat(Math.floor(limits.recordBytesMax * 0.99))
    const records = Math.ceil(limits.resultBytesMax / limits.recordBytesMax) + 2
    for (let at = 0; at < records; at += 4)
      await app.queue(
        'large',
        Array.from({ length: 4 }, (_, more) => ({ id: `${at + more}`, pad })),
      )
    await expect
      .poll(async () => (await app.list('large', { limit: 0 })).body.total)
      .toBeGreaterThanOrEqual(records)
    expect(await app.list('large')).toMatchObject({
      status: 413,
      body: { code: 'RESULT_TOO_LARGE', error: expect.stringContaining('limit') },
    })
    expect((await app.list('large', { limit: 2 })).body.records).toHaveLength(2)
  })

  test('the answer does not depend on whether there is an index', async () => {
    const app = await cities(service())
    const queries = [
      { find: { name: { startsWith: 'L' } } },
      { find: { people: { gt: 200 } }, sortBy: 'people' },
      { find: { 'at.country': 'AT' }, sortBy: 'name', sortDirection: 'desc' },
      { sortBy: 'mayor' },
    ]
    const ask = async () =>
      Promise.all(queries.map(async (query) => listIds(await app.list('cities', query))))
    const before = await ask()
    for (const field of ['name', 'people', 'at.country', 'mayor'])
      await app.call('POST', '/indexes', { collection: 'cities', field_name: field })
    expect(await ask()).toEqual(before)
  })

  test('nearest gives the records whose lists are the nearest, the distance beside them, and only records with such a list', async () => {
    const app = await createData(service())
    const lists = [[1, 0], [0.6, 0.8], [0, 2], [-1, 0], [1, 0, 0], [0, 0], 'x', [1, null], null]
    await app.store(
      'c',
      lists.map((e, at) => ({ id: `${at}`, n: at, e, d: 'own' })),
    )
    const near = (nearest: object, more: object = {}) =>
      app.list('c', { nearest: { field: 'e', to: [1, 0], ...nearest }, limit: 10, ...more })
    const byCosine = await near({ as: 'd' }, { select: { id: true } })
    expect(byCosine.body).toMatchObject({ total: 4, limit: 10 })
    expect(byCosine.body.records).toEqual([
      { id: '0', d: 0 },
      { id: '1', d: 0.4 },
      { id: '2', d: 1 },
      { id: '3', d: 2 },
    ])
    expect(listIds(await near({ measure: 'l2' }))).toEqual(['0', '1', '5', '3', '2'])
    const products = (await near({ measure: 'inner_product', as: 'd' })).body.records
    expect(products.map(({ id, d }: { id: string; d: number }) => [id, d])).toEqual([
      ['0', -1],
      ['1', -0.6],
      ['2', 0],
      ['5', 0],
      ['3', 1],
    ])
    expect(products[0]).toEqual({ id: '0', n: 0, e: [1, 0], d: -1 })
    const rest = { find: { n: { gt: 0 } }, limit: 2, offset: 1 }
    expect(listIds(await near({}, rest))).toEqual(['2', '3'])
    const query = { nearest: { field: 'e', to: [1, 0] }, limit: 5 }
    const { body } = await app.call('POST', '/collections/c/explain', { query })
    expect(body.optimization_hints.join()).toContain('exactly')
  })

  test.each([
    [{ nearest: { field: 'e', to: [1] } }, '/limit'],
    [{ nearest: { field: 'e', to: [1] }, limit: 1, sortBy: 'n' }, '/sortBy'],
    [{ nearest: { field: 'e', to: [1e99] }, limit: 1 }, '/nearest/to'],
    [{ nearest: { field: 'e', to: [1e-99] }, limit: 1 }, '/nearest/to'],
    [{ nearest: { field: 'e', to: [] }, limit: 1 }, '/nearest/to'],
    [{ nearest: { field: 'e', to: [1], as: 'a.b' }, limit: 1 }, '/nearest/as'],
    [{ nearest: { field: 'e', to: [1], measure: 'x' }, limit: 1 }, '/nearest/measure'],
    [{ nearest: { field: 'e', to: [1] }, limit: 1, group_by: 'n' }, '/nearest'],
    [{ nearest: { field: 'e', to: [1] }, limit: 1, cursor: 'x' }, '/cursor'],
    [
      { nearest: { field: 'e', to: Array(limits.vectorNumbersMax + 1).fill(1) }, limit: 1 },
      '/nearest/to',
    ],
  ])('a list with %j is refused, and names the place', async (query, field) => {
    const app = await shared(service())
    const { status, body } = await app.list('cities', query)
    expect(status).toBe(400)
    expect(body.details.field).toBe(field)
  })
})

const people = [
  {
    id: 'a',
    name: 'Wien',
    people: 1982,
    at: { country: 'AT', river: 'Donau' },
    tags: ['capital', 'old'],
    mayor: 'L',
    ip: '10.1.2.3',
  },
  { id: 'b', name: 'Graz', people: 291.5, at: { country: 'AT' }, mayor: null, ip: '8.8.8.8' },
  { id: 'c', name: 'Linz', people: 206, at: { country: 'AT' } },
  { id: 'd', name: 'Salzburg', people: 155, at: { country: 'DE' }, tags: [] },
]

async function cities(service: TestService): Promise<Data> {
  const app = await createData(service)
  await app.store('cities', people)
  return app
}

const made = new Map<TestService, Promise<Data>>()

/** One application for the tests that only read. */
function shared(service: TestService): Promise<Data> {
  const found = made.get(service) ?? cities(service)
  made.set(service, found)
  return found
}
