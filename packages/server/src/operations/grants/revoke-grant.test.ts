import { withService } from '@tollbase/testing/per-engine'
import { createSeller } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('revokeGrant', () =>
  withService((service) => {
    test('a grant is taken back once, by either verb, and by the application alone that gave it', async () => {
      const [app, other] = [await createSeller(service()), await createSeller(service())]
      const give = async () =>
        (await app.call('POST', '/grants', { grantee: other.appId, collection: 'sales' })).body.id
      const ways = [
        (id: string) => ['POST', `/grants/${id}/revoke`],
        (id: string) => ['DELETE', `/grants/${id}`],
      ] as const
      for (const way of ways) {
        const [method = '', path = ''] = way(await give())
        expect((await other.call(method, path)).body.code).toBe('GRANT_NOT_FOUND')
        expect((await app.call(method, path)).body).toMatchObject({ success: true })
        expect((await app.call(method, path)).body.code).toBe('GRANT_NOT_FOUND')
      }
      expect((await app.call('GET', '/grants')).body.grants).toEqual([])
    })
  }))
