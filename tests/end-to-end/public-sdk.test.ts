import { createClient, createHttpClient, OnChainDB, type OnChainDBClient } from '@onchaindb/sdk'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { withService } from '../support/per-engine.ts'
import type { TestApp } from '../support/service.ts'

type Person = {
  id: string
  email: string
  age: number
  city: { name: string }
  tags: string[]
  updatedAt: string
}

/** The SDK as it is on npm, against this service: it prints what it does, and swallows errors into null and []. */
describe('the public SDK, unmodified', () =>
  withService((service) => {
    beforeAll(() => {
      vi.spyOn(console, 'log').mockImplementation(() => undefined)
    })
    afterAll(() => void vi.restoreAllMocks())

    const connect = async (
      more: object = {},
    ): Promise<{ client: OnChainDBClient; app: TestApp }> => {
      const app = await service().createApp()
      const client = createClient({
        endpoint: service().url,
        appId: app.appId,
        appKey: app.key,
        ...more,
      })
      // It throws as an EventEmitter does where nobody listens for errors.
      client.on('error', () => undefined)
      return { client, app }
    }
    const person = (email: string, age: number) => ({
      email,
      age,
      city: { name: 'Wien' },
      tags: ['a', 'b'],
    })

    test('health', async () => {
      const { client } = await connect()
      expect(await client.health()).toMatchObject({ status: 'ok', version: expect.any(String) })
    })

    test('createCollection makes the indexes of the schema and of its base fields; again, they are updated', async () => {
      const { client, app } = await connect()
      const schema = {
        name: 'people',
        fields: {
          email: { type: 'string', index: true },
          age: { type: 'number', index: true },
          bio: { type: 'string' },
        },
      } as const
      const made = await client.createCollection(schema)
      expect(made).toMatchObject({ success: true, collection: 'people' })
      expect(made.indexes.map(({ status }) => status)).toEqual(made.indexes.map(() => 'created'))
      const again = await client.createCollection(schema)
      expect(again.success).toBe(true)
      expect(new Set(again.indexes.map(({ status }) => status))).toEqual(new Set(['updated']))
      const { body } = await service().request(
        'GET',
        `/api/apps/${app.appId}/collections/people/indexes`,
        {
          headers: app.headers,
        },
      )
      const fields = body.indexes.map(({ field_name }: { field_name: string }) => field_name)
      expect(fields).toEqual(
        expect.arrayContaining(['id', 'createdAt', 'updatedAt', 'email', 'age']),
      )
    })

    test('syncCollection adds what is missing, removes what is too much, and changes nothing the second time', async () => {
      const { client } = await connect()
      const fields = { email: { type: 'string', index: true, unique: true } } as const
      const first = await client.syncCollection({ name: 'people', fields })
      expect(first).toMatchObject({ success: true, removed: [], unchanged: [], errors: [] })
      const second = await client.syncCollection({
        name: 'people',
        fields: { 'city.name': { type: 'string', index: true } },
      })
      expect(second).toMatchObject({
        success: true,
        created: [{ field: 'city.name' }],
        removed: [{ field: 'email' }],
      })
      const third = await client.syncCollection({
        name: 'people',
        fields: { 'city.name': { type: 'string', index: true } },
      })
      expect(third).toMatchObject({ success: true, created: [], removed: [] })
      const fourth = await client.syncCollection({ name: 'people', fields: {} })
      expect(fourth, 'a dotted field can be removed').toMatchObject({
        success: true,
        removed: [{ field: 'city.name' }],
      })
    })

    test('a document is created, found, counted, changed and deleted', async () => {
      const { client } = await connect()
      await client.syncCollection({
        name: 'people',
        fields: { email: { type: 'string', index: true, unique: true } },
      })
      const made = await client.createDocument<Person & { createdAt: string }>(
        'people',
        person('a@x', 1),
      )
      await client.createDocument<Person & { createdAt: string }>('people', person('b@x', 2))
      expect(await client.findUnique<Person>('people', { email: 'a@x' })).toEqual(made)
      expect(await client.countDocuments('people')).toBe(2)
      expect(await client.findMany<Person>('people', { age: 2 })).toMatchObject([{ email: 'b@x' }])
      const changed = await client.updateDocument<Person>('people', { email: 'a@x' }, { age: 7 })
      expect(changed).toMatchObject({ id: made.id, age: 7 })
      expect(await client.findUnique<Person>('people', { email: 'a@x' })).toMatchObject({ age: 7 })
      expect(await client.countDocuments('people')).toBe(2)
      expect(await client.deleteDocument('people', { email: 'a@x' })).toBe(true)
      expect(await client.findUnique('people', { email: 'a@x' })).toBeNull()
      expect(await client.countDocuments('people')).toBe(1)
      expect(await client.updateDocument('people', { email: 'none' }, { age: 1 })).toBeNull()
    })

    test('upsertDocument creates once and changes then', async () => {
      const { client } = await connect()
      const upsert = (age: number) =>
        client.upsertDocument<Person & { createdAt: string }>(
          'people',
          { email: 'u@x' },
          person('u@x', age),
          { age },
        )
      await upsert(1)
      await upsert(2)
      expect(await client.findMany<Person>('people')).toMatchObject([{ email: 'u@x', age: 2 }])
    })

    test('storeAndConfirm tells height and proof of what is stored; a ticket can be followed', async () => {
      const { client } = await connect()
      const stored = await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] })
      expect(stored).toMatchObject({ id: 'x', confirmed: true })
      expect(stored.block_height).toBeGreaterThan(0)
      expect(stored.transaction_hash).toMatch(/^[0-9a-f]{64}$/)
      const queued = await client.store(
        { collection: 'people', data: [{ id: 'y' }] },
        undefined,
        false,
      )
      const ticket = queued.ticket_id ?? ''
      const done = await client.waitForTaskCompletion(ticket, 20)
      expect(done).toMatchObject({ ticket_id: ticket, status: 'Completed' })
      expect((await client.getTaskStatus(ticket)).result.results[0].id).toBe('y')
    })

    test('a store that breaks the schema fails, and nothing is stored', async () => {
      const { client, app } = await connect()
      await service().request('POST', `/api/apps/${app.appId}/collections`, {
        body: {
          name: 'people',
          schema_definition: { fields: { age: { type: 'number', required: true } } },
        },
        headers: app.headers,
      })
      await expect(
        client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] }),
      ).rejects.toThrow()
      expect(await client.countDocuments('people')).toBe(0)
    })

    test('the query builder: conditions, nested fields, selection, order, pages, sums and groups', async () => {
      const { client } = await connect()
      const people = [
        { id: 'a', age: 30, city: { name: 'Wien' }, name: 'Anna' },
        { id: 'b', age: 40, city: { name: 'Graz' }, name: 'Bert' },
        { id: 'c', age: 50, city: { name: 'Wien' }, name: 'Cora' },
      ]
      await client.storeAndConfirm({ collection: 'people', data: people })
      const query = () => client.queryBuilder().collection('people')
      const ids = ({ records }: { records: unknown[] }) => (records as Person[]).map(({ id }) => id)
      expect(ids(await query().whereField('age').greaterThan(35).selectAll().execute())).toEqual([
        'b',
        'c',
      ])
      expect(
        ids(await query().whereField('city.name').equals('Wien').selectAll().execute()),
      ).toEqual(['a', 'c'])
      expect(ids(await query().whereField('age').between(30, 40).selectAll().execute())).toEqual([
        'a',
        'b',
      ])
      expect(
        ids(await query().whereField('name').in(['Anna', 'Cora']).selectAll().execute()),
      ).toEqual(['a', 'c'])
      expect(ids(await query().whereField('none').notExists().selectAll().execute())).toEqual([
        'a',
        'b',
        'c',
      ])
      const page = await query().selectFields(['name']).orderBy('name').limit(1).offset(1).execute()
      expect(page).toMatchObject({ records: [{ name: 'Bert' }], total: 3, page: 2, limit: 1 })
      expect(await query().count()).toBe(3)
      expect(await query().sumBy('age')).toBe(120)
      expect(await query().groupBy('city.name').count()).toEqual({ Wien: 2, Graz: 1 })
      await client.storeAndConfirm({ collection: 'people', data: [{ ...people[0], age: 31 }] })
      expect(ids(await query().includeHistory().selectAll().execute())).toEqual([
        'a',
        'b',
        'c',
        'a',
      ])
    })

    test('a quote can be asked for', async () => {
      const { client, app } = await connect()
      await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] })
      const quote = await client.getPricingQuote({
        app_id: app.appId,
        operation_type: 'write',
        size_kb: 1,
        collection: 'people',
      })
      expect(quote).toMatchObject({ total_cost: 0, currency: expect.any(String) })
    })

    test.each([
      ['with its key as apiKey', true],
      ['with its key as appKey', false],
    ])(
      'the database manager, %s: collections, indexes, validation, stats',
      async (_how, asApiKey) => {
        const app = await service().createApp()
        const client = createClient({
          endpoint: service().url,
          appId: app.appId,
          ...(asApiKey ? { apiKey: app.key } : { appKey: app.key }),
        })
        const database = client.database(app.appId)
        await database.createCollection('orders', { namespace: 'shop', primary_column: 'id' })
        expect(await database.listCollections(true)).toMatchObject([{ name: 'orders' }])
        expect(await database.getCollection('orders')).toMatchObject({ namespace: 'shop' })
        expect(
          await database.createIndex({
            name: 'orders_total_idx',
            collection: 'orders',
            field_name: 'total',
            index_type: 'btree',
          }),
        ).toMatchObject({ name: 'orders_total_idx', status: 'active' })
        expect(await database.listIndexes()).toMatchObject([{ field_name: 'total' }])
        expect(await database.getIndex('orders', 'orders_total_idx')).toMatchObject({
          collection: 'orders',
        })
        expect(await database.validateSchema('orders', { id: 'a' })).toEqual({ valid: true })
        expect(await database.getDatabaseStats()).toMatchObject({
          total_collections: 1,
          total_indexes: 1,
        })
        expect(await database.dropIndex('orders', 'orders_total_idx')).toMatchObject({
          success: true,
        })
        expect(await database.updateCollection('orders', {}, { validate: true })).toMatchObject({
          name: 'orders',
        })
        expect(await database.deleteCollection('orders', { force: true })).toMatchObject({
          success: true,
        })
        expect(await database.healthCheck()).toMatchObject({ features: expect.any(Array) })
      },
    )

    test('the static class: health, information, queries as they are, and indexes', async () => {
      const { client, app } = await connect()
      await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x', age: 1 }] })
      OnChainDB.configure(createHttpClient({ type: 'fetch' }), service().url, app.key)
      expect(await OnChainDB.healthCheck()).toBe(true)
      expect(await OnChainDB.serverInfo()).toMatchObject({ data: { name: 'tollbase' } })
      const query = { root: `${app.appId}::people`, find: { age: { is: 1 } }, select: {} }
      expect(await OnChainDB.rawQuery(JSON.stringify(query))).toMatchObject({
        data: { records: [{ id: 'x' }] },
      })
      expect(await OnChainDB.queryFromJson(query)).toMatchObject({ data: { total: 1 } })
      expect(await OnChainDB.createIndex(app.appId, 'people', 'age')).toMatchObject({
        data: { field_name: 'age', status: 'active' },
      })
      expect(await OnChainDB.createUniqueIndex(app.appId, 'people', 'email')).toMatchObject({
        data: { field_name: 'email', unique_constraint: true },
      })
    })
  }))
