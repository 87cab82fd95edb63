import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

describe('listCollectionIndexes', () =>
  withService((service) => {
    test('the list has the indexes of its collection alone, and a deleted one is gone from it at once', async () => {
      const app = await createData(service())
      for (const [collection, field_name] of [
        ['c', 'a'],
        ['c', 'b'],
        ['d', 'a'],
      ])
        await app.call('POST', '/indexes', { collection, field_name })
      const names = async () =>
        (await app.call('GET', '/collections/c/indexes')).body.indexes.map(({ name }: Json) => name)
      expect(await names()).toEqual(['c_a_idx', 'c_b_idx'])
      await app.call('DELETE', '/collections/c/indexes/c_a_idx')
      expect(await names()).toEqual(['c_b_idx'])
      expect((await app.call('GET', '/collections/none/indexes')).body.code).toBe(
        'COLLECTION_NOT_FOUND',
      )
    })
  }))
