import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getApplication', () =>
  withService((service) => {
    test('strangers see the public fields, keys of the application also owner and counts', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}`
      const open = ['app_id', 'created_at', 'description', 'name', 'status']
      const stranger = await service().request('GET', path)
      expect(Object.keys(stranger.body).sort()).toEqual(open)
      const other = await service().createApp()
      const buyer = await service().request('GET', path, { headers: other.headers })
      expect(Object.keys(buyer.body).sort()).toEqual(open)
      const insider = await service().request('GET', path, { headers: app.headers })
      expect(insider.body).toMatchObject({ ...stranger.body, owner_address: null, collections: 0 })
      const alias = await service().request('GET', `/api/applications/${app.appId}`)
      expect(alias.body).toEqual(stranger.body)
    })
  }))
