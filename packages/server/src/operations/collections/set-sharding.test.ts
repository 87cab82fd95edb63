import { limits } from '@tollbase/contract/limits'
import { createData, type Data, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

const shard = (app: Data, keys: readonly object[], more: object = {}) =>
  app.call('PATCH', '/collections/prices/sharding', { keys, enforce_in_queries: true, ...more })

const market = { field: 'market', type: 'discrete' }
const day = { field: 'at', type: 'time_range', granularity: 'day' }
const user = { field: 'user', type: 'hash_distributed', num_buckets: 16 }

async function prices(service: Parameters<typeof createData>[0]): Promise<Data> {
  const app = await createData(service)
  await app.create({ name: 'prices' })
  await app.store('prices', [
    { id: 'a', market: 'x', at: '2026-01-01T00:00', user: 1 },
    { id: 'b', market: 'y', at: '2026-01-02T00:00', user: 2 },
  ])
  return app
}

describePerEngine('setSharding', (service) => {
  test('the keys are shown with the collection, and get the indexes that are missing', async () => {
    const app = await prices(service())
    await app.call('POST', '/indexes', { collection: 'prices', fields: ['at', 'market'] })
    const sent = [market, { ...day, type: 'time_series' }, { ...user, type: 'hashed' }]
    const { status, body } = await shard(app, sent, { max_shard_size: 50_000_000 })
    expect(status).toBe(200)
    const sharding = {
      keys: [market, day, user],
      enforce_in_queries: true,
      max_shard_size: 50_000_000,
    }
    expect(body.sharding).toEqual(sharding)
    const shown = (await app.call('GET', '/collections/prices')).body
    expect(shown.sharding).toEqual(sharding)
    expect(shown.indexes.map(({ fields }: { fields: string[] }) => fields.join())).toEqual([
      'at,market',
      'market',
      'user',
    ])
    await app.call('PUT', '/collections/prices', { sort_column: 'at' })
    expect((await app.call('GET', '/collections/prices')).body.sharding).toEqual(sharding)
  })

  test('a query without a key is refused where queries must state one, and is told the keys', async () => {
    const app = await prices(service())
    await app.call('PUT', '/collections/prices', { access_policy: 'public' })
    await shard(app, [market, day, user])
    const taken = [
      { market: 'x' },
      { market: { in: ['x', 'y'] } },
      { at: { greaterThan: '2026-01-01' } },
      { at: { startsWith: '2026' } },
      { user: 1 },
      { and: [{ id: 'a' }, { user: { is: 1 } }] },
      { or: [{ market: 'x' }, { user: 2 }, { at: { lessThan: 'z' } }] },
    ]
    const refused = [
      {},
      { id: 'a' },
      { user: { greaterThan: 0 } },
      { market: { isNot: 'x' } },
      { not: [{ market: 'x' }] },
      { market: { exists: true } },
      { market: { includes: 'x' } },
      { or: [{ market: 'x' }, { id: 'b' }] },
      { market: { startsWithCaseInsensitive: 'x' } },
    ]
    for (const find of taken) {
      const reply = await app.list('prices', { find })
      // Each branch of an "or" states a key, though not the same one in each.
      if ('or' in find) expect(reply.status, JSON.stringify(find)).toBe(400)
      else expect(listIds(reply).length, JSON.stringify(find)).toBeGreaterThan(0)
    }
    for (const find of refused) {
      for (const reply of [
        await app.list('prices', { find }),
        await app.listOpenly('prices', { find }),
      ]) {
        expect(reply.status, JSON.stringify(find)).toBe(400)
        expect(reply.body.error).toContain('market, at, user')
        expect(reply.body.details.field).toBe('/find')
      }
    }
    const single = await app.record('prices', 'a')
    expect(single.status, 'a record by its key is no query').toBe(200)
  })

  test('no query is refused where queries need state no key, and a list of no keys ends the sharding', async () => {
    const app = await prices(service())
    await shard(app, [market], { enforce_in_queries: false })
    expect((await app.list('prices')).body.total).toBe(2)
    await shard(app, [market])
    expect((await app.list('prices')).status).toBe(400)
    const { body } = await shard(app, [], { enforce_in_queries: false })
    expect(body.sharding).toBeNull()
    expect((await app.list('prices')).body.total).toBe(2)
  })

  test.each([
    ['a type that is none', [{ ...market, type: 'round_robin' }], '/keys/0'],
    [
      'a granularity of what is no time',
      [{ ...market, granularity: 'day' }],
      '/keys/0/granularity',
    ],
    ['buckets of what is not hashed', [{ ...day, num_buckets: 4 }], '/keys/0/num_buckets'],
    ['a key twice', [market, market], '/keys/1/field'],
    ['an empty field', [{ ...market, field: 'a..b' }], '/keys/0/field'],
    ['no key to state', [], '/keys'],
    [
      'too many keys',
      Array.from({ length: limits.shardKeysMax + 1 }, (_, at) => ({ ...market, field: `f${at}` })),
      '/keys',
    ],
    ['too many buckets', [{ ...user, num_buckets: limits.shardBucketsMax + 1 }], '/keys/0'],
  ])('sharding by %s is refused, and the place is named', async (_what, keys, field) => {
    const app = await prices(service())
    const { status, body } = await shard(app, keys)
    expect(status).toBe(400)
    expect(body.details.field).toContain(field)
    expect((await app.call('GET', '/collections/prices')).body.sharding).toBeNull()
  })

  test('a collection takes the most keys and buckets that the limits allow', async () => {
    const app = await prices(service())
    const keys = Array.from({ length: limits.shardKeysMax }, (_, at) => ({
      ...user,
      field: `f${at}`,
      num_buckets: limits.shardBucketsMax,
    }))
    expect((await shard(app, keys)).body.sharding.keys).toEqual(keys)
  })
})
