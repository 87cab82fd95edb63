import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('prices of what is deleted', () =>
  withService((service) => {
    const priced = async () => {
      const app = await createData(service())
      await app.store('prices', [{ id: 'a' }])
      for (let version = 1; version <= 2; version++)
        await app.call('POST', '/queries', { name: 'all', source_collection: 'prices' })
      await app.call('POST', '/views', {
        ...{ name: 'ids', source_collections: ['prices'] },
        query: { select: ['id'], from: 'prices' },
      })
      await app.store('others', [{ id: 'a' }])
      const target = (of: object, amount: string) => ({
        ...{ target: of, operation: 'read', model: 'per_access', amount },
      })
      const set = await app.call('PATCH', '/pricing', {
        set: [
          target({ collection: 'prices' }, '1'),
          { ...target({ collection: 'prices' }, '2'), operation: 'write' },
          target({ query: 'all' }, '3'),
          target({ view: 'ids' }, '4'),
          target({ collection: 'others' }, '5'),
        ],
      })
      expect(set.status, set.text).toBe(200)
      return app
    }
    const listAmounts = async (app: Data) => {
      const { rules } = (await app.call('GET', '/pricing')).body
      // The owner can send back what it was shown: no rule has a target that is not there.
      expect((await app.call('PUT', '/pricing', { rules })).status).toBe(200)
      return rules.map(({ amount }: { amount: string }) => amount)
    }

    test('rules end with their collection, and with the views and queries that go with it', async () => {
      const app = await priced()
      const gone = await app.call('DELETE', '/collections/prices', { cascade: true })
      expect(gone.status, gone.text).toBe(200)
      expect(await listAmounts(app)).toEqual(['5'])
    })

    test('a new collection of the name of a priced one is for its own keys, and has the price that it is given', async () => {
      const app = await priced()
      await app.call('DELETE', '/collections/prices', { cascade: true })
      await app.store('prices', [{ id: 'b', secret: 'not for sale' }])
      expect((await app.listOpenly('prices', { limit: 1 })).status).toBe(401)
      await app.call('DELETE', '/collections/prices')
      await app.create({ name: 'prices', access_policy: { price: { per_access: '9000' } } })
      const asked = {
        app: app.appId,
        collection: 'prices',
        operation_type: 'read',
        rows: 1,
        size_kb: 1,
      }
      const quote = await service().request('POST', '/api/pricing/quote', { body: asked })
      expect(quote.body.total_cost_atomic).toBe('9000')
    })

    test('rules of a view end with it, and stay where it is replaced', async () => {
      const app = await priced()
      const replaced = await app.call('POST', '/views', {
        ...{ name: 'ids', source_collections: ['prices'], or_replace: true },
        query: { select: ['id'], from: 'prices', limit: 1 },
      })
      expect(replaced.status, replaced.text).toBe(201)
      expect(await listAmounts(app)).toEqual(['1', '2', '3', '4', '5'])
      await app.call('DELETE', '/views/ids')
      expect(await listAmounts(app)).toEqual(['1', '2', '3', '5'])
    })

    test('rules of a query end with its last version', async () => {
      const app = await priced()
      await app.call('DELETE', '/queries/all?version=2')
      expect(await listAmounts(app)).toEqual(['1', '2', '3', '4', '5'])
      await app.call('DELETE', '/queries/all')
      expect(await listAmounts(app)).toEqual(['1', '2', '4', '5'])
    })
  }))
