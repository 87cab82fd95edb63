import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getIndex', () =>
  withService((service) => {
    test('an index is found by its name on its own collection, and on no other', async () => {
      const app = await createData(service())
      const body = { collection: 'c', fields: ['a', 'b'], index_type: 'composite', name: 'pair' }
      const { id } = (await app.call('POST', '/indexes', body)).body
      await app.create({ name: 'd' })
      const found = await app.call('GET', '/collections/c/indexes/pair')
      expect(found.body).toMatchObject({
        id,
        collection: 'c',
        fields: ['a', 'b'],
        status: 'active',
      })
      for (const at of ['c/indexes/none', 'd/indexes/pair'])
        expect(await app.call('GET', `/collections/${at}`)).toMatchObject({
          status: 404,
          body: { code: 'INDEX_NOT_FOUND' },
        })
    })
  }))
