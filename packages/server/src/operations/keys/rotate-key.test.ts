import { limits } from '@tollbase/contract/limits'
import { holdChanges, makeKeyCalls } from '@tollbase/testing/keys'
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

    test('a rotated key that goes on counts to the live ones, and one that ends does not', async () => {
      const { create, post } = makeKeyCalls(service())
      const app = await service().createApp()
      const others = Array.from({ length: limits.keysPerApplicationMax - 1 }, () => create(app))
      const [some] = await Promise.all(others)
      const path = `/api/apps/${app.appId}/keys/${some?.body.key_hash}/rotate`
      const going = await post(path, app.headers, { overlap_seconds: 100 })
      expect([going.status, going.body.code]).toEqual([409, 'CONFLICT'])
      expect((await post(path, app.headers)).status).toBe(200)
    })

    test('a key that is rotated is dead while the rotation waits, and lives on where that is refused', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key, key_hash } = (await create(app)).body
      const admin = (await create(app, { permissions: ['Admin'] })).body
      const at = `/api/apps/${app.appId}/keys`
      const goOn = holdChanges(service())
      const rotating = post(`${at}/${key_hash}/rotate`, { 'x-app-key': admin.key })
      await expect.poll(() => use(app, key)).toBe(401)
      const revoking = post(`${at}/${admin.key_hash}/revoke`, app.headers)
      await expect.poll(() => use(app, admin.key)).toBe(401)
      await goOn()
      expect([(await rotating).status, (await revoking).status]).toEqual([401, 200])
      expect([await use(app, key), await use(app, admin.key)]).toEqual([200, 401])
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
