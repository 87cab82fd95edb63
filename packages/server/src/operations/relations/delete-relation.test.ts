import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { relate } from '@tollbase/testing/relations'
import { describe, expect, test } from 'vitest'

describe('deleteRelation', () =>
  withService((service) => {
    test('a deleted relation is gone from its collections at once, and a second deletion finds none', async () => {
      const app = await createData(service())
      const { id } = (await relate(app)).body
      const { id: kept } = (await relate(app, { child_collection: 'reviews' })).body
      expect((await app.call('DELETE', `/relations/${id}`)).body.success).toBe(true)
      const shown = (await app.call('GET', '/collections/people')).body.relations
      expect(shown).toMatchObject([{ id: kept }])
      expect(await app.call('DELETE', `/relations/${id}`)).toMatchObject({
        status: 404,
        body: { code: 'RELATION_NOT_FOUND' },
      })
    })

    test('another application neither deletes a relation nor learns of it', async () => {
      const app = await createData(service())
      const { id } = (await relate(app)).body
      const other = await createData(service())
      expect((await other.call('DELETE', `/relations/${id}`)).body.code).toBe('RELATION_NOT_FOUND')
      const path = `/api/apps/${app.appId}/relations/${id}`
      expect((await service().request('DELETE', path, { headers: other.headers })).status).toBe(401)
      expect((await app.call('GET', '/relations')).body).toMatchObject([{ id }])
    })
  }))
