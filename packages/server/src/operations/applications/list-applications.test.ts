import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listApplications', () =>
  withService((service) => {
    test('the operator lists all applications, and a caller without a key lists none', async () => {
      const app = await service().createApp()
      const { body } = await service().request('GET', '/api/apps', { headers: service().operator })
      expect(body.applications).toContainEqual(expect.objectContaining({ app_id: app.appId }))
      expect((await service().request('GET', '/api/apps')).status).toBe(401)
    })
  }))
