import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('getCollectionStats', (service) => {
  test('stats follow stores, new versions and deletions', async () => {
    const app = await createData(service())
    await app.publish('notes', [{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    await app.store('notes', [{ id: 'a', text: 'new' }])
    await app.store('notes', [{ id: 'b', deleted: true }])
    const { body } = await app.call('GET', '/collections/notes/stats')
    const bytes = '{"id":"a","text":"new"}'.length + '{"id":"c"}'.length
    expect(body).toMatchObject({
      document_count: 2,
      storage_size: bytes,
      avg_document_size: Math.round(bytes / 2),
    })
    const described = await app.call('GET', '/collections/notes?include_stats=true')
    expect(described.body.metadata.document_count).toBe(2)
    const open = await service().request('GET', `/api/apps/${app.appId}/collections/notes`)
    expect(open.body.metadata.document_count, 'exact counts are for the owner').toBe(0)
  })
})
