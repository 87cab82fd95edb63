import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { makeUploadCalls } from '@tollbase/testing/uploads'
import { describe, expect, test } from 'vitest'

describe('finishUpload', () =>
  withService((service) => {
    const { begin, patch } = makeUploadCalls(service)

    test('an upload that lacks bytes is not finished and says where it is; one that is stored names its blob each time', async () => {
      const app = await createBlobs(service())
      const { path } = await begin(app, 'files', 6)
      const { headers } = app.data
      const finish = () => service().request('POST', `${path}/finish?wait=true`, { headers })
      await patch(app, path, [0, '123'])
      expect(await finish()).toMatchObject({ status: 409, body: { details: { offset: 3 } } })
      const blobId = (await patch(app, path, [3, '456'])).headers.get('x-blob-id')
      for (let n = 0; n < 2; n++)
        expect((await finish()).body).toMatchObject({ status: 'Completed', blob_id: blobId })
      expect((await app.download('files', blobId ?? '')).text).toBe('123456')
    })
  }))
