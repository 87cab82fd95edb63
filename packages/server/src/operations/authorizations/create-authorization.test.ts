import { limits } from '@tollbase/contract/limits'
import { withService } from '@tollbase/testing/per-engine'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test, vi } from 'vitest'

describe('createAuthorization', () =>
  withService((service) => {
    test('a wallet grants from its own balance by its signature, an Admin key from the application, and nobody else', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/authorizations`
      const wallet = makeTestWallet()
      const body = { grantee: 'an agent', spend_limit: '5000', max_per_tx: 100 }
      const granted = await askSigned(service(), wallet, { method: 'POST', path, body })
      expect(granted.status, granted.text).toBe(201)
      expect(granted.body).toMatchObject({
        ...{ app_id: app.appId, granter: wallet.address, grantee: 'an agent', status: 'active' },
        ...{ spend_limit: '5000', max_per_tx: '100', daily_limit: null, allowed_targets: null },
        usd: { spend_limit: '0.005', max_per_tx: '0.0001', spent: '0.00' },
        ...{ spent: '0', revoked_at: null },
      })
      expect(granted.body.id).toMatch(/^auth_[0-9a-f]{32}$/)
      expect(granted.body.user_key).toMatch(/^app_[0-9A-Za-z]{43}$/)
      const years = Date.parse(granted.body.expires_at) - service().world.now()
      expect(Math.round(years / 86_400_000)).toBe(365)
      const { height, sequence } = granted.body.entry
      const proof = `/api/apps/system/chain/proof?height=${height}&sequence=${sequence}`
      expect((await service().request('GET', proof)).status).toBe(200)
      const own = await service().request('POST', path, { body, headers: app.headers })
      expect(own.body.granter).toBe(app.appId)
      const other = await service().createApp()
      expect((await service().request('POST', path, { body })).status).toBe(401)
      const foreign = await service().request('POST', path, { body, headers: other.headers })
      expect(foreign.status).toBe(401)
      const userKey = { 'x-user-key': granted.body.user_key }
      const again = await service().request('POST', path, { body, headers: userKey })
      expect(again.status, 'what may spend may not grant').toBe(401)
    })

    test('the key of an authorization has no right in its application, and is none of its keys', async () => {
      const app = await service().createApp()
      const at = `/api/apps/${app.appId}`
      const body = { grantee: app.appId, spend_limit: 1 }
      const wallet = makeTestWallet()
      const asked = { method: 'POST', path: `${at}/authorizations`, body }
      const { user_key: userKey } = (await askSigned(service(), wallet, asked)).body
      const headers = { 'x-app-key': userKey }
      expect((await service().request('GET', `${at}/stats`, { headers })).status).toBe(401)
      const own = await service().request('POST', `${at}/authorizations`, {
        ...{ body, headers: app.headers },
      })
      const ofApp = { headers: { 'x-app-key': own.body.user_key } }
      expect((await service().request('GET', `${at}/stats`, ofApp)).status).toBe(403)
      const { keys } = (await service().request('GET', `${at}/keys`, { headers: app.headers })).body
      expect(keys).toHaveLength(1)
    })

    test('wallets have so many bytes of live authorizations through one application, and others can be granted elsewhere', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const { tenants } = service().running.service
      const bytesEach = 300_000
      const entries = Array.from({ length: 60 }, (_, index) => {
        const record = {
          ...{ id: `auth_${index}`, app_id: app.appId, account: `wallet:0x${index}` },
          ...{ grantee: 'x'.repeat(bytesEach / 1.5), spend_limit: '1', max_per_tx: null },
          ...{ daily_limit: null, allowed_targets: null, key_hash: `${index}`, prefix: 'app_' },
          ...{ created_at: new Date(0).toISOString(), revoked_at: null },
          expires_at: new Date(service().world.now() + 3_600_000).toISOString(),
        }
        const header = { type: 'authorization', app: app.appId }
        return { header, body: JSON.stringify(record) }
      })
      const count = Math.floor(limits.walletAuthorizationsBytesMax / bytesEach)
      expect(count).toBeLessThan(60)
      const write = async (some: typeof entries) => {
        for (const entry of some) {
          const { height } = await tenants.system.chain.append([entry])
          await tenants.system.chain.whenApplied(height)
        }
      }
      const body = { grantee: 'an agent', spend_limit: 1 }
      const grant = ({ appId } = app) =>
        askSigned(service(), makeTestWallet(), {
          ...{ method: 'POST', path: `/api/apps/${appId}/authorizations`, body },
        })
      await write(entries.slice(0, count - 1))
      expect((await grant()).status).toBe(201)
      await write(entries.slice(count - 1, count + 1))
      await service().restart()
      const refused = await grant()
      expect([refused.status, refused.body.code]).toEqual([409, 'CONFLICT'])
      expect((await grant(other)).status).toBe(201)
      // So many bytes of all applications would take this test minutes.
      const { authorizations } = service().running.service.tenants.system
      vi.spyOn(authorizations, 'findFull').mockReturnValueOnce('all')
      const none = await grant(other)
      expect([none.status, none.body.error]).toEqual([409, expect.stringContaining('its share')])
      const at = `/api/apps/${app.appId}/authorizations`
      const own = await service().request('POST', at, { body, headers: app.headers })
      expect(own.status, "the application's own are not of wallets").toBe(201)
      for (const id of ['auth_0', 'auth_1', 'auth_2'])
        await service().request('POST', `${at}/${id}/revoke`, { headers: app.headers })
      expect((await grant()).status).toBe(201)
      const listed = (await service().request('GET', `${at}?limit=1000`, { headers: app.headers }))
        .body
      expect(listed.authorizations.length).toBeGreaterThan(0)
    })

    test('an authorization is limited to 100 applications and no more', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/authorizations`
      const ask = async (count: number) => {
        const allowed_targets = Array.from({ length: count }, (_, index) => `target-${index}`)
        const body = { grantee: 'a', spend_limit: 1, allowed_targets }
        return (await service().request('POST', path, { body, headers: app.headers })).status
      }
      expect([await ask(limits.payTargetsMax), await ask(limits.payTargetsMax + 1)]).toEqual([
        201, 400,
      ])
    })

    test.each([
      [{ spend_limit: '1' }, '/grantee'],
      [{ grantee: '', spend_limit: '1' }, '/grantee'],
      [{ grantee: 'a\u0000b', spend_limit: '1' }, '/grantee'],
      [{ grantee: 'a'.repeat(201), spend_limit: '1' }, '/grantee'],
      [{ grantee: 'a' }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: '0' }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: '-1' }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: 1.5 }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: '1e3' }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: '01' }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: '9'.repeat(17) }, '/spend_limit'],
      [{ grantee: 'a', spend_limit: '1', max_per_tx: '0' }, '/max_per_tx'],
      [{ grantee: 'a', spend_limit: '1', daily_limit: '0' }, '/daily_limit'],
      [{ grantee: 'a', spend_limit: '1', allowed_targets: [] }, '/allowed_targets'],
      [{ grantee: 'a', spend_limit: '1', allowed_targets: ['A B'] }, '/allowed_targets/0'],
      [{ grantee: 'a', spend_limit: '1', expires_at: '2020-01-01T00:00:00Z' }, '/expires_at'],
      [{ grantee: 'a', spend_limit: '1', expires_at: 'never' }, '/expires_at'],
      [{ grantee: 'a', spend_limit: '1', owner: 'me' }, '/owner'],
    ])('%j is refused at %s', async (body, field) => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/authorizations`
      const reply = await service().request('POST', path, { body, headers: app.headers })
      expect([reply.status, reply.body.details?.field], reply.text).toEqual([400, field])
    })
  }))
