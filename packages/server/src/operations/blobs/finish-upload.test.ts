import { limits } from '@tollbase/contract/limits'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { makeUploadCalls } from '@tollbase/testing/uploads'
import { describe, expect, test } from 'vitest'

describe('finishUpload', () =>
  withService(
    (service) => {
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

      test('an upload is finished in one of the places of uploads, as all its bytes are read; where it is stored or lacks bytes, it needs none', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sold', collection_type: 'blob' })
        const target = { collection: 'sold' }
        const rules = [{ target, operation: 'write', model: 'per_access', amount: '10' }]
        expect((await app.data.call('PUT', '/pricing', { rules })).status).toBe(200)
        const [whole, part] = [await begin(app, 'sold', 3), await begin(app, 'sold', 3)]
        await patch(app, whole.path, [0, '123'])
        const stored = await begin(app, 'files', 3)
        await patch(app, stored.path, [0, '123'])
        const finish = async ({ path }: { readonly path: string }) =>
          (await service().request('POST', `${path}/finish`, { headers: app.data.headers })).status
        const { uploads } = service().running.service.blobs
        const places = Array.from({ length: limits.uploadsOfApplicationMax }, () =>
          uploads.occupy(app.appId),
        )
        expect([await finish(whole), await finish(part), await finish(stored)]).toEqual([
          503, 409, 202,
        ])
        for (const leave of places) leave()
        expect(await finish(whole)).toBe(402)
        // Those that were asked to pay have left their places.
        for (let n = 0; n < limits.uploadsOfApplicationMax; n++) uploads.occupy(app.appId)
      })
    },
    { devnet: true },
  ))
