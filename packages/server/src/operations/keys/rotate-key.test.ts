import { makeKeyCalls } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

const seconds = 1000

describe('rotateKey', () =>
  withService((service) => {
    test('a rotated key lives on for the overlap and no longer', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const old = (await create(app, { name: 'r', permissions: ['Read'] })).body
      const rotated = await post(
        `/api/apps/${app.appId}/keys/${old.key_hash}/rotate`,
        app.headers,
        { overlap_seconds: 100 },
      )
      expect(rotated.status).toBe(200)
      expect(rotated.body.old_key_hash).toBe(old.key_hash)
      expect(await use(app, old.key)).toBe(200)
      expect(await use(app, rotated.body.key)).toBe(200)
      service().world.advance(101 * seconds)
      expect(await use(app, old.key)).toBe(401)
      expect(await use(app, rotated.body.key)).toBe(200)
      const again = await post(`/api/apps/${app.appId}/keys/${old.key_hash}/rotate`, app.headers)
      expect(again.status).toBe(409)
    })

    test('a key that is rotated without an overlap is dead at once, and the last Admin key can rotate itself', async () => {
      const { post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const rotated = await post(`/api/apps/${app.appId}/keys/${app.keyHash}/rotate`, app.headers)
      expect(await use(app, app.key)).toBe(401)
      const own = await post(`/api/apps/${app.appId}/keys`, { 'x-app-key': rotated.body.key })
      expect(own.status).toBe(201)
    })
  }))
