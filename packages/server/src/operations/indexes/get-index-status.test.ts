import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getIndexStatus', () =>
  withService((service) => {
    test('the status of a built index counts all records of its collection as done, and those of later stores', async () => {
      const app = await createData(service())
      await app.store('c', [{ id: 'a', n: 1 }, { id: 'b' }])
      await app.call('POST', '/indexes', { collection: 'c', field_name: 'n' })
      const status = async () =>
        (await app.call('GET', '/collections/c/indexes/c_n_idx/status')).body
      const built = { status: 'active', building: false, progress: 1 }
      expect(await status()).toMatchObject({ ...built, rows_done: 2, rows_total: 2 })
      await app.store('c', [{ id: 'c' }])
      expect(await status()).toMatchObject({ ...built, rows_done: 3, rows_total: 3 })
      expect(await status()).not.toHaveProperty('error')
      expect((await app.call('GET', '/collections/c/indexes/none/status')).body.code).toBe(
        'INDEX_NOT_FOUND',
      )
    })
  }))
