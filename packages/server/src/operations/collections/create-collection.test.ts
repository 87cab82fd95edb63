import { createData, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('createCollection', (service) => {
  test('a collection needs only a name, and has the defaults of the interface for the rest', async () => {
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

  test('a name is taken once: the same again is 409, and exactly one of twenty at once is made', async () => {
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

  test('a null counts as not given, as the public clients send it', async () => {
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
})
