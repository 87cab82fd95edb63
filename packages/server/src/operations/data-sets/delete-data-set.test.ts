import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('deleteDataSet', () =>
  withService((service) => {
    test('a deleted set is gone with the answer, and its name is free for a new one of another kind', async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      const make = (data: Data, kind: string, entries: readonly string[]) =>
        data.call('POST', '/datasets', { name: 's', kind, entries })
      await make(app, 'values', ['x'])
      await make(other, 'values', ['x'])
      expect((await app.call('DELETE', '/datasets/s')).body.success).toBe(true)
      const gone = { status: 404, body: { code: 'DATA_SET_NOT_FOUND' } }
      expect(await app.call('GET', '/datasets/s')).toMatchObject(gone)
      expect(await app.call('DELETE', '/datasets/s')).toMatchObject(gone)
      expect((await other.call('GET', '/datasets/s')).status, 'others keep theirs').toBe(200)
      expect((await make(app, 'cidr', ['10.0.0.0/8'])).body).toMatchObject({ updated: false })
    })
  }))
