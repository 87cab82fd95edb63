import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { holdChanges, makeKeyCalls } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'

const seconds = 1000

const makeTargets = (count: number) =>
  Array.from({ length: count }, (_, index) => `t${String(index).padStart(62, '0')}`)

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
      { expires_at: '2020-01-01T00:00:00Z' },
      { expires_at: '2030-12-31T23:59:60Z' },
      { pay_limits: { max_payment_per_tx: '-1' } },
      { pay_limits: { other: 1 } },
      { unknown: true },
    ])('the key %j is refused with 400', async (body) => {
      const { create } = makeKeyCalls(service())
      const app = await service().createApp()
      expect((await create(app, body)).status).toBe(400)
    })

    test('a key is limited to 100 applications and no more', async () => {
      const { create } = makeKeyCalls(service())
      const app = await service().createApp()
      const ask = async (count: number) =>
        (await create(app, { pay_limits: { allowed_target_apps: makeTargets(count) } })).status
      expect([await ask(limits.payTargetsMax), await ask(limits.payTargetsMax + 1)]).toEqual([
        201, 400,
      ])
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

    test('dead keys leave the memory but for those that died last, and all that is asked of them goes on', async () => {
      const { create, find, list, post, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const at = `/api/apps/${app.appId}`
      const pay_limits = { allowed_target_apps: makeTargets(limits.payTargetsMax) }
      const asked = (index: number) => ({ name: `n${index}`, permissions: ['Pay'], pay_limits })
      const revoke = async (hash: string) =>
        (await post(`${at}/keys/${hash}/revoke`, app.headers)).body
      const made: { readonly key: string; readonly key_hash: string }[] = []
      const revoked: { readonly revoked_at: string }[] = []
      for (let index = 0; index < 60; index++) {
        const { status, body } = await create(app, asked(index))
        expect(status).toBe(201)
        made.push(body)
        revoked.push(await revoke(body.key_hash))
        service().world.advance(1)
      }
      const [first, last] = [made[0], made.at(-1)]
      if (first === undefined || last === undefined) throw new Error('no keys')
      for (const isAgain of [false, true]) {
        if (isAgain) await service().restart()
        const listed = await list(app)
        expect(listed.length).toBeLessThan(58)
        expect(JSON.stringify(listed).length).toBeLessThan(2 * limits.deadKeysBytesMax)
        expect(listed[0].key_hash, 'the living one is the oldest').toBe(app.keyHash)
        expect(await find(app, last.key_hash)).toMatchObject({ status: 'revoked', pay_limits })
        expect(await find(app, first.key_hash)).toBeUndefined()
        expect([await use(app, first.key), await use(app, app.key)]).toEqual([401, 200])
        expect(await revoke(first.key_hash)).toEqual(revoked[0])
        const rotated = await post(`${at}/keys/${first.key_hash}/rotate`, app.headers)
        expect(rotated.status).toBe(409)
        const { keys } = service().running.service.tenants.system
        const budgets = new Set(keys.listBudgets(app.appId))
        for (const { key_hash: hash } of made) expect(budgets).toContain(`key:${hash}`)
      }
      const unknown = await post(`${at}/regenerate-key`, app.headers, { name: 'n0' })
      expect([unknown.status, unknown.body.code]).toEqual([409, 'CONFLICT'])
      const known = await post(`${at}/regenerate-key`, app.headers, { name: 'n59' })
      expect(known.body).toMatchObject({ permissions: ['Pay'], pay_limits })
      const given = await post(`${at}/regenerate-key`, app.headers, asked(0))
      expect(given.status, given.text).toBe(201)
    })

    test('a request whose key is revoked while it waits makes no key', async () => {
      const { create, list, post } = makeKeyCalls(service())
      const app = await service().createApp()
      const other = (await create(app, { permissions: ['Admin'] })).body
      const at = `/api/apps/${app.appId}`
      const goOn = holdChanges(service())
      const waiting = ['keys', 'authorizations', 'regenerate-key'].map((path) => {
        const body =
          path === 'authorizations' ? { grantee: 'a', spend_limit: 1 } : { name: 'of a thief' }
        return post(`${at}/${path}`, { 'x-app-key': other.key }, body)
      })
      await new Promise((resolve) => setTimeout(resolve, 300))
      const revoking = post(`${at}/keys/${other.key_hash}/revoke`, app.headers)
      await expect
        .poll(async () => (await post(`${at}/keys`, { 'x-app-key': other.key })).status)
        .toBe(401)
      await goOn()
      expect((await revoking).status).toBe(200)
      expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([401, 401, 401])
      expect(await list(app)).toHaveLength(2)
    })

    test('an application has 100 live keys and no more, however many are created at once', async () => {
      const { create } = makeKeyCalls(service())
      const app = await service().createApp()
      const replies = await Promise.all(Array.from({ length: 100 }, () => create(app)))
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(99)
      expect(replies.filter(({ status }) => status === 409)).toHaveLength(1)
    })
  }))
