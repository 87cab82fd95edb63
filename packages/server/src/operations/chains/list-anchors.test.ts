import { createOpenData, readChain } from '@tollbase/testing/chains'
import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listAnchors', () =>
  withService((service) => {
    test('a service that anchors nothing has an empty list, and a cursor of another list is refused', async () => {
      const app = await createOpenData(service())
      expect(await readChain(service(), app, '/anchors')).toEqual({
        anchors: [],
        next_cursor: null,
      })
      for (const cursor of ['1', '1.', 'x.bm90ZQ', '1.bm90ZQ.2']) {
        const refused = await readChain(service(), app, `/anchors?cursor=${cursor}`)
        expect(refused.details?.field, cursor).toBe('/query/cursor')
      }
    })

    test('the anchors of an application are for those who may see its chain, and those of the service for all', async () => {
      const app = await createData(service())
      await app.create({ name: 'closed', access_policy: 'private' })
      expect(await readChain(service(), app, '/anchors')).toMatchObject({ code: 'UNAUTHORIZED' })
      expect((await app.call('GET', '/chain/anchors')).status).toBe(200)
      expect((await service().request('GET', '/api/apps/system/chain/anchors')).status).toBe(200)
    })
  }))
