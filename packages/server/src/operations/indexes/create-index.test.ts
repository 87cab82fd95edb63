import { createData, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('createIndex', (service) => {
  test.each([
    [
      'the SDK`s createCollection',
      { name: 'c_f_idx', field_name: 'f', index_type: 'string', store_values: true },
    ],
    ['the SDK`s low level', { field: 'f', type: 'number' }],
    [
      'the database manager',
      {
        name: 'n',
        field_name: 'f',
        index_type: 'btree',
        fields: ['f'],
        options: { unique: true, background: true },
      },
    ],
    [
      'scripts in capitals',
      {
        name: 'n',
        field_name: 'f',
        index_type: 'Hash',
        unique: false,
        sparse: true,
        description: 'd',
        sort_enabled: true,
      },
    ],
    [
      'the static class',
      {
        app_id: 'x',
        collection_name: 'c',
        field_name: 'f',
        index_config: { index_type: 'Secondary', store_values: true, compression: 'None' },
      },
    ],
    [
      'PHP, with null prices',
      { name: 'n', field_name: 'f', index_type: 'date', read_price_config: null },
    ],
  ])(
    'the dialect of %s is understood, and the answer is in the words of all',
    async (_who, body) => {
      const app = await createData(service())
      const { status, body: index } = await app.call('POST', '/indexes', {
        collection: 'c',
        ...body,
      })
      expect(status).toBe(200)
      expect(index).toMatchObject({
        collection: 'c',
        field: 'f',
        field_name: 'f',
        fields: ['f'],
        status: 'active',
        updated: false,
      })
      expect(index.type).toBe(index.index_type)
      const listed = (await app.call('GET', '/collections/c/indexes')).body.indexes
      expect(listed).toMatchObject([{ id: index.id, name: index.name, field_name: 'f' }])
      expect((await app.call('GET', '/indexes')).body).toEqual(listed)
      expect((await app.call('GET', `/collections/c/indexes/${index.name}`)).body).toEqual(
        listed[0],
      )
    },
  )

  test('the same field again is the same index, changed, and the answer says that it was updated', async () => {
    const app = await createData(service())
    const body = { collection: 'c', field_name: 'f', index_type: 'string' }
    const first = await app.call('POST', '/indexes', body)
    const same = await app.call('POST', '/indexes', body)
    expect(same.body).toEqual({ ...first.body, updated: true })
    const unique = await app.call('POST', '/indexes', { ...body, unique_constraint: true })
    expect(unique.body).toMatchObject({ id: first.body.id, unique_constraint: true, updated: true })
    await app.store('c', [{ id: '1', f: 'x' }])
    await app.store('c', [{ id: '2', f: 'x' }])
    expect(listIds(await app.list('c'))).toEqual(['2'])
    expect((await app.call('GET', '/indexes')).body).toHaveLength(1)
  })

  test('twenty requests for one index at once make one index', async () => {
    const app = await createData(service())
    const body = { collection: 'c', field_name: 'f', index_type: 'string' }
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => app.call('POST', '/indexes', body)),
    )
    expect(new Set(replies.map((reply) => reply.body.id)).size).toBe(1)
    expect(replies.filter((reply) => reply.body.updated === false)).toHaveLength(1)
  })

  test('a composite index keeps the order of its fields', async () => {
    const app = await createData(service())
    const { body } = await app.call('POST', '/indexes', {
      collection: 'c',
      fields: ['a', 'b'],
      index_type: 'composite',
    })
    expect(body.fields).toEqual(['a', 'b'])
    const other = await app.call('POST', '/indexes', {
      collection: 'c',
      fields: ['b', 'a'],
      index_type: 'composite',
    })
    expect(other.body.updated).toBe(false)
  })

  test.each([
    ['no field', {}],
    ['an odd type', { field_name: 'f', index_type: 'quantum' }],
    ['a type that is no text', { field_name: 'f', index_type: 7 }],
    ['a field that is no text', { field_name: 7 }],
    ['an empty field', { field_name: '' }],
    ['too many fields', { fields: ['a', 'b', 'c', 'd', 'e'] }],
    ['a field name that is too long', { field_name: 'x'.repeat(1000) }],
    [
      'a price of a wrong form',
      { field_name: 'f', read_price_config: { price_per_access: '1.5' } },
    ],
    ['no collection', { collection: undefined, field_name: 'f' }],
    ['an odd collection', { collection: 'a b', field_name: 'f' }],
  ])('an index with %s is refused, and makes nothing', async (_what, body) => {
    const app = await createData(service())
    const reply = await app.call('POST', '/indexes', { collection: 'c', ...body })
    expect(reply.status, reply.text).toBe(400)
    expect((await app.call('GET', '/collections')).body).toEqual([])
  })

  test('two indexes of one collection cannot have one name', async () => {
    const app = await createData(service())
    await app.call('POST', '/indexes', { collection: 'c', field_name: 'f', name: 'same' })
    const again = await app.call('POST', '/indexes', {
      collection: 'c',
      field_name: 'g',
      name: 'same',
    })
    expect(again).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
  })

  test('a collection has the most indexes that the limit allows, and one more is refused', async () => {
    const app = await createData(service())
    for (let at = 0; at < 32; at++)
      expect(
        (await app.call('POST', '/indexes', { collection: 'c', field_name: `f${at}` })).status,
      ).toBe(200)
    expect(
      (await app.call('POST', '/indexes', { collection: 'c', field_name: 'more' })).status,
    ).toBe(409)
  })

  test('an index on records that are there already, of every kind of value, does not stop the application', async () => {
    const app = await createData(service())
    const values = [
      null,
      true,
      1,
      1.5,
      -1e300,
      '',
      'x'.repeat(5000),
      '🦀'.repeat(2000),
      [1],
      { a: 1 },
    ]
    await app.store('c', [...values.map((f, at) => ({ id: `${at}`, f })), { id: 'none' }])
    await app.storeText('c', `{"id":"digits","f":${'9'.repeat(300)}.${'9'.repeat(90)}}`)
    for (const index_type of ['btree', 'hash'])
      expect(
        (await app.call('POST', '/indexes', { collection: 'c', field_name: 'f', index_type }))
          .status,
      ).toBe(200)
    await app.store('c', [{ id: 'after', f: 'y'.repeat(100_000) }])
    expect((await app.list('c')).body.total).toBe(values.length + 3)
    expect(listIds(await app.list('c', { find: { f: 'x'.repeat(5000) } }))).toEqual(['6'])
  })

  test('a price that comes with an index makes reads cost for others', async () => {
    const app = await createData(service())
    await app.call('POST', '/indexes', {
      collection: 'c',
      field_name: 'f',
      index_type: 'string',
      read_price_config: {
        pricing_model: 'per_access',
        price_per_access_tia: 0.001,
        price_per_kb_tia: null,
      },
    })
    await app.store('c', [{ id: 'a' }])
    const described = await app.call('GET', '/collections/c')
    expect(described.body.access_policy.price).toEqual({ per_access: '1000' })
    expect((await app.list('c')).status).toBe(200)
    const sold = await app.listOpenly('c')
    expect(sold.status, 'sold, or not sellable here; never free').not.toBe(200)
    expect(sold.body).not.toHaveProperty('records')
  })

  test('a key that may write and nothing else changes no price, and opens no collection to buyers', async () => {
    const app = await createData(service())
    await app.create({ name: 'dear', access_policy: { price: { per_access: '5000' } } })
    await app.store('dear', [{ id: 'a', f: 1 }])
    await app.store('closed', [{ id: 'a', f: 1 }])
    const made = await app.call('POST', '/keys', { permissions: ['Write'] })
    const headers = { 'x-app-key': made.body.key }
    const define = (body: object) =>
      service().request('POST', `/api/apps/${app.appId}/indexes`, { headers, body })
    const prices = [
      { read_price_config: { price_per_access: 0 } },
      { read_price_config: { price_per_kb: 1 } },
      { price_config: { pricing_model: 'per_record', price_per_record: '1' } },
      { index_type: 'price', price_config: { app_owner_address: `0x${'4'.repeat(40)}` } },
    ]
    for (const collection of ['dear', 'closed'])
      for (const price of prices) {
        const refused = await define({ collection, field_name: 'f', ...price })
        expect([refused.status, refused.body.code], refused.text).toEqual([403, 'FORBIDDEN'])
      }
    expect((await app.listOpenly('dear')).body).not.toHaveProperty('records')
    expect((await app.listOpenly('closed')).status).toBe(401)
    expect((await app.call('GET', '/collections/dear')).body.access_policy.price).toEqual({
      per_access: '5000',
    })
    // A price that is sent again changes nothing, and a collection may begin with one.
    for (const collection of ['dear', 'new', 'new']) {
      const price = { read_price_config: { price_per_access: 5000 } }
      const reply = await define({ collection, field_name: 'f', ...price })
      expect(reply.status, reply.text).toBe(200)
    }
  })

  test('a key that may write prices a collection of a moment ago that has no policy, no price and no record', async () => {
    const app = await createData(service())
    const made = await app.call('POST', '/keys', { permissions: ['Write'] })
    const headers = { 'x-app-key': made.body.key }
    const define = async (collection: string, price: object = {}) => {
      const body = { collection, field_name: 'f', ...price }
      const path = `/api/apps/${app.appId}/indexes`
      return (await service().request('POST', path, { headers, body })).status
    }
    const dear = { read_price_config: { price_per_access: 7 } }
    const field = { index_type: 'price', price_config: {} }
    const record = { price_config: { pricing_model: 'per_record', price_per_record: '1' } }
    for (const [name, price] of Object.entries({ dear, field, record }))
      expect([await define(name), await define(name, price)], name).toEqual([200, 200])
    // Once it has a price, it is like any other collection.
    const other = { read_price_config: { price_per_access: 8 } }
    for (const name of ['dear', 'field', 'record']) expect(await define(name, other)).toBe(403)
    await app.create({ name: 'said', access_policy: { read: 'key' } })
    await app.store('filled', [{ id: 'a', f: 1 }])
    for (const name of ['said', 'filled']) expect(await define(name, dear)).toBe(403)
    expect(await define('old')).toBe(200)
    service().world.advance(10 * 60_000)
    expect(await define('old', dear)).toBe(403)
    service().world.advance(-10 * 60_000)
  })

  test('an index gives nothing away that strangers pay for, and says where that is confirmed', async () => {
    const app = await createData(service())
    const price = { per_access: '5000' }
    await app.create({ name: 'dear', access_policy: { read: 'public', price } })
    await app.store('dear', [{ id: 'a', f: 1 }])
    const body = { collection: 'dear', field_name: 'f', read_price_config: { price_per_access: 0 } }
    const refused = await app.call('POST', '/indexes', body)
    expect([refused.status, refused.body.code], refused.text).toEqual([409, 'PRICE_REMOVED'])
    expect((await app.listOpenly('dear')).body).not.toHaveProperty('records')
  })
})
