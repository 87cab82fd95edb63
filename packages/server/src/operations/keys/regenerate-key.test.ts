import { limits } from '@tollbase/contract/limits'
import { holdChanges, makeKeyCalls } from '@tollbase/testing/keys'
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

    test('the last Admin key is not replaced by one without Admin by a key, and by the operator it is', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/regenerate-key`
      const asked = { permissions: ['Read'] }
      const refused = await post(path, app.headers, asked)
      expect([refused.status, refused.body.code]).toEqual([409, 'LAST_ADMIN_KEY'])
      expect(await use(app, app.key)).toBe(200)
      const other = (await create(app, { permissions: ['Admin'] })).body
      expect((await post(path, app.headers, asked)).status).toBe(201)
      const last = { name: 'unnamed', ...asked }
      expect((await post(path, { 'x-app-key': other.key }, last)).status).toBe(409)
      expect((await post(path, service().operator, last)).status).toBe(201)
    })

    test('a name without a living key takes its place among the live keys of an application', async () => {
      const { create, post } = makeKeyCalls(service())
      const app = await service().createApp()
      await Promise.all(Array.from({ length: limits.keysPerApplicationMax - 1 }, () => create(app)))
      const path = `/api/apps/${app.appId}/regenerate-key`
      const fresh = await post(path, app.headers, { name: 'new' })
      expect([fresh.status, fresh.body.code]).toEqual([409, 'CONFLICT'])
      expect((await post(path, app.headers)).status).toBe(201)
    })

    test('a regenerated key is dead as soon as the request has arrived, however many changes wait before it', async () => {
      const { create, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key } = (await create(app, { name: 'leaked' })).body
      const goOn = holdChanges(service())
      const ask = () =>
        post(`/api/apps/${app.appId}/regenerate-key`, app.headers, { name: 'leaked' })
      const both = [ask(), ask()]
      await expect.poll(() => use(app, key)).toBe(401)
      await goOn()
      const [one, other] = await Promise.all(both)
      expect([one?.status, other?.status], 'the second one replaces the first').toEqual([201, 201])
      const alive = [await use(app, one?.body.key), await use(app, other?.body.key)]
      expect(alive.sort()).toEqual([200, 401])
    })

    test('a key that was revoked is followed by one with its permissions, its limits and what it has spent', async () => {
      const { post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const at = `/api/apps/${app.appId}`
      const asked = { name: 'agent', permissions: ['Pay'], pay_limits: { spend_allowance: '5000' } }
      const agent = await post(`${at}/keys`, app.headers, asked)
      await post(`${at}/keys/${agent.body.key_hash}/revoke`, app.headers)
      const next = await post(`${at}/regenerate-key`, app.headers, { name: 'agent' })
      expect(next.status, next.text).toBe(201)
      expect(next.body).toMatchObject({ ...asked, expires_at: null, replaced_key_hash: null })
      expect(await use(app, next.body.key)).toBe(403)
      const { tenants } = service().running.service
      const key = tenants.system.keys.get(app.appId, next.body.key_hash)
      expect(key?.budget).toBe(`key:${agent.body.key_hash}`)
    })

    test('a key that has run out is followed by one with its permissions, and without an end', async () => {
      const { post } = makeKeyCalls(service())
      const app = await service().createApp()
      const at = `/api/apps/${app.appId}`
      const end = new Date(service().world.now() + 5_000).toISOString()
      const asked = { name: 'short', permissions: ['Read'], expires_at: end }
      expect((await post(`${at}/keys`, app.headers, asked)).status).toBe(201)
      service().world.advance(6_000)
      const next = await post(`${at}/regenerate-key`, app.headers, { name: 'short' })
      expect(next.body).toMatchObject({ permissions: ['Read'], expires_at: null })
    })
  }))
