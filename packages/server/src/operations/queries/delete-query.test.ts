import { withService } from '@tollbase/testing/per-engine'
import { createQueryCalls } from '@tollbase/testing/queries'
import { describe, expect, test } from 'vitest'

describe('deleteQuery', () =>
  withService((service) => {
    test('one version is deleted alone, and the newest of those that are left answers', async () => {
      const { ask, data, define } = await createQueryCalls(service())
      for (let version = 1; version <= 3; version++)
        await define({ name: 'versioned', source_collection: 'open' })
      expect((await data.call('DELETE', '/queries/versioned?version=3')).status).toBe(200)
      expect((await ask('versioned')).body.version).toBe(2)
      expect((await ask('versioned', {}, '?version=3')).status).toBe(404)
    })

    test('a deletion without a version deletes all versions, and a second one is 404', async () => {
      const { ask, data, define } = await createQueryCalls(service())
      for (let version = 1; version <= 2; version++)
        await define({ name: 'gone', source_collection: 'open' })
      expect((await data.call('DELETE', '/queries/gone')).status).toBe(200)
      for (const query of ['', '?version=1'])
        expect((await ask('gone', {}, query)).status).toBe(404)
      expect(await data.call('DELETE', '/queries/gone')).toMatchObject({
        status: 404,
        body: { code: 'QUERY_NOT_FOUND' },
      })
    })
  }))
