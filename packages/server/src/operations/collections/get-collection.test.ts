import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getCollection', () =>
  withService((service) => {
    test('a collection is found by its name and by its id, and a private one is not there for strangers', async () => {
      const app = await createData(service())
      const { body } = await app.create({ name: 'orders', access_policy: 'private' })
      const other = await createData(service())
      for (const at of ['orders', body.collection_id]) {
        expect((await app.call('GET', `/collections/${at}`)).body).toEqual(body)
        for (const headers of [{}, other.headers]) {
          const path = `/api/apps/${app.appId}/collections/${at}`
          expect(await service().request('GET', path, { headers })).toMatchObject({
            status: 404,
            body: { code: 'COLLECTION_NOT_FOUND' },
          })
        }
      }
      expect((await other.call('GET', `/collections/${body.collection_id}`)).status).toBe(404)
    })
  }))
