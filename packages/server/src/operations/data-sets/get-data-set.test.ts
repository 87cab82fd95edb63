import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getDataSet', () =>
  withService((service) => {
    test("a set is described without its entries, and another application's is not found", async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      const set = { name: 'known', kind: 'cidr', entries: ['10.0.0.0/8', '10.1.0.0/16'] }
      const { updated: _, ...made } = (await app.call('POST', '/datasets', set)).body
      const { body, text } = await app.call('GET', '/datasets/known')
      expect(body).toEqual(made)
      expect(text).not.toContain('10.0.0.0')
      expect(await other.call('GET', '/datasets/known')).toMatchObject({
        status: 404,
        body: { code: 'DATA_SET_NOT_FOUND' },
      })
    })
  }))
