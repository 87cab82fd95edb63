import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('listAuthorizations', () =>
  withService((service) => {
    test('a wallet sees its own, Admin sees all, newest first, page by page, and never a key', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/authorizations`
      const [first, second] = [makeTestWallet(), makeTestWallet()]
      const ids: string[] = []
      for (const wallet of [first, second, first]) {
        const body = { grantee: `agent ${ids.length}`, spend_limit: '10' }
        const granted = await askSigned(service(), wallet, { method: 'POST', path, body })
        ids.unshift(granted.body.id)
      }
      const own = await askSigned(service(), first, { method: 'GET', path })
      expect(own.body.authorizations.map(({ id }: Json) => id)).toEqual([ids[0], ids[2]])
      expect(own.text).not.toMatch(/user_key|key_hash/)
      const none = await askSigned(service(), makeTestWallet(), { method: 'GET', path })
      expect(none.body).toEqual({ authorizations: [], next_cursor: null })
      const options = { headers: app.headers }
      const page = (await service().request('GET', `${path}?limit=2`, options)).body
      expect(page.authorizations.map(({ id }: Json) => id)).toEqual(ids.slice(0, 2))
      const next = `${path}?limit=2&cursor=${page.next_cursor}`
      const rest = (await service().request('GET', next, options)).body
      expect(rest.authorizations.map(({ id }: Json) => id)).toEqual(ids.slice(2))
      expect(rest.next_cursor).toBeNull()
      expect((await service().request('GET', `${path}?cursor=x`, options)).status).toBe(400)
      expect((await service().request('GET', path)).status).toBe(401)
    })
  }))
