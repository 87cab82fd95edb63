import { describe, expect, test } from 'vitest'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import { connect, connectTo, silenceConsole } from './sdk.ts'

const schema = { fields: { total: { type: 'number' as const, required: true } } }

describe('the unmodified public SDK: collections and indexes', () =>
  withService(
    (service) => {
      silenceConsole()

      test('createCollection makes the indexes of the schema and of its base fields, and updates them when it is called again', async () => {
        const { client, app } = await connect(service())
        const people = {
          name: 'people',
          fields: {
            email: { type: 'string', index: true },
            age: { type: 'number', index: true },
            bio: { type: 'string' },
          },
        } as const
        const made = await client.createCollection(people)
        expect(made).toMatchObject({ success: true, collection: 'people', warnings: [] })
        expect(made.indexes.map(({ status }) => status)).toEqual(made.indexes.map(() => 'created'))
        const again = await client.createCollection(people)
        expect(again.success).toBe(true)
        expect(new Set(again.indexes.map(({ status }) => status))).toEqual(new Set(['updated']))
        const { body } = await service().request(
          'GET',
          `/api/apps/${app.appId}/collections/people/indexes`,
          { headers: app.headers },
        )
        const fields = body.indexes.map(({ field_name }: { field_name: string }) => field_name)
        expect(fields.toSorted()).toEqual(
          ['age', 'createdAt', 'deletedAt', 'email', 'id', 'updatedAt'].toSorted(),
        )
        const info = await client.getCollectionInfo('people')
        expect(info.indexes).toHaveLength(6)
      })

      test('a key that may write and nothing else makes a collection with the prices of its schema, whose base fields come first', async () => {
        const app = await service().createApp()
        const made = await service().request('POST', `/api/apps/${app.appId}/keys`, {
          ...{ headers: app.headers, body: { permissions: ['Write'] } },
        })
        const { client, seen } = connectTo(service(), { appId: app.appId, appKey: made.body.key })
        const price = (pricePerAccess: number) =>
          ({ type: 'string', index: true, readPricing: { pricePerAccess } }) as const
        const fields = { isbn: price(0.001), title: price(0.001) }
        const result = await client.createCollection({ name: 'dear', fields })
        expect(result, JSON.stringify(seen.at(-1))).toMatchObject({ success: true })
        const asked = connectTo(service(), { appId: app.appId })
          .client.queryBuilder()
          .collection('dear')
          .execute()
        await expect(asked).rejects.toMatchObject({ statusCode: 402, quote: { amountRaw: '1000' } })
      })

      test('readers are asked for the read price of the schema, in the form that the SDK reads', async () => {
        const { client, app } = await connect(service())
        const pricing = {
          type: 'string',
          index: true,
          readPricing: { pricePerAccess: 0.001 },
        } as const
        await client.createCollection({ name: 'dear', fields: { isbn: pricing } })
        const buyer = connectTo(service(), { appId: app.appId })
        const asked = buyer.client.queryBuilder().collection('dear').execute()
        await expect(asked).rejects.toMatchObject({
          code: 'PAYMENT_REQUIRED',
          statusCode: 402,
          quote: {
            quoteId: expect.stringMatching(/./),
            amountRaw: '1000',
            totalCostTia: 0.001,
            chainType: 'evm',
            network: 'base-sepolia',
            tokenSymbol: 'USDC',
            tokenDecimals: 6,
            paymentMethod: 'x402-facilitator',
            brokerAddress: idleNetwork.pay_to,
            expiresAt: expect.any(Number),
            allOptions: [expect.objectContaining({ scheme: 'exact' })],
          },
        })
        expect(await client.countDocuments('dear'), 'its own key reads for nothing').toBe(0)
      })

      test('syncCollection adds missing indexes, removes surplus ones, and changes nothing the second time', async () => {
        const { client } = await connect(service())
        const unique = { email: { type: 'string', index: true, unique: true } } as const
        const dotted = { 'city.name': { type: 'string', index: true } } as const
        const sync = (fields: typeof unique | typeof dotted | object) =>
          client.syncCollection({ name: 'people', fields: { ...fields } })
        const first = await sync(unique)
        expect(first).toMatchObject({ success: true, removed: [], unchanged: [], errors: [] })
        expect(await sync(dotted)).toMatchObject({
          success: true,
          created: [{ field: 'city.name' }],
          removed: [{ field: 'email' }],
        })
        expect(await sync(dotted)).toMatchObject({ success: true, created: [], removed: [] })
        expect(await sync({}), 'a dotted field can be removed').toMatchObject({
          success: true,
          removed: [{ field: 'city.name' }],
        })
      })

      test('the low-level createIndex reads id, field, type and state', async () => {
        const { client } = await connect(service())
        const index = { collection: 'people', field: 'age', type: 'number' } as const
        expect(await client.createIndex(index)).toMatchObject({
          ...index,
          id: expect.any(String),
          status: 'active',
        })
      })

      test('the SDK asks for a quote and reads it', async () => {
        const { client, app } = await connect(service())
        await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] })
        const asked = {
          app_id: app.appId,
          operation_type: 'write',
          size_kb: 1,
          collection: 'people',
          monthly_volume_kb: 10,
          data: [{ id: 'y' }],
        } as const
        const quote = await client.getPricingQuote(asked)
        expect(quote).toMatchObject({
          type: 'write_quote_with_indexing',
          total_cost: 0,
          total_cost_utia: 0,
          base_total_cost: 0,
          broker_fee: 0,
          indexing_costs: {},
          indexed_fields_count: 0,
          monthly_volume_kb: 10,
          request: asked,
          currency: expect.any(String),
        })
      })

      test.each([
        ['with its key as apiKey', true],
        ['with its key as appKey', false],
      ])('the database manager makes every call that is built, %s', async (_how, asApiKey) => {
        const app = await service().createApp()
        const key = asApiKey ? { apiKey: app.key } : { appKey: app.key }
        const { client } = connectTo(service(), { appId: app.appId, ...key })
        const database = client.database(app.appId)
        const made = await database.createCollection('orders', {
          namespace: 'shop',
          primary_column: 'id',
          schema_definition: schema,
        })
        expect(made).toMatchObject({ name: 'orders', namespace: 'shop', access_policy: null })
        expect(await database.listCollections(true)).toMatchObject([{ name: 'orders' }])
        expect(await database.getCollection('orders', true)).toMatchObject({ namespace: 'shop' })
        const definition = { field_name: 'total', index_type: 'btree' } as const
        const created = await database.createIndexes('orders', [
          { ...definition, name: 'orders_total_idx' },
          { name: 'orders_two', field_name: '', index_type: 'composite', fields: ['a', 'b'] },
        ])
        expect(created).toMatchObject([
          { name: 'orders_total_idx', status: 'active' },
          { fields: ['a', 'b'] },
        ])
        const again = await database.createIndex({
          ...definition,
          name: 'orders_total_idx',
          collection: 'orders',
        })
        expect(again).toMatchObject({ updated: true })
        expect(await database.listIndexes()).toMatchObject([
          { field_name: 'total' },
          { field_name: 'a' },
        ])
        expect(await database.listIndexes('orders', true)).toMatchObject({ indexes: [{}, {}] })
        expect(await database.getIndex('orders', 'orders_total_idx')).toMatchObject({
          collection: 'orders',
        })
        expect(await database.validateSchema('orders', { id: 'a', total: 1 })).toEqual({
          valid: true,
        })
        expect(await database.validateSchema('orders', { id: 'a' })).toMatchObject({
          valid: false,
          errors: [expect.stringContaining('total')],
        })
        expect(await database.getDatabaseStats()).toMatchObject({
          total_collections: 1,
          total_indexes: 2,
          total_documents: 0,
        })
        expect(await database.getCollectionStats('orders')).toMatchObject({ document_count: 0 })
        expect(await database.createPriceIndex('sales', 'total')).toMatchObject({
          name: 'sales_total_price_index',
          price_config: { app_owner_percentage: 0.8, platform_percentage: 0.2 },
        })
        expect(await database.getIndexStatus('orders', 'orders_total_idx')).toMatchObject({
          building: false,
          progress: 1,
          created_at: expect.any(String),
        })
        expect(await database.getIndexStatistics('orders', 'orders_total_idx')).toMatchObject({
          size: expect.any(Number),
          usage_count: expect.any(Number),
        })
        const query = { find: { total: 1 } }
        expect(await database.explainQuery('orders', query)).toMatchObject({
          query,
          indexes_used: expect.any(Array),
          estimated_cost: expect.any(Number),
          execution_time_estimate: expect.any(Number),
          optimization_hints: expect.any(Array),
        })
        expect(await database.getOptimizationSuggestions('orders')).toMatchObject({
          missing_indexes: [],
          unused_indexes: expect.arrayContaining(['orders_two']),
          slow_queries: [],
          recommendations: expect.any(Array),
        })
        const success = { success: true, message: expect.any(String) }
        expect(await database.rebuildIndex('orders', 'orders_total_idx')).toMatchObject(success)
        expect(await database.dropIndex('orders', 'orders_total_idx')).toMatchObject(success)
        expect(await database.updateCollection('orders', {}, { validate: true })).toMatchObject({
          name: 'orders',
        })
        expect(await database.deleteCollection('orders', { force: true })).toMatchObject(success)
        expect(await database.healthCheck()).toMatchObject({
          healthy: true,
          version: expect.any(String),
          features: expect.arrayContaining(['collections']),
        })
        database.setApiKey('app_wrong')
        await expect(database.listIndexes()).rejects.toMatchObject({ response: { status: 400 } })
      })

      test('views are created, listed, read, refreshed and deleted, and a second creation says that the view exists', async () => {
        const { client, app } = await connect(service())
        const database = client.database(app.appId)
        await client.storeAndConfirm({
          collection: 'orders',
          data: [
            { id: 'a', total: 1, paid: true },
            { id: 'b', total: 2, paid: false },
          ],
        })
        const query = { select: ['id', 'total'], where: { paid: true }, orderBy: { total: 'desc' } }
        await database.createView('paid', ['orders'], query)
        await expect(database.createView('paid', ['orders'], query)).rejects.toMatchObject({
          response: { status: 409, data: { error: expect.stringContaining('already exists') } },
        })
        expect(await database.listViews()).toMatchObject([
          { name: 'paid', source_collections: ['orders'], created_at: expect.any(String) },
        ])
        expect(await database.getView('paid')).toMatchObject({ name: 'paid' })
        const success = { success: true, message: expect.any(String) }
        expect(await database.refreshView('paid')).toMatchObject(success)
        expect(await client.findMany('paid', {})).toEqual([{ id: 'a', total: 1 }])
        expect(await database.deleteView('paid')).toMatchObject(success)
        await expect(database.getView('paid')).rejects.toMatchObject({ response: { status: 404 } })
      })

      test('createRelation reads both ends and which indexes it has made', async () => {
        const { client } = await connect(service())
        const relation = {
          parent_collection: 'people',
          parent_field: 'id',
          child_collection: 'orders',
          child_field: 'person',
        }
        expect(await client.createRelation(relation)).toMatchObject({
          ...relation,
          created_at: expect.any(String),
          indexes_created: { parent_index: true, child_index: true },
        })
        expect(await client.createRelation(relation)).toMatchObject({
          indexes_created: { parent_index: false, child_index: false },
        })
      })

      test('executeBatch reads a result for each operation, and an operation that cannot be done refuses all', async () => {
        const { client, app } = await connect(service())
        const database = client.database(app.appId)
        const done = await database.executeBatch([
          { operation: 'create', collection: 'orders', data: { id: 'x', total: 1 } },
          { operation: 'update', collection: 'orders', data: { id: 'x', total: 2 } },
          { operation: 'delete', collection: 'orders', data: null, conditions: { total: 9 } },
        ])
        expect(done).toMatchObject([
          {
            success: true,
            operation: 'create',
            collection: 'orders',
            result: { results: [{ id: 'x' }] },
          },
          { success: true, operation: 'update', collection: 'orders' },
          { success: true, operation: 'delete', collection: 'orders' },
        ])
        expect(await client.findUnique('orders', { id: 'x' })).toMatchObject({ total: 2 })
        const refused = database.executeBatch([
          { operation: 'delete', collection: 'orders', data: { id: 'nobody' } },
        ])
        await expect(refused).rejects.toMatchObject({ response: { status: 404 } })
      })

      test('migrateSchema reads success, the number of migrated records, and what stands against the migration', async () => {
        const { client, app } = await connect(service())
        const database = client.database(app.appId)
        await client.storeAndConfirm({ collection: 'orders', data: [{ id: 'a', total: 1 }] })
        const wider = {
          fields: { ...schema.fields, paid: { type: 'boolean' as const, default: false } },
        }
        expect(await database.migrateSchema('orders', wider, { dryRun: true })).toMatchObject({
          success: true,
          migrated: 1,
        })
        expect(await database.migrateSchema('orders', wider, { batchSize: 10 })).toMatchObject({
          success: true,
          migrated: 1,
          errors: [],
        })
        const text = { fields: { total: { type: 'string' as const } } }
        expect(await database.migrateSchema('orders', text)).toMatchObject({
          success: false,
          errors: ['a: /total must be of type string'],
        })
      })

      test('blobs of the main client come back as they were sent, and their metadata is found', async () => {
        const { client } = await connect(service())
        const bytes = Uint8Array.of(0, 255, 13, 10)
        const blob = new Blob([bytes], { type: 'image/png' })
        const upload = { collection: 'avatars', blob, metadata: { by: 'alice' } }
        const { blob_id, ticket_id } = await client.uploadBlob(upload)
        await client.waitForTaskCompletion(ticket_id, 10)
        const found = await client.retrieveBlob({ collection: 'avatars', blob_id })
        expect(found).toEqual(Buffer.from(bytes))
        expect(await client.queryBlobMetadata('avatars', { by: 'alice' })).toMatchObject([
          { blob_id, by: 'alice', content_type: 'image/png', size_bytes: 4 },
        ])
        await expect(
          client.retrieveBlob({ collection: 'avatars', blob_id: 'blob_abc123' }),
        ).rejects.toThrow('Failed to retrieve blob')
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
