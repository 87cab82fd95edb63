import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { withService } from '../support/per-engine.ts'
import type { TestApp } from '../support/service.ts'

const seconds = 1000

describe('API keys', () =>
  withService((service) => {
    const keys = (app: TestApp, body?: object) =>
      service().request('POST', `/api/apps/${app.appId}/keys`, { body, headers: app.headers })
    const list = async (app: TestApp) =>
      (await service().request('GET', `/api/apps/${app.appId}/keys`, { headers: app.headers })).body
        .keys
    const post = (path: string, headers: Readonly<Record<string, string>>, body?: object) =>
      service().request('POST', path, { body, headers })
    /** 200 while the key lives: any key of the application may read its stats with Read. */
    const use = async (app: TestApp, key: string) =>
      (
        await service().request('GET', `/api/apps/${app.appId}/stats`, {
          headers: { 'x-app-key': key },
        })
      ).status

    test('a key is shown once; what is kept is its SHA-256, its first 8 characters and its limits', async () => {
      const app = await service().createApp()
      const { status, body } = await keys(app, {
        name: 'agent',
        permissions: ['Read', 'Pay'],
        pay_limits: { max_payment_per_tx: 5, daily_allowance: '100', allowed_target_apps: null },
      })
      expect(status).toBe(201)
      expect(body.key_hash).toBe(createHash('sha256').update(body.key).digest('hex'))
      expect(body.prefix).toBe(body.key.slice(0, 8))
      expect(body.pay_limits).toEqual({
        max_payment_per_tx: '5',
        daily_allowance: '100',
        allowed_target_apps: null,
      })
      const listed = await list(app)
      expect(listed).toContainEqual(
        expect.objectContaining({ key_hash: body.key_hash, name: 'agent', status: 'active' }),
      )
      expect(JSON.stringify(listed)).not.toContain(body.key)
      const rows = await service().database.query(sql`SELECT body FROM system.api_key`)
      expect(JSON.stringify(rows)).not.toContain(body.key)
    })

    test('without a body a key may only read', async () => {
      const app = await service().createApp()
      expect((await keys(app)).body.permissions).toEqual(['Read'])
      const empty = await service().request('POST', `/api/apps/${app.appId}/keys`, {
        raw: '',
        headers: { ...app.headers, 'content-type': 'application/json' },
      })
      expect(empty.status).toBe(201)
    })

    test.each([
      { permissions: [] },
      { permissions: ['Own'] },
      { permissions: ['Read', 'Read'] },
      { expires_at: 'tomorrow' },
      { pay_limits: { max_payment_per_tx: '-1' } },
      { pay_limits: { other: 1 } },
      { unknown: true },
    ])('%j is refused', async (body) => {
      const app = await service().createApp()
      expect((await keys(app, body)).status).toBe(400)
    })

    test('a key that expires is dead at that time', async () => {
      const app = await service().createApp()
      const expires = new Date(service().world.now() + 60 * seconds).toISOString()
      const { key, key_hash } = (await keys(app, { expires_at: expires })).body
      expect(await use(app, key)).toBe(200)
      service().world.advance(61 * seconds)
      expect(await use(app, key)).toBe(401)
      expect(
        (await list(app)).find((one: { key_hash: string }) => one.key_hash === key_hash),
      ).toMatchObject({
        status: 'expired',
        revoked_at: null,
      })
    })

    test('a new text for the name kills the old one at once', async () => {
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

    test('a rotated key lives on for the overlap and not longer', async () => {
      const app = await service().createApp()
      const old = (await keys(app, { name: 'r', permissions: ['Read'] })).body
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

    test('without an overlap a rotated key is dead at once, and the last Admin can rotate itself', async () => {
      const app = await service().createApp()
      const rotated = await post(`/api/apps/${app.appId}/keys/${app.keyHash}/rotate`, app.headers)
      expect(await use(app, app.key)).toBe(401)
      const own = await post(`/api/apps/${app.appId}/keys`, { 'x-app-key': rotated.body.key })
      expect(own.status).toBe(201)
    })

    test('a revoked key is dead before the revocation is answered, and repeating it answers the same', async () => {
      const app = await service().createApp()
      const { key, key_hash } = (await keys(app)).body
      const path = `/api/apps/${app.appId}/keys/${key_hash}/revoke`
      const revoked = await post(path, app.headers)
      expect(revoked).toMatchObject({ status: 200, body: { success: true, key_hash } })
      expect(await use(app, key)).toBe(401)
      service().world.advance(seconds)
      expect((await post(path, app.headers)).body).toEqual(revoked.body)
      const open = await service().request('GET', '/health', { headers: { 'x-app-key': key } })
      expect(open.status, 'a dead key is refused on public paths too').toBe(401)
    })

    test('no request with the key succeeds once its revocation was sent and answered', async () => {
      const app = await service().createApp()
      const { key, key_hash } = (await keys(app)).body
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
      const app = await service().createApp()
      const { key, key_hash } = (await keys(app)).body
      await post(`/api/apps/${app.appId}/keys/${key_hash}/revoke`, app.headers)
      await service().restart()
      expect(await use(app, key)).toBe(401)
      expect(await use(app, app.key)).toBe(200)
    })

    test('the last Admin key cannot revoke itself; the operator may', async () => {
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

    test('two Admin keys that revoke each other at once: one stays', async () => {
      const app = await service().createApp()
      const other = (await keys(app, { permissions: ['Admin'] })).body
      const at = (hash: string) => `/api/apps/${app.appId}/keys/${hash}/revoke`
      await Promise.all([
        post(at(other.key_hash), app.headers),
        post(at(app.keyHash), { 'x-app-key': other.key }),
      ])
      const alive = [await use(app, app.key), await use(app, other.key)]
      expect(alive).toContain(200)
    })

    test('an unknown hash, and another application`s, are not found', async () => {
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

    test('an application has so many live keys and not more', async () => {
      const app = await service().createApp()
      const replies = await Promise.all(Array.from({ length: 100 }, () => keys(app)))
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(99)
      expect(replies.filter(({ status }) => status === 409)).toHaveLength(1)
    })

    test('when a key was last used is noted', async () => {
      const app = await service().createApp()
      const { key, key_hash } = (await keys(app)).body
      const entry = async () =>
        (await list(app)).find((one: { key_hash: string }) => one.key_hash === key_hash)
      expect((await entry()).last_used_at).toBeNull()
      await use(app, key)
      expect(Date.parse((await entry()).last_used_at)).toBeGreaterThan(0)
    })
  }))
