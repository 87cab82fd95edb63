import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { makeUploadCalls } from '@tollbase/testing/uploads'
import * as tus from 'tus-js-client'
import { describe, expect, test } from 'vitest'

describe('cancelUpload', () =>
  withService((service) => {
    const { begin, patch, head } = makeUploadCalls(service)

    test('an upload that is cancelled, by the official client too, is gone at once with its bytes', async () => {
      const app = await createBlobs(service())
      const { path } = await begin(app, 'files', 9)
      await patch(app, path, [0, '123'])
      await tus.Upload.terminate(service().url + path, { headers: { ...app.data.headers } })
      expect((await head(app, path)).status).toBe(404)
      const { headers } = app.data
      const again = await service().request('DELETE', path, { headers })
      expect(again).toMatchObject({ status: 404, body: { code: 'UPLOAD_NOT_FOUND' } })
      const folder = join(service().config.dataDir, 'uploads')
      const left = readdirSync(folder, { withFileTypes: true, recursive: true })
      expect(left.filter((one) => one.isFile())).toEqual([])
    })
  }))
