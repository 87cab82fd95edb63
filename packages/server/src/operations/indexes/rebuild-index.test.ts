import { createData, listIds } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('rebuildIndex', () =>
  withService((service) => {
    test('a rebuilt index is active in the reply and keeps its name and its id, and queries answer as before', async () => {
      const app = await createData(service())
      await app.store('c', [
        { id: 'a', n: 1 },
        { id: 'b', n: 2 },
      ])
      await app.call('POST', '/indexes', { collection: 'c', field_name: 'n' })
      const before = (await app.call('GET', '/indexes')).body
      const rebuilt = await app.call('POST', '/collections/c/indexes/c_n_idx/rebuild')
      expect(rebuilt.body).toMatchObject({ success: true, status: 'active' })
      expect((await app.call('GET', '/indexes')).body).toEqual(before)
      expect(listIds(await app.list('c', { find: { n: 2 } }))).toEqual(['b'])
    })

    test('a rebuild is for Admin alone', async () => {
      const app = await createData(service())
      await app.call('POST', '/indexes', { collection: 'c', field_name: 'n' })
      const made = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
      const path = `/api/apps/${app.appId}/collections/c/indexes/c_n_idx/rebuild`
      const headers = { 'x-app-key': made.body.key }
      expect((await service().request('POST', path, { headers })).status).toBe(403)
    })
  }))
