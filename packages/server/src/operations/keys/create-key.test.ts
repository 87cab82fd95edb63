import { createHash } from 'node:crypto'
import { makeKeyCalls } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'

const seconds = 1000

describe('createKey', () =>
  withService((service) => {
    test('a key is shown once; only its SHA-256, its first 8 characters and its limits are kept', async () => {
      const { create, list } = makeKeyCalls(service())
      const app = await service().createApp()
      const { status, body } = await create(app, {
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
      const usd = { max_payment_per_tx: '0.000005', daily_allowance: '0.0001' }
      expect(body.usd).toEqual(usd)
      const listed = await list(app)
      expect(listed).toContainEqual(
        expect.objectContaining({ key_hash: body.key_hash, name: 'agent', status: 'active', usd }),
      )
      expect(JSON.stringify(listed)).not.toContain(body.key)
      const rows = await service().database.query(sql`SELECT body FROM system.api_key`)
      expect(JSON.stringify(rows)).not.toContain(body.key)
    })

    test('a key that is created without a body may only read', async () => {
      const { create } = makeKeyCalls(service())
      const app = await service().createApp()
      expect((await create(app)).body.permissions).toEqual(['Read'])
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
    ])('the key %j is refused with 400', async (body) => {
      const { create } = makeKeyCalls(service())
      const app = await service().createApp()
      expect((await create(app, body)).status).toBe(400)
    })

    test('a key dies at the time at which it expires', async () => {
      const { create, find, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const expires = new Date(service().world.now() + 60 * seconds).toISOString()
      const { key, key_hash } = (await create(app, { expires_at: expires })).body
      expect(await use(app, key)).toBe(200)
      service().world.advance(61 * seconds)
      expect(await use(app, key)).toBe(401)
      expect(await find(app, key_hash)).toMatchObject({
        status: 'expired',
        revoked_at: null,
      })
    })

    test('an application has 100 live keys and no more, however many are created at once', async () => {
      const { create } = makeKeyCalls(service())
      const app = await service().createApp()
      const replies = await Promise.all(Array.from({ length: 100 }, () => create(app)))
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(99)
      expect(replies.filter(({ status }) => status === 409)).toHaveLength(1)
    })
  }))
