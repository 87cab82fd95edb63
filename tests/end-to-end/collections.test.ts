import { expect, test } from 'vitest'
import { createData, type Data, listIds } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

describePerEngine('collections', (service) => {
  test('only the name is needed; the rest has the defaults of the interface', async () => {
    const app = await createData(service())
    const { status, body } = await app.create({ name: 'orders' })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      name: 'orders',
      namespace: `${app.appId}_orders`,
      primary_column: 'id',
      sort_column: null,
      collection_type: 'document',
      access_policy: null,
      schema_definition: null,
      indexes: [],
      metadata: { document_count: 0, storage_size: 0, avg_document_size: 0 },
    })
    expect(body).not.toHaveProperty('_warning')
    const byId = await app.call('GET', `/collections/${body.collection_id}`)
    expect(byId.body).toEqual(body)
    expect((await app.call('GET', '/collections/orders')).body).toEqual(body)
    expect((await app.call('GET', '/collections')).body).toEqual([body])
  })

  test('the same name again is 409, and of twenty at once exactly one is made', async () => {
    const app = await createData(service())
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => app.create({ name: 'orders' })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)])
    expect(replies.find(({ status }) => status === 409)?.body.code).toBe('COLLECTION_EXISTS')
    expect((await app.call('GET', '/collections')).body).toHaveLength(1)
  })

  test.each(['', 'a b', 'a::b', 'a.b', 'ö', 'x'.repeat(64), "a';--"])(
    'the name %j is refused, naming the field',
    async (name) => {
      const { status, body } = await (await createData(service())).create({ name })
      expect(status).toBe(400)
      expect(body.details.field).toBe('/name')
    },
  )

  test('two names that differ in case are two collections, and the longest is accepted', async () => {
    const app = await createData(service())
    for (const name of ['Orders', 'orders', 'x'.repeat(63)]) {
      expect((await app.create({ name })).status).toBe(201)
      await app.store(name, [{ id: name }])
    }
    expect(listIds(await app.list('Orders'))).toEqual(['Orders'])
  })

  test('null counts as not given, as the public clients send it', async () => {
    const app = await createData(service())
    const { body } = await app.create({
      name: 'orders',
      namespace: 'shop',
      primary_column: 'number',
      sort_column: null,
      schema_definition: null,
      access_policy: null,
    })
    expect(body).toMatchObject({ namespace: 'shop', primary_column: 'number', sort_column: null })
    expect((await app.listOpenly('orders')).status).toBe(401)
  })

  test.each([
    ['public', 200],
    ['key', 401],
    ['private', 404],
  ])('access_policy may be the word %j', async (policy, expected) => {
    const app = await createData(service())
    const { body } = await app.create({ name: 'orders', access_policy: policy })
    expect(body.access_policy).toBe(policy)
    expect((await app.listOpenly('orders')).status).toBe(expected)
  })

  test.each<[unknown, string, string]>([
    [{ read: 'everyone' }, '/read', 'VALIDATION_FAILED'],
    [{ read: 'pubic' }, '/read', 'did you mean "public"'],
    [{ raed: 'public', owners: [] }, '/raed', 'did you mean "read"'],
    [{ read: 'key', readers: ['a'] }, '/readers', 'UNKNOWN_MEMBER'],
    [{ price: { per_access: -1 } }, '/price/per_access', 'whole atomic units'],
    [{ price: { per_access: '1.5' } }, '/price/per_access', '1 cent = 10000'],
    [{ price: { per_acces: '1' } }, '/price/per_acces', 'did you mean "per_access"'],
    [{ preview: {} }, '/preview/rows', 'is needed'],
    ['open', '', 'VALIDATION_FAILED'],
    ['privat', '', 'did you mean "private"'],
    [7, '', 'VALIDATION_FAILED'],
    [[], '', 'VALIDATION_FAILED'],
  ])('an access_policy like %j is refused, naming %s', async (policy, place, words) => {
    const app = await createData(service())
    const made = await app.create({ name: 'orders', access_policy: policy })
    await app.create({ name: 'sales' })
    const query = { source_collections: ['sales'], query: {}, access_policy: policy }
    for (const reply of [
      made,
      await app.call('PUT', '/collections/sales', { access_policy: policy }),
      await app.call('POST', '/views', { name: 'v', ...query }),
    ]) {
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body.details.field).toBe(`/access_policy${place}`)
      expect(`${reply.body.code}: ${reply.body.error}`).toContain(words)
    }
  })

  test.each([[{ readers: ['a'] }], [{ rules: { owner: 'x' } }]])(
    'an access_policy of a foreign shape (%j) is stored as sent, enforced as private and warned of',
    async (policy) => {
      const app = await createData(service())
      const { status, body } = await app.create({ name: 'orders', access_policy: policy })
      expect(status).toBe(201)
      expect(body.access_policy).toEqual(policy)
      expect(body._warning).toEqual(expect.any(String))
      expect((await app.listOpenly('orders')).status).toBe(404)
      expect((await app.list('orders')).status).toBe(200)
    },
  )

  const schema = {
    fields: {
      name: { type: 'string', required: true, validation: { min: 2, max: 5, pattern: '^[A-Z]' } },
      age: { type: 'integer', validation: { min: 0 } },
      kind: { type: 'string', default: 'plain', validation: { enum: ['plain', 'fancy'] } },
      born: { type: 'date' },
      tags: { type: 'array' },
      on: { type: 'boolean' },
    },
    required: ['age'],
  }

  test.each([
    [{ age: 1 }, '/name'],
    [{ name: null, age: 1 }, '/name'],
    [{ name: 'A', age: 1 }, '/name'],
    [{ name: 'Abcdef', age: 1 }, '/name'],
    [{ name: 'abc', age: 1 }, '/name'],
    [{ name: 7, age: 1 }, '/name'],
    [{ name: 'Abc' }, '/age'],
    [{ name: 'Abc', age: 1.5 }, '/age'],
    [{ name: 'Abc', age: -1 }, '/age'],
    [{ name: 'Abc', age: 1, kind: 'odd' }, '/kind'],
    [{ name: 'Abc', age: 1, born: 'never' }, '/born'],
    [{ name: 'Abc', age: 1, tags: {} }, '/tags'],
    [{ name: 'Abc', age: 1, on: 'yes' }, '/on'],
  ])(
    '%j breaks the schema: the whole store is refused, naming record and field',
    async (record, field) => {
      const app = await createData(service())
      await app.create({ name: 'people', schema_definition: schema })
      const good = { id: 'good', name: 'Good', age: 1 }
      const { status, body } = await app.store('people', [good, record])
      expect(status).toBe(422)
      expect(body).toMatchObject({
        code: 'SCHEMA_VIOLATION',
        details: { record: 1, field: `/data/1${field}` },
      })
      expect((await app.list('people')).body.total).toBe(0)
    },
  )

  test('defaults of the schema are filled in and stored', async () => {
    const app = await createData(service())
    await app.create({ name: 'people', schema_definition: schema })
    await app.store('people', [{ id: 'a', name: 'Abc', age: 1 }])
    expect((await app.list('people', { find: { kind: 'plain' } })).body.records).toEqual([
      { id: 'a', name: 'Abc', age: 1, kind: 'plain' },
    ])
  })

  test('a JSON Schema is enforced too, and validate says the same without storing', async () => {
    const app = await createData(service())
    await app.create({
      name: 'people',
      schema_definition: {
        type: 'object',
        properties: { age: { type: 'integer', minimum: 0 } },
        required: ['age'],
      },
    })
    const refused = await app.store('people', [{ id: 'a', age: -1 }])
    expect(refused).toMatchObject({ status: 422, body: { details: { field: '/data/0/age' } } })
    const validate = async (data: unknown) =>
      (await app.call('POST', '/collections/people/validate', { data })).body
    expect(await validate({ age: 1 })).toEqual({ valid: true })
    expect(await validate([{ age: 1 }, { age: 'x' }])).toMatchObject({
      valid: false,
      errors: [expect.stringContaining('/1/age')],
    })
    expect(await validate(7)).toMatchObject({ valid: false })
    expect((await app.list('people')).body.total).toBe(0)
  })

  test.each([
    ['text'],
    [[]],
    [{ fields: { a: 'string' } }],
    [{ fields: { a: { type: 'money' } } }],
    [{ fields: { a: { type: 'string', validation: { pattern: '(' } } } }],
  ])('the schema_definition %j, which could not be enforced, is refused', async (definition) => {
    const app = await createData(service())
    const reply = await app.create({ name: 'people', schema_definition: definition })
    expect(reply.status).toBe(400)
    expect(reply.body.details.field).toMatch(/^\/schema_definition/)
  })

  test.each([
    [{ type: 'nonsense' }],
    [{ properties: { a: { type: 'string', pattern: '(' } } }],
    [{ properties: 7 }],
    [{ required: 7 }],
    [{ $ref: '#/nowhere' }],
  ])(
    'an odd JSON Schema (%j) is refused when it is set, or harmless: no store fails inside',
    async (definition) => {
      const app = await createData(service())
      const { status } = await app.create({ name: 'people', schema_definition: definition })
      expect([201, 400]).toContain(status)
      if (status !== 201) return
      const stored = await app.store('people', [{ id: 'a', a: 'x' }])
      expect([200, 422], stored.text).toContain(stored.status)
    },
  )

  test('fields that the schema marks get an index; a unique one versions by its value', async () => {
    const app = await createData(service())
    const { body } = await app.create({
      name: 'people',
      schema_definition: {
        fields: {
          id: { type: 'string', index: true, unique: true },
          email: { type: 'string', unique: true },
          city: { type: 'string', index: true },
          note: { type: 'string' },
        },
      },
    })
    const indexes = body.indexes.map((one: { field_name: string; unique_constraint: boolean }) => [
      one.field_name,
      one.unique_constraint,
    ])
    expect(indexes).toEqual([
      ['email', true],
      ['city', false],
    ])
    await app.store('people', [{ id: 'a', email: 'x@y' }])
    await app.store('people', [{ id: 'b', email: 'x@y' }])
    expect(listIds(await app.list('people'))).toEqual(['b'])
  })

  test('a change is in force with its answer; name and primary column cannot change', async () => {
    const app = await createData(service())
    const made = await app.create({ name: 'orders', sort_column: 'time' })
    const put = (body: object) => app.call('PUT', '/collections/orders', body)
    const changed = await put({ access_policy: 'private', options: { validate: true } })
    expect(changed.body).toMatchObject({
      collection_id: made.body.collection_id,
      access_policy: 'private',
      sort_column: 'time',
    })
    expect((await app.listOpenly('orders')).status).toBe(404)
    expect((await put({ name: 'sales' })).body.details.field).toBe('/name')
    expect((await put({ primary_column: 'key' })).body.details.field).toBe('/primary_column')
    expect((await put({ name: 'orders', primary_column: 'id' })).status).toBe(200)
    expect((await app.call('PUT', '/collections/none', {})).status).toBe(404)
  })

  test('a deleted collection is gone for readers at once, keeps its entries, and its name starts empty', async () => {
    const app = await createData(service())
    await app.create({ name: 'orders', schema_definition: { fields: { a: { index: true } } } })
    const stored = await app.store('orders', [{ id: 'a' }])
    const removed = await app.call('DELETE', '/collections/orders', { force: true })
    expect(removed.body.success).toBe(true)
    expect((await app.list('orders')).status).toBe(404)
    expect((await app.call('GET', '/collections/orders')).status).toBe(404)
    expect((await app.record('orders', 'a')).status).toBe(404)
    expect((await app.call('DELETE', '/collections/orders')).status).toBe(404)
    const { block_height: height, sequence } = stored.body.results[0]
    const proof = await app.call('GET', `/chain/proof?height=${height}&sequence=${sequence}`)
    expect(proof.body.leaf_hash).toBe(stored.body.results[0].blob_id)
    expect((await app.create({ name: 'orders' })).status).toBe(201)
    expect((await app.list('orders')).body).toMatchObject({ records: [], total: 0 })
  })

  test('stats follow stores, new versions and deletions', async () => {
    const app = await createData(service())
    await app.publish('notes', [{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    await app.store('notes', [{ id: 'a', text: 'new' }])
    await app.store('notes', [{ id: 'b', deleted: true }])
    const { body } = await app.call('GET', '/collections/notes/stats')
    const bytes = '{"id":"a","text":"new"}'.length + '{"id":"c"}'.length
    expect(body).toMatchObject({
      document_count: 2,
      storage_size: bytes,
      avg_document_size: Math.round(bytes / 2),
    })
    const described = await app.call('GET', '/collections/notes?include_stats=true')
    expect(described.body.metadata.document_count).toBe(2)
    const open = await service().request('GET', `/api/apps/${app.appId}/collections/notes`)
    expect(open.body.metadata.document_count, 'exact counts are for the owner').toBe(0)
  })

  test('a preview shows the first records, as numbers were written, and a band instead of a count', async () => {
    const app = await createData(service())
    await app.create({ name: 'notes', access_policy: 'public' })
    await app.storeText('notes', '{"id":"a","price":1.50},{"id":"b"},{"id":"c"},{"id":"d"}')
    const path = `/api/apps/${app.appId}/collections/notes/preview`
    const { body, text } = await service().request('GET', path)
    expect(body).toMatchObject({ collection: 'notes', row_count_band: '1-9' })
    expect(body.sample).toHaveLength(3)
    expect(text).toContain('"price":1.50')
  })

  test('the preview of what has a price shows what its owner chose, and by default no record', async () => {
    const app = await createData(service())
    const price = { per_row: '100' }
    await app.create({ name: 'sold', access_policy: { price } })
    await app.create({
      name: 'shown',
      access_policy: { price, preview: { rows: 1, fields: ['id', 'absent'] } },
    })
    for (const name of ['sold', 'shown'])
      await app.store(name, [{ id: 'a', secret: 1 }, { id: 'b' }])
    const preview = async (name: string) =>
      (await service().request('GET', `/api/apps/${app.appId}/collections/${name}/preview`)).body
    expect(await preview('sold')).toMatchObject({ sample: [], price: { per_row: '100' } })
    expect((await preview('shown')).sample).toEqual([{ id: 'a' }])
  })

  test('definitions survive a restart, and numbers of deleted ones are not mixed up', async () => {
    const app = await createData(service())
    await app.create({ name: 'first' })
    await app.create({ name: 'second', schema_definition: { fields: { a: { index: true } } } })
    await app.call('DELETE', '/collections/second')
    await service().restart()
    await app.create({ name: 'third', schema_definition: { fields: { b: { index: true } } } })
    await app.store('third', [{ id: 'x', b: 1 }])
    await service().restart()
    expect(await names(app)).toEqual(['first', 'third'])
    expect(listIds(await app.list('third', { find: { b: 1 } }))).toEqual(['x'])
  })
})

async function names(app: Data): Promise<string[]> {
  const { body } = await app.call('GET', '/collections')
  return body.map(({ name }: { name: string }) => name)
}
