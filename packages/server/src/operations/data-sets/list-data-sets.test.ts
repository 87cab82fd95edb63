import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listDataSets', () =>
  withService((service) => {
    test("the list has the application's own sets in the order of their names, without entries, and none of another's", async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      for (const name of ['b', 'a'])
        await app.call('POST', '/datasets', { name, kind: 'values', entries: ['secret', 7] })
      await other.call('POST', '/datasets', { name: 'theirs', kind: 'values', entries: [] })
      const { body, text } = await app.call('GET', '/datasets')
      expect(body.datasets).toMatchObject([
        { name: 'a', kind: 'values', count: 2, public: false, provider: 'application' },
        { name: 'b' },
      ])
      expect(body.datasets).toHaveLength(2)
      expect(text).not.toContain('secret')
    })
  }))
