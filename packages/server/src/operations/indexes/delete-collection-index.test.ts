import { createData, listIds } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('deleteCollectionIndex', () =>
  withService((service) => {
    test('an index is deleted on its own collection alone, and queries answer the same without it', async () => {
      const app = await createData(service())
      for (const collection of ['c', 'd'])
        await app.call('POST', '/indexes', { collection, field_name: 'n', name: 'same' })
      await app.store('c', [{ id: 'a', n: 1 }])
      expect((await app.call('DELETE', '/collections/c/indexes/same')).body.success).toBe(true)
      const listed = (await app.call('GET', '/indexes')).body
      expect(listed).toMatchObject([{ collection: 'd', name: 'same' }])
      expect(listIds(await app.list('c', { find: { n: 1 } }))).toEqual(['a'])
      expect((await app.call('DELETE', '/collections/c/indexes/same')).body.code).toBe(
        'INDEX_NOT_FOUND',
      )
    })
  }))
