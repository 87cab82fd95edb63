import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getApplicationStats', () =>
  withService((service) => {
    test("an application's stats count its collections, its records and their bytes", async () => {
      const app = await service().createApp()
      await service().request('POST', '/store?wait=true', {
        body: { root: `${app.appId}::notes`, data: [{ id: 'a' }, { id: 'b' }] },
        headers: app.headers,
      })
      const { body } = await service().request('GET', `/api/apps/${app.appId}/stats`, {
        headers: app.headers,
      })
      expect(body).toMatchObject({ total_collections: 1, total_documents: 2, storage_size: 20 })
    })
  }))
