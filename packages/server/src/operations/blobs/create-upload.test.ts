import { limits } from '@tollbase/contract/limits'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { makeUploadCalls } from '@tollbase/testing/uploads'
import { describe, expect, test } from 'vitest'

const mib = 1024 * 1024

describe('createUpload', () =>
  withService((service) => {
    const { begin } = makeUploadCalls(service)

    test('all that can be known at the beginning is refused there: size, metadata, schema, quota, type and version', async () => {
      const app = await createBlobs(service())
      const schema_definition = { fields: { title: { type: 'string', required: true } } }
      await app.data.create({ name: 'titled', collection_type: 'blob', schema_definition })
      await app.data.create({ name: 'notes' })
      const metadata = (text: string) => ({
        'upload-metadata': `metadata ${Buffer.from(text).toString('base64')}`,
      })
      const refused = [
        [await begin(app, 'files', 2 * mib + 1), 413, 'PAYLOAD_TOO_LARGE'],
        [await begin(app, 'titled', 1), 422, 'SCHEMA_VIOLATION'],
        [await begin(app, 'files', [1, metadata('[1]')]), 400, 'VALIDATION_FAILED'],
        [await begin(app, 'files', [1, metadata('{"sha256":"x"}')]), 400, 'VALIDATION_FAILED'],
        [await begin(app, 'files', [1, { 'upload-metadata': 'a b c' }]), 400, 'VALIDATION_FAILED'],
        [await begin(app, 'files', -1), 400, 'VALIDATION_FAILED'],
        [await begin(app, 'notes', 1), 409, 'CONFLICT'],
        [await begin(app, 'files', [1, { 'tus-resumable': '0.2.2' }]), 412, 'UPLOAD_VERSION'],
      ] as const
      for (const [reply, status, code] of refused)
        expect(reply, reply.text).toMatchObject({ status, body: { code } })
      expect((await begin(app, 'titled', [2 * mib, metadata('{"title":"t"}')])).status).toBe(201)
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        body: { quota: { bytes: 4 * mib } },
        headers: service().operator,
      })
      // An open upload counts with its whole length.
      expect((await begin(app, 'files', 2 * mib)).body.code).toBe('QUOTA_EXCEEDED')
      expect((await begin(app, 'files', mib)).status).toBe(201)
    })

    test('an application has as many open uploads as it may, and not one more', async () => {
      const app = await createBlobs(service())
      for (let at = 0; at < limits.openUploadsOfApplicationMax; at++)
        expect((await begin(app, 'files', 9)).status).toBe(201)
      const more = await begin(app, 'files', 9)
      expect(more).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
      const other = await createBlobs(service())
      expect((await begin(other, 'files', 9)).status).toBe(201)
    })
  }))
