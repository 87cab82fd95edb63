import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('deleteBlob', () =>
  withService((service) => {
    test('a blob that is deleted is gone from its collection alone, and deleting it again is 404', async () => {
      const app = await createBlobs(service())
      const ids = await Promise.all(
        ['one', 'two'].map(async (name) => String((await app.upload(name, 'same')).body.blob_id)),
      )
      const [id = ''] = ids
      const remove = () => app.data.call('DELETE', `/blobs/one/${id}?wait=true`)
      const removed = await remove()
      expect(removed.status, removed.text).toBe(200)
      expect((await app.download('one', id)).status).toBe(404)
      expect((await app.download('two', id)).text).toBe('same')
      expect(await remove()).toMatchObject({ status: 404, body: { code: 'BLOB_NOT_FOUND' } })
      expect((await app.data.list('one')).body.total).toBe(0)
    })
  }))
