import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getRetention', () =>
  withService((service) => {
    test('the answer states the time before which records are expired now, which moves on with the clock', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      await app.call('POST', '/collections/c/retention', { retention_days: 40 })
      const read = async () => (await app.call('GET', '/collections/c/retention')).body
      const first = await read()
      expect(first).toMatchObject({ collection: 'c', retention_days: 40, tier: 'extended' })
      service().world.advance(3_600_000)
      const moved = Date.parse((await read()).expires_before) - Date.parse(first.expires_before)
      expect(Math.abs(moved - 3_600_000)).toBeLessThan(30_000)
    })

    test('a collection that is not there has no retention', async () => {
      const app = await createData(service())
      const none = await app.call('GET', '/collections/nothing/retention')
      expect(none).toMatchObject({ status: 404, body: { code: 'COLLECTION_NOT_FOUND' } })
    })
  }))
