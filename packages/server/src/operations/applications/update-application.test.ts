import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('updateApplication', () =>
  withService((service) => {
    test('a change of an application shows at once, and fields that are not there are refused', async () => {
      const app = await service().createApp()
      const patch = (body: object) =>
        service().request('PATCH', `/api/apps/${app.appId}`, { body, headers: app.headers })
      expect((await patch({ name: 'New', description: 'What it is' })).body).toMatchObject({
        name: 'New',
        description: 'What it is',
      })
      expect((await patch({ description: null })).body).toMatchObject({
        name: 'New',
        description: null,
      })
      expect((await patch({ app_id: 'other' })).status).toBe(400)
      expect((await patch({ owner_address: 'not an address' })).status).toBe(400)
    })
  }))
