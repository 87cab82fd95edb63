import { makeKeyCalls } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('regenerateKey', () =>
  withService((service) => {
    test('regenerating a key kills the old one of its name at once, and creates one where there is none', async () => {
      const { post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/regenerate-key`
      const { status, body } = await post(path, app.headers)
      expect(status).toBe(201)
      expect(body).toMatchObject({ name: 'default', replaced_key_hash: app.keyHash })
      expect(await use(app, app.key)).toBe(401)
      expect(await use(app, body.key)).toBe(200)
      expect(body.permissions).toEqual(['Read', 'Write', 'Admin'])
      const fresh = await post(path, { 'x-app-key': body.key }, { name: 'new' })
      expect(fresh.body).toMatchObject({ name: 'new', replaced_key_hash: null })
    })
  }))
