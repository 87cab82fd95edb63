import { expect, test } from 'vitest'
import { createData, type Data, listIds } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

const open = (at: number) => ({ id: `o${at}`, state: at % 50 === 0 ? 'open' : 'done', n: at })

/** The records are so many that PostgreSQL prefers an index, and so few that one is built at once. */
async function orders(app: Data) {
  await app.store(
    'c',
    Array.from({ length: 1_900 }, (_, at) => open(at)),
  )
}

const used = async (app: Data, query: object) => {
  const { status, body, text } = await app.call('POST', '/collections/c/explain', { query })
  expect(status, text).toBe(200)
  return body.indexes_used
}

/** Returns the answer, and the same answer without any index. */
async function bothAnswers(app: Data, find: object): Promise<[string[], string[]]> {
  const quick = listIds(await app.list('c', { find }))
  for (const { id } of (await app.call('GET', '/indexes')).body)
    await app.call('DELETE', `/indexes/${id}`)
  return [quick, listIds(await app.list('c', { find }))]
}

describePerEngine('kinds of indexes', (service) => {
  test.each([
    'btree',
    'hash',
    'string',
    'number',
    'boolean',
    'date',
    'BTree',
    'Secondary',
    'object',
  ])('an index of type %s serves an equality', async (index_type) => {
    const app = await createData(service())
    await orders(app)
    const made = await app.call('POST', '/indexes', { collection: 'c', field: 'n', index_type })
    expect(made.body).toMatchObject({ status: 'active', sparse: false })
    expect(await used(app, { find: { n: 7 } })).toEqual(['c_n_idx'])
    expect(await bothAnswers(app, { n: 7 })).toEqual([['o7'], ['o7']])
  })

  test('a partial index has the records of its condition, and serves the queries that imply it', async () => {
    const app = await createData(service())
    await orders(app)
    const partial = { collection: 'c', field_name: 'n', where: { state: { is: 'open' } } }
    const made = await app.call('POST', '/indexes', partial)
    expect(made.body).toMatchObject({ status: 'active', where: { state: { is: 'open' } } })
    const implied = { state: 'open', n: { between: [100, 400] } }
    expect(await used(app, { find: implied })).toEqual(['c_n_idx'])
    expect(await used(app, { find: { n: 100 } })).toEqual([])
    const [quick, slow] = await bothAnswers(app, implied)
    expect(quick).toEqual(slow)
    expect(quick).toHaveLength(7)
  })

  test.each([
    ['a range', { n: { gte: 1_800 } }, { n: { gt: 1_850 } }],
    ['a list', { state: { in: ['open', "o'pen\\"] } }, { state: 'open', n: { lt: 99 } }],
    ['a prefix', { state: { startsWith: 'op' } }, { state: { startsWith: 'ope' }, n: 50 }],
    ['a value', { n: { isNull: false } }, { n: 50 }],
    ['alternatives', { or: [{ n: 1 }, { n: 50 }] }, { n: 50 }],
  ])('a partial index of %s is used where the query says more', async (_what, where, find) => {
    const app = await createData(service())
    await orders(app)
    const made = await app.call('POST', '/indexes', {
      collection: 'c',
      fields: ['n'],
      index_type: 'partial',
      options: { partialFilter: where },
    })
    expect(made.body, made.text).toMatchObject({ status: 'active', where })
    expect(await used(app, { find })).toEqual(['c_n_idx'])
    const [quick, slow] = await bothAnswers(app, find)
    expect(quick).toEqual(slow)
  })

  test('a sparse index leaves out what has no value, and serves conditions that need one', async () => {
    const app = await createData(service())
    await orders(app)
    await app.store('c', [{ id: 'null', n: null }, { id: 'none' }])
    const made = await app.call('POST', '/indexes', {
      collection: 'c',
      field_name: 'n',
      options: { sparse: true },
    })
    expect(made.body).toMatchObject({ sparse: true })
    expect(await used(app, { find: { n: { gt: 1_880 } } })).toEqual(['c_n_idx'])
    expect(await used(app, { find: { n: { isNull: true } } })).toEqual([])
    expect(listIds(await app.list('c', { find: { n: { isNull: true } } }))).toEqual([
      'null',
      'none',
    ])
    expect(listIds(await app.list('c', { sortBy: 'n' }))).toHaveLength(1_902)
  })

  test.each([
    ['a condition that an index cannot follow', { where: { n: { regExpMatches: 'a' } } }],
    ['a condition that is none', { where: { n: { $quantum: 1 } } }],
    ['too many values', { where: { n: { in: Array.from({ length: 33 }, (_, at) => at) } } }],
    [
      'more tests of fields than there is room for',
      { where: Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`f${at}`, at])) },
    ],
    ['no condition', { index_type: 'partial' }],
    ['a condition of a unique index', { where: { n: 1 }, unique: true }],
    ['a unique full-text index', { index_type: 'fulltext', unique: true }],
    ['a field twice', { fields: ['n', 'n'] }],
  ])('an index with %s is refused, and makes nothing', async (_what, body) => {
    const app = await createData(service())
    const reply = await app.call('POST', '/indexes', { collection: 'c', field_name: 'n', ...body })
    expect(reply.status, reply.text).toBe(400)
    expect((await app.call('GET', '/collections')).body).toEqual([])
  })

  test('search finds records by their words, with a full-text index and without one', async () => {
    const app = await createData(service())
    const texts = [
      'The quick brown Fox',
      'a fox, quick!',
      'foxes are quicker',
      'Füchse & Bäume',
      '',
      42,
      null,
      ['fox'],
      { fox: 'quick' },
      'http://fox.example/quick fox-quick',
    ]
    const filler = Array.from({ length: 1_000 }, (_, at) => ({ id: `x${at}`, t: `word${at} same` }))
    await app.store('c', [...texts.map((t, at) => ({ id: `${at}`, t })), { id: 'none' }, ...filler])
    const finds = ['fox', 'QUICK fox', 'fox & !quick', 'bäume', '!!!', '', 'word7', 'nowhere']
    const answers = async () =>
      Promise.all(
        finds.map(async (search) => listIds(await app.list('c', { find: { t: { search } } }))),
      )
    const slow = await answers()
    expect(slow.slice(0, 2)).toEqual([
      ['0', '1', '9'],
      ['0', '1', '9'],
    ])
    expect(slow.slice(3)).toEqual([['3'], [], [], ['x7'], []])
    const made = await app.call('POST', '/indexes', {
      collection: 'c',
      field_name: 't',
      index_type: 'FullText',
      options: { defaultLanguage: 'german', weights: { t: 1 } },
    })
    expect(made.body).toMatchObject({ status: 'active', index_type: 'fulltext' })
    expect(made.body._warning).toContain('whatever the language')
    expect(await answers()).toEqual(slow)
    expect(await used(app, { find: { t: { search: 'word7' } }, limit: 10 })).toEqual(['c_t_idx'])
    const not = await app.list('c', { find: { not: [{ t: { search: 'same' } }] } })
    expect(not.body.total).toBe(texts.length + 1)
    for (const search of [7, null, 'x'.repeat(501), ['fox']])
      expect((await app.list('c', { find: { t: { search } } })).status).toBe(400)
  })

  test('an index of trigrams serves parts of texts in find and SQL, and is the same after a restart', async () => {
    const app = await createData(service())
    await app.store(
      'c',
      Array.from({ length: 1_900 }, (_, at) => ({ id: `t${at}`, t: `Some words, Nummer-${at}x.` })),
    )
    const request = { collection: 'c', field_name: 't', index_type: 'Trigram' }
    const made = await app.call('POST', '/indexes', request)
    expect(made.body).toMatchObject({ index_type: 'trigram', name: 'c_t_idx' })
    expect((await app.call('POST', '/indexes', { ...request, unique: true })).status).toBe(400)
    const soon = { timeout: 30_000 }
    const path = '/collections/c/indexes/c_t_idx/status'
    const state = async () => (await app.call('GET', path)).body.status
    await expect.poll(state, soon).toBe('active')
    const finds = [
      { t: { includes: 'mmer-1234' } },
      { t: { includesCaseInsensitive: 'NUMMER-77' } },
      { t: { endsWith: '-18x.' } },
    ]
    // The planner learns of the records a little later.
    for (const find of finds)
      await expect.poll(() => used(app, { find }), soon).toEqual(['c_t_idx'])
    for (const where of ["t LIKE '%mmer-123%'", "lower(t) LIKE '%nummer-12__x%'"]) {
      const sql = `SELECT id FROM "${app.appId}"::c WHERE ${where}`
      expect(await used(app, { sql }), where).toEqual(['c_t_idx'])
    }
    await service().restart()
    expect(await used(app, { find: finds[0] })).toEqual(['c_t_idx'])
    const quick = await Promise.all(finds.map((find) => app.list('c', { find })))
    await app.call('DELETE', '/indexes/c_t_idx')
    const slow = await Promise.all(finds.map((find) => app.list('c', { find })))
    expect(quick.map(listIds)).toEqual(slow.map(listIds))
    expect(slow.map(({ body }) => body.total)).toEqual([1, 11, 1])
  })

  test('no index makes a write fail, whatever the type or the length of its fields', async () => {
    const app = await createData(service())
    for (const more of [
      { index_type: 'fulltext' },
      { index_type: 'hash', sparse: true },
      { index_type: 'number', where: { f: { gt: 5 } } },
      { fields: ['f', 'g'], index_type: 'composite' },
      { fields: ['f', 'g'], index_type: 'fulltext' },
    ])
      expect(
        (await app.call('POST', '/indexes', { collection: 'c', field_name: 'f', ...more })).status,
      ).toBe(200)
    const short = Array.from({ length: 500_000 }, (_, at) => (at % 7_919).toString(36)).join(' ')
    const values = [
      short.slice(0, 1_000_000),
      'a-'.repeat(490_000),
      `${'🦀'.repeat(2_500)} `.repeat(20),
      'http://a.b/c?d=e '.repeat(50_000),
      [short.slice(0, 1_000)],
      { deep: { f: 1 } },
      null,
      true,
      1e300,
    ]
    for (const [at, f] of values.entries())
      expect((await app.store('c', [{ id: `${at}`, f, g: f }].map(half))).status).toBe(200)
    expect((await app.list('c', { limit: 1 })).body.total).toBe(values.length)
  })

  test('indexes of one field that serve different things stand side by side, each under its own name', async () => {
    const app = await createData(service())
    const requests = [
      {},
      { index_type: 'fulltext' },
      { where: { n: { gt: 1 } } },
      { where: { n: { gt: 2 } } },
    ]
    for (const more of requests) {
      const body = { collection: 'c', field_name: 'a.b', ...more }
      expect((await app.call('POST', '/indexes', body)).body.updated).toBe(false)
      expect((await app.call('POST', '/indexes', body)).body.updated).toBe(true)
    }
    await app.call('POST', '/indexes', { collection: 'c', fields: ['a_b', 'x'] })
    const { body } = await app.call('POST', '/indexes', { collection: 'c', fields: ['a', 'b_x'] })
    expect(body.name).toBe('c_a_b_x_idx_2')
    const names = (await app.call('GET', '/collections/c/indexes')).body.indexes.map(
      (one: { name: string }) => one.name,
    )
    expect(names).toEqual([
      'c_a.b_idx',
      'c_a.b_idx_2',
      'c_a.b_idx_3',
      'c_a.b_idx_4',
      'c_a_b_x_idx',
      'c_a_b_x_idx_2',
    ])
    // The name that clients make for a field means its plain index, and nothing where two indexes fit.
    expect((await app.call('DELETE', '/indexes/c_a.b_index')).status).toBe(200)
    const doubtful = await app.call('DELETE', '/indexes/c_a_b_x_index')
    expect(doubtful).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    expect((await app.call('DELETE', `/indexes/${body.id}`)).status).toBe(200)
    expect((await app.call('DELETE', '/indexes/c_a_b_x_index')).status).toBe(200)
  })

  test('an application is the same after a rebuild of its tables, indexes of every kind included', async () => {
    const app = await createData(service())
    await orders(app)
    for (const more of [
      { index_type: 'fulltext' },
      { where: { state: 'open' } },
      { index_type: 'hash', sparse: true },
      { unique: true, fields: ['id'] },
    ])
      await app.call('POST', '/indexes', { collection: 'c', field_name: 'n', ...more })
    const before = (await app.call('GET', '/indexes')).body
    await service().restart()
    expect((await app.call('GET', '/indexes')).body).toEqual(before)
    expect(await used(app, { find: { n: 7 } })).toHaveLength(1)
  })
})

/** Two fields of a record share the maximum size. */
function half(record: { id: string; f: unknown; g: unknown }) {
  return typeof record.f === 'string' && record.f.length > 400_000
    ? { ...record, g: record.f.slice(0, 20) }
    : record
}
