import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getApplicationHealth', () =>
  withService((service) => {
    test('an application says that it is there', async () => {
      const app = await service().createApp()
      const { body } = await service().request('GET', `/api/apps/${app.appId}/health`)
      expect(body.status).toBe('ok')
      expect(body.features.length).toBeGreaterThan(3)
    })
  }))
