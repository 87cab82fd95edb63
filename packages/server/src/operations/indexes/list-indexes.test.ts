import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

describe('listIndexes', () =>
  withService((service) => {
    test('the list has the indexes of every collection of the application, and none of another', async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      for (const collection of ['c', 'd'])
        await app.call('POST', '/indexes', { collection, field_name: 'n' })
      await other.call('POST', '/indexes', { collection: 'theirs', field_name: 'n' })
      const listed = (await app.call('GET', '/indexes')).body
      expect(listed.map(({ name }: Json) => name)).toEqual(['c_n_idx', 'd_n_idx'])
      expect((await service().request('GET', `/api/apps/${app.appId}/indexes`)).status).toBe(401)
    })
  }))
