import { BatchOperations, BulkBuilder } from '@onchaindb/sdk'
import { describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import { connect, silenceConsole } from './sdk.ts'

type Person = {
  id: string
  email: string
  age: number
  createdAt: string
  updatedAt: string
}

const person = (email: string, age: number) => ({ email, age, tags: ['a', 'b'] })

describe('the unmodified public SDK: stores of documents', () =>
  withService((service) => {
    silenceConsole()

    test('the SDK reads the health of the service', async () => {
      const { client } = await connect(service())
      expect(await client.health()).toMatchObject({ status: 'ok', version: expect.any(String) })
    })

    test('a document is created, found, counted, changed and deleted', async () => {
      const { client } = await connect(service())
      await client.syncCollection({
        name: 'people',
        fields: { email: { type: 'string', index: true, unique: true } },
      })
      const made = await client.createDocument<Person>('people', person('a@x', 1))
      await client.createDocument<Person>('people', person('b@x', 2))
      expect(await client.findUnique<Person>('people', { email: 'a@x' })).toEqual(made)
      expect(await client.countDocuments('people')).toBe(2)
      expect(await client.countDocuments('people', { age: 2 })).toBe(1)
      expect(await client.findMany<Person>('people', { age: 2 })).toMatchObject([{ email: 'b@x' }])
      const changed = await client.updateDocument<Person>('people', { email: 'a@x' }, { age: 7 })
      expect(changed).toMatchObject({ id: made.id, age: 7 })
      expect(await client.findUnique<Person>('people', { email: 'a@x' })).toMatchObject({ age: 7 })
      expect(await client.countDocuments('people')).toBe(2)
      expect(await client.deleteDocument('people', { email: 'a@x' })).toBe(true)
      expect(await client.findUnique('people', { email: 'a@x' })).toBeNull()
      expect(await client.countDocuments('people')).toBe(1)
      expect(await client.updateDocument('people', { email: 'none' }, { age: 1 })).toBeNull()
      expect(await client.deleteDocument('people', { email: 'none' })).toBe(false)
    })

    test('upsertDocument creates once and changes then, with ids of its own or of the caller', async () => {
      const { client } = await connect(service())
      const idGenerator = () => `own-${client.generateId()}`
      const upsert = (age: number) =>
        client.upsertDocument<Person>(
          'people',
          { email: 'u@x' },
          person('u@x', age),
          { age },
          undefined,
          { idGenerator },
        )
      await upsert(1)
      await upsert(2)
      expect(await client.findMany<Person>('people')).toMatchObject([
        { id: expect.stringMatching(/^own-\w{24}$/), email: 'u@x', age: 2 },
      ])
    })

    test('findMany pages and sorts, and finds nothing in a collection that is not there', async () => {
      const { client, seen } = await connect(service())
      const data = [3, 1, 2].map((age) => ({ id: `p${age}`, age }))
      await client.storeAndConfirm({ collection: 'people', data })
      const page = { limit: 2, offset: 1, sort: { field: 'age', order: 'desc' as const } }
      expect(await client.findMany('people', {}, page)).toEqual([data[2], data[1]])
      expect(await client.findMany('nothing')).toEqual([])
      expect(await client.findUnique('nothing', { id: 'x' })).toBeNull()
      expect(await client.countDocuments('nothing')).toBe(0)
      expect(seen.at(-1)).toMatchObject({ status: 404, body: { code: 'COLLECTION_NOT_FOUND' } })
      expect(seen.at(-1)?.body).not.toHaveProperty('records')
    })

    test('storeAndConfirm tells height and proof of the stored records, and a ticket can be followed', async () => {
      const { client } = await connect(service())
      const stored = await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] })
      expect(stored).toMatchObject({ id: 'x', confirmed: true, namespace: expect.any(String) })
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

    test('a store tells its listeners of ticket and confirmation', async () => {
      const { client, app } = await connect(service())
      const events: unknown[] = []
      client.on('transaction:queued', (ticket) => events.push(ticket))
      client.on('transaction:confirmed', (transaction) => events.push(transaction))
      await client.store({ root: `${app.appId}::people`, data: [{ id: 'x' }] })
      expect(events).toMatchObject([
        { ticket_id: expect.any(String), status: 'queued', message: expect.any(String) },
        { id: 'x', status: 'confirmed', block_height: expect.any(Number) },
      ])
    })

    test('a ticket that nobody gave is 404, which the SDK reports as an error', async () => {
      const { client, seen } = await connect(service())
      await expect(client.getTaskStatus('task_abc123')).rejects.toThrow()
      expect(seen.at(-1)).toMatchObject({ status: 404, body: { code: 'TASK_NOT_FOUND' } })
    })

    test('a store that breaks the schema fails, and nothing is stored', async () => {
      const { client, app, seen } = await connect(service())
      await service().request('POST', `/api/apps/${app.appId}/collections`, {
        body: {
          name: 'people',
          schema_definition: { fields: { age: { type: 'number', required: true } } },
        },
        headers: app.headers,
      })
      await expect(
        client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] }),
      ).rejects.toMatchObject({ code: 'STORE_ERROR' })
      expect(seen.at(-1)).toMatchObject({ status: 422, body: { code: 'SCHEMA_VIOLATION' } })
      expect(await client.countDocuments('people')).toBe(0)
    })

    test('BatchOperations stores many requests, confirmed or not, and tells of its progress', async () => {
      const { client, app } = await connect(service())
      const builder = new BulkBuilder()
        .collection('unused')
        .app('unused')
        .add({ id: 'a' }, 'people', app.appId)
        .addMany([{ id: 'b' }, { id: 'c' }], 'people', app.appId)
      expect(builder.count()).toBe(3)
      const progress: string[] = []
      const stored = await client.batch().store(builder.build(), {
        concurrency: 2,
        waitForConfirmation: true,
        onProgress: (done: number, total: number) => progress.push(`${done}/${total}`),
      })
      expect(stored.map(({ id }: { id: string }) => id)).toEqual(['a', 'b', 'c'])
      expect(progress).toEqual(['1/3', '2/3', '3/3'])
      const more = new BatchOperations(client)
      const [ticket] = await more.storeWithRetry([{ collection: 'people', data: [{ id: 'd' }] }])
      await client.waitForTaskCompletion(ticket?.ticket_id ?? '', 20)
      expect(await client.countDocuments('people')).toBe(4)
      expect(builder.clear().count()).toBe(0)
    })

    test('BatchOperations tries again what fails, and says how much failed', async () => {
      const { client, seen } = await connect(service())
      const requests = [
        { collection: 'people', data: [{ id: 'a' }] },
        { collection: 'not a name', data: [{ id: 'b' }] },
      ]
      const batch = new BatchOperations(client)
      const tries = batch.storeWithRetry(requests, { maxRetries: 1, retryDelay: 1 })
      await expect(tries).rejects.toThrow('1/2 requests failed')
      expect(seen.map(({ status }) => status).sort()).toEqual([202, 202, 400, 400])
      // The confirmation of transactions reads from a node of another chain, never from this service; without time
      // it gives up.
      const waited = await batch.waitForBatchConfirmation(['ab'.repeat(32)], 0)
      expect(waited).toMatchObject([{ status: 'failed' }])
    })

    test.each(['//', '/'])('an endpoint that ends in %s works as one without', async (end) => {
      const { client } = await connect(service(), { endpoint: `${service().url}${end}` })
      await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] })
      expect(await client.findMany('people')).toEqual([{ id: 'x' }])
    })

    test('the paying key goes beside the application key, gives no rights, and must be a good one', async () => {
      const paying = await service().createApp()
      const { client, app } = await connect(service(), { userKey: paying.key })
      await client.storeAndConfirm({ collection: 'people', data: [{ id: 'x' }] })
      expect(await client.countDocuments('people')).toBe(1)
      const headers = { 'x-app-key': paying.key, 'x-user-key': app.key }
      const asked = { body: { root: `${app.appId}::people`, data: [{}] }, headers }
      expect((await service().request('POST', '/store', asked)).status).toBe(401)
      const wrong = await connect(service(), { userKey: 'user_yyy' })
      expect(await wrong.client.findMany('people')).toEqual([])
      expect(wrong.seen).toMatchObject([{ status: 401, body: { code: 'UNAUTHORIZED' } }])
    })
  }))
