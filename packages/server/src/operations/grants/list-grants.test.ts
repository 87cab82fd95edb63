import { withService } from '@tollbase/testing/per-engine'
import { createSeller } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('listGrants', () =>
  withService((service) => {
    test('the list names each grant as it was given, and none of other applications', async () => {
      const [app, other] = [await createSeller(service()), await createSeller(service())]
      expect((await app.call('GET', '/grants')).body).toEqual({ grants: [] })
      const body = { grantee: other.appId, collection: 'sales', per_access: '77' }
      const given = await app.call('POST', '/grants', body)
      expect(given.body).toMatchObject(body)
      expect((await app.call('GET', '/grants')).body.grants).toEqual([given.body])
      expect((await other.call('GET', '/grants')).body.grants).toEqual([])
    })
  }))
