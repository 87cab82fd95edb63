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
