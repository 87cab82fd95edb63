import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test, vi } from 'vitest'

describe('listApplications', () =>
  withService((service) => {
    test('the operator lists all applications, and a caller without a key lists none', async () => {
      const app = await service().createApp()
      const { body } = await service().request('GET', '/api/apps', { headers: service().operator })
      expect(body.applications).toContainEqual(expect.objectContaining({ app_id: app.appId }))
      expect((await service().request('GET', '/api/apps')).status).toBe(401)
    })

    test('an application that is archived while it is listed is listed as archived', async () => {
      const app = await service().createApp()
      const { tenants } = service().running.service
      const load = tenants.load.bind(tenants)
      vi.spyOn(tenants, 'load').mockImplementation(async (appId) => {
        if (appId === app.appId) {
          vi.restoreAllMocks()
          const path = `/api/apps/${appId}`
          await service().request('DELETE', path, { headers: service().operator })
        }
        return load(appId)
      })
      const { body } = await service().request('GET', '/api/apps', { headers: service().operator })
      expect(body.applications).toContainEqual(
        expect.objectContaining({ app_id: app.appId, status: 'archived' }),
      )
    })
  }))
