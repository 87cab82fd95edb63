import { holdChanges } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'
import { audit } from '../../operator/audit/audit.ts'
import { rebuild } from '../../operator/rebuild.ts'

describe('revokeAuthorization', () =>
  withService((service) => {
    const body = { grantee: 'an agent', spend_limit: '5000' }

    async function grant(appId: string, wallet = makeTestWallet()) {
      const path = `/api/apps/${appId}/authorizations`
      const granted = await askSigned(service(), wallet, { method: 'POST', path, body })
      expect(granted.status, granted.text).toBe(201)
      const { id, user_key: userKey }: Json = granted.body
      return { id, userKey, wallet, path, revoke: `${path}/${id}/revoke` }
    }

    const use = async (key: string) =>
      (await service().request('GET', '/health', { headers: { 'x-user-key': key } })).status

    test('a revoked authorization is dead at once, for good, and repeated the answer is the same', async () => {
      const app = await service().createApp()
      const { id, userKey, wallet, revoke } = await grant(app.appId)
      expect(await use(userKey)).toBe(200)
      const revoked = await askSigned(service(), wallet, { method: 'POST', path: revoke })
      expect(revoked.body).toMatchObject({ success: true, id })
      expect(await use(userKey)).toBe(401)
      service().world.advance(1000)
      const again = await askSigned(service(), wallet, { method: 'POST', path: revoke })
      expect(again.body).toEqual(revoked.body)
      await service().restart()
      expect(await use(userKey)).toBe(401)
      await service().whileStopped(async (config) => {
        const report = await audit(config, () => undefined)
        expect(report.difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      expect(await use(userKey)).toBe(401)
    })

    test('its key is dead as soon as the revocation has arrived, however many changes wait before it', async () => {
      const app = await service().createApp()
      const { userKey, revoke } = await grant(app.appId)
      const goOn = holdChanges(service())
      const revoking = service().request('POST', revoke, { headers: app.headers })
      await expect.poll(() => use(userKey)).toBe(401)
      await goOn()
      expect((await revoking).status).toBe(200)
      expect(await use(userKey)).toBe(401)
    })

    test('dead ones leave the memory but for those that died last, and are revoked again as before', async () => {
      const app = await service().createApp()
      const at = `/api/apps/${app.appId}/authorizations`
      const headers = app.headers
      const targets = Array.from(
        { length: 100 },
        (_, index) => `t${String(index).padStart(62, '0')}`,
      )
      const asked = { ...body, allowed_targets: targets }
      const made: { readonly id: string; readonly user_key: string }[] = []
      const ended: Json[] = []
      for (let index = 0; index < 60; index++) {
        made.push((await service().request('POST', at, { headers, body: asked })).body)
        const path = `${at}/${made.at(-1)?.id}/revoke`
        ended.push((await service().request('POST', path, { headers })).body)
        service().world.advance(1)
      }
      for (const isAgain of [false, true]) {
        if (isAgain) await service().restart()
        const { authorizations: listed } = (
          await service().request('GET', `${at}?limit=1000`, { headers })
        ).body
        expect(listed.length).toBeLessThan(58)
        expect(listed[0].id, 'the newest is the first').toBe(made.at(-1)?.id)
        const path = `${at}/${made[0]?.id}/revoke`
        expect((await service().request('POST', path, { headers })).body).toEqual(ended[0])
        expect(await use(made[0]?.user_key ?? '')).toBe(401)
        const { authorizations } = service().running.service.tenants.system
        const budgets = new Set(authorizations.listBudgets(app.appId))
        for (const { id } of made) expect(budgets).toContain(id)
      }
    })

    test('whoever was the owner before a key named another one sees and revokes what keys granted, for a day', async () => {
      const [app, mine, theirs] = [await service().createApp(), makeTestWallet(), makeTestWallet()]
      const at = `/api/apps/${app.appId}`
      const name = { owner_address: mine.address }
      await service().request('PATCH', at, { headers: service().operator, body: name })
      const named = { method: 'PATCH', path: at, body: { owner_address: theirs.address } }
      expect((await askSigned(service(), theirs, { ...named, headers: app.headers })).status).toBe(
        200,
      )
      const path = `${at}/authorizations`
      const grant = () => service().request('POST', path, { headers: app.headers, body })
      const { id, user_key: userKey }: Json = (await grant()).body
      const { id: later }: Json = (await grant()).body
      const list = async () =>
        (await askSigned(service(), mine, { method: 'GET', path })).body.authorizations
      expect(await list()).toHaveLength(2)
      const revoke = (one: string) =>
        askSigned(service(), mine, { method: 'POST', path: `${path}/${one}/revoke` })
      expect((await revoke(id)).status).toBe(200)
      expect(await use(userKey)).toBe(401)
      service().world.advance(25 * 3_600_000)
      expect(await list()).toEqual([])
      expect((await revoke(later)).status).toBe(404)
    })

    test('no request that begins after the answer to a revocation succeeds with the key', async () => {
      const app = await service().createApp()
      const { userKey, wallet, revoke } = await grant(app.appId)
      let [isOver, isAnswered] = [false, false]
      const after: number[] = []
      const hammer = async () => {
        while (!isOver) {
          const isLate = isAnswered
          const status = await use(userKey)
          if (isLate) after.push(status)
        }
      }
      const hammers = [hammer(), hammer(), hammer()]
      await askSigned(service(), wallet, { method: 'POST', path: revoke })
      isAnswered = true
      await expect.poll(() => after.length).toBeGreaterThan(10)
      isOver = true
      await Promise.all(hammers)
      expect(new Set(after)).toEqual(new Set([401]))
    })

    test("who granted it may, and Admin of its application; to others' wallets it does not exist, and its own key cannot", async () => {
      const app = await service().createApp()
      const one = await grant(app.appId)
      const stranger = await askSigned(service(), makeTestWallet(), {
        ...{ method: 'POST', path: one.revoke },
      })
      expect([stranger.status, stranger.body.code]).toEqual([404, 'AUTHORIZATION_NOT_FOUND'])
      const headers = { 'x-user-key': one.userKey }
      expect((await service().request('POST', one.revoke, { headers })).status).toBe(401)
      const other = await service().createApp()
      const elsewhere = one.revoke.replace(app.appId, other.appId)
      const misplaced = await askSigned(service(), one.wallet, { method: 'POST', path: elsewhere })
      expect(misplaced.status).toBe(404)
      expect((await service().request('POST', one.revoke)).status).toBe(401)
      expect(await use(one.userKey)).toBe(200)
      const admin = await service().request('POST', one.revoke, { headers: app.headers })
      expect(admin.status).toBe(200)
      expect(await use(one.userKey)).toBe(401)
    })

    test('an authorization ends at its time', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/authorizations`
      const end = new Date(service().world.now() + 60_000).toISOString()
      const granted = await service().request('POST', path, {
        ...{ body: { ...body, expires_at: end }, headers: app.headers },
      })
      expect(await use(granted.body.user_key)).toBe(200)
      service().world.advance(61_000)
      expect(await use(granted.body.user_key)).toBe(401)
      const { authorizations } = (await service().request('GET', path, { headers: app.headers }))
        .body
      expect(authorizations[0].status).toBe('expired')
    })
  }))
