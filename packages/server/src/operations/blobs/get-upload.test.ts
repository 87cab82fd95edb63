import { limits } from '@tollbase/contract/limits'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { makeUploadCalls } from '@tollbase/testing/uploads'
import { describe, expect, test } from 'vitest'

describe('getUpload', () =>
  withService((service) => {
    const { begin, patch, look } = makeUploadCalls(service)

    test('an upload tells how far it is, when it ends, and the blob that it has become', async () => {
      const app = await createBlobs(service())
      const { path, body } = await begin(app, 'files', 6)
      const open = { upload_id: body.upload_id, status: 'open', length: 6, blob_id: null }
      expect((await look(app, path)).body).toMatchObject({ ...open, offset: 0 })
      service().world.advance(60_000)
      await patch(app, path, [0, '123'])
      const { body: half, headers } = await look(app, path)
      expect(half).toMatchObject({ ...open, offset: 3 })
      expect([headers.get('upload-offset'), headers.get('upload-length')]).toEqual(['3', '6'])
      // Each part that comes gives it the whole time again.
      const end = service().world.now() + limits.openUploadMs
      expect(Math.abs(Date.parse(half.expires_at) - end)).toBeLessThan(30_000)
      const blobId = (await patch(app, path, [3, '456'])).headers.get('x-blob-id')
      expect((await look(app, path)).body).toMatchObject({
        ...{ status: 'stored', offset: 6, blob_id: blobId },
      })
    })
  }))
