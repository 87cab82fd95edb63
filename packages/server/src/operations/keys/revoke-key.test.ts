import { holdChanges, makeKeyCalls } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

const seconds = 1000

describe('revokeKey', () =>
  withService((service) => {
    test('a revoked key is dead before the revocation is answered, and repeating it answers the same', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key, key_hash } = (await create(app)).body
      const path = `/api/apps/${app.appId}/keys/${key_hash}/revoke`
      const revoked = await post(path, app.headers)
      expect(revoked).toMatchObject({ status: 200, body: { success: true, key_hash } })
      expect(await use(app, key)).toBe(401)
      service().world.advance(seconds)
      expect((await post(path, app.headers)).body).toEqual(revoked.body)
      const open = await service().request('GET', '/health', { headers: { 'x-app-key': key } })
      expect(open.status, 'a dead key is refused on public paths too').toBe(401)
    })

    test('a key is dead as soon as its revocation has arrived, however many changes wait before it', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key, key_hash } = (await create(app)).body
      const goOn = holdChanges(service())
      const path = `/api/apps/${app.appId}/keys/${key_hash}/revoke`
      const revoking = [post(path, app.headers), post(path, app.headers)]
      await expect.poll(() => use(app, key)).toBe(401)
      await goOn()
      const [one, other] = await Promise.all(revoking)
      expect(one?.status).toBe(200)
      expect(other?.body).toEqual(one?.body)
      expect(await use(app, key)).toBe(401)
    })

    test('no request that begins after the answer to a revocation succeeds with the key', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key, key_hash } = (await create(app)).body
      let over = false
      const after: number[] = []
      const hammer = async () => {
        while (!over) {
          const began = answered
          const status = await use(app, key)
          if (began) after.push(status)
        }
      }
      let answered = false
      const hammers = [hammer(), hammer(), hammer()]
      await post(`/api/apps/${app.appId}/keys/${key_hash}/revoke`, app.headers)
      answered = true
      await expect.poll(() => after.length).toBeGreaterThan(10)
      over = true
      await Promise.all(hammers)
      expect(new Set(after)).toEqual(new Set([401]))
    })

    test('a revocation survives a restart', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key, key_hash } = (await create(app)).body
      await post(`/api/apps/${app.appId}/keys/${key_hash}/revoke`, app.headers)
      await service().restart()
      expect(await use(app, key)).toBe(401)
      expect(await use(app, app.key)).toBe(200)
    })

    test('the last Admin key cannot revoke itself, and the operator can revoke it', async () => {
      const { post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/keys/${app.keyHash}/revoke`
      expect(await post(path, app.headers)).toMatchObject({
        status: 409,
        body: { code: 'LAST_ADMIN_KEY' },
      })
      expect(await use(app, app.key)).toBe(200)
      expect((await post(path, service().operator)).status).toBe(200)
      expect(await use(app, app.key)).toBe(401)
      const rescued = await post(`/api/apps/${app.appId}/keys`, service().operator, {
        permissions: ['Admin'],
      })
      expect(rescued.status).toBe(201)
    })

    test('one Admin key stays where two revoke each other at once', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const other = (await create(app, { permissions: ['Admin'] })).body
      const at = (hash: string) => `/api/apps/${app.appId}/keys/${hash}/revoke`
      await Promise.all([
        post(at(other.key_hash), app.headers),
        post(at(app.keyHash), { 'x-app-key': other.key }),
      ])
      const alive = [await use(app, app.key), await use(app, other.key)]
      expect(alive).toContain(200)
    })

    test('a hash that is unknown or of another application is not found, by revocation and rotation alike', async () => {
      const { post } = makeKeyCalls(service())
      const [app, other] = [await service().createApp(), await service().createApp()]
      for (const hash of ['0'.repeat(64), other.keyHash]) {
        for (const action of ['revoke', 'rotate']) {
          const path = `/api/apps/${app.appId}/keys/${hash}/${action}`
          expect(await post(path, app.headers)).toMatchObject({
            status: 404,
            body: { code: 'KEY_NOT_FOUND' },
          })
        }
      }
      expect((await post(`/api/apps/${app.appId}/keys/XYZ/revoke`, app.headers)).status).toBe(404)
    })
  }))
