import { makeKeyCalls } from '@tollbase/testing/keys'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listKeys', () =>
  withService((service) => {
    test('the list tells when a key was last used', async () => {
      const { create, find, use } = makeKeyCalls(service())
      const app = await service().createApp()
      const { key, key_hash } = (await create(app)).body
      const entry = () => find(app, key_hash)
      expect((await entry()).last_used_at).toBeNull()
      await use(app, key)
      expect(Date.parse((await entry()).last_used_at)).toBeGreaterThan(0)
    })
  }))
