import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { chunkType, makeUploadCalls } from '@tollbase/testing/uploads'
import { describe, expect, test } from 'vitest'

const mib = 1024 * 1024

describe('createUpload', () =>
  withService((service) => {
    const { begin, patch } = makeUploadCalls(service)

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

    test('an upload that has no place is refused where it begins: the name of a view, and an application with all records that it may have', async () => {
      const app = await createBlobs(service())
      await app.data.store('rows', [{ id: 'a', n: 1 }])
      const sql = `CREATE MATERIALIZED VIEW "${app.appId}"::taken AS SELECT n FROM "${app.appId}"::rows`
      expect((await app.data.call('POST', '/views/sql', { sql })).status).toBeLessThan(300)
      expect((await begin(app, 'taken', 9)).body.code).toBe('VIEW_EXISTS')
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        body: { quota: { records: 1 } },
        headers: service().operator,
      })
      expect((await begin(app, 'files', 9)).body.code).toBe('QUOTA_EXCEEDED')
    })

    test('bytes that come with the POST are the first ones of the upload, and the whole blob is stored at once', async () => {
      const app = await createBlobs(service())
      const create = (raw: string, more: object = {}) =>
        service().request('POST', `/api/apps/${app.appId}/blobs/files/uploads`, {
          raw,
          headers: {
            ...app.data.headers,
            ...{ 'content-type': chunkType, 'upload-length': '5', ...more },
          },
        })
      const part = await create('\xff')
      expect(part).toMatchObject({ status: 201, body: { status: 'open', offset: 2 } })
      expect(part.headers.get('upload-offset')).toBe('2')
      const path = part.headers.get('location') ?? ''
      expect((await patch(app, path, [2, 'abc'])).status).toBe(204)
      const whole = await create('hello')
      expect(whole).toMatchObject({ status: 201, body: { status: 'stored', offset: 5 } })
      const id = whole.headers.get('x-blob-id') ?? ''
      expect(whole.body.blob_id).toBe(id)
      await expect
        .poll(async () => (await app.download('files', id)).bytes.toString())
        .toBe('hello')
      expect(await create('', { 'upload-length': '0' })).toMatchObject({ status: 201 })
    })

    test('a POST whose bytes are refused leaves no upload, and says what to send', async () => {
      const app = await createBlobs(service())
      const digest = (text: string) => ({
        'content-digest': `sha-256=:${createHash('sha256').update(text).digest('base64')}:`,
      })
      const create = (raw: string, more: object) =>
        service().request('POST', `/api/apps/${app.appId}/blobs/files/uploads`, {
          raw,
          headers: {
            ...app.data.headers,
            ...{ 'content-type': chunkType, 'upload-length': '5', ...more },
          },
        })
      const json = await create('{"a":1}', { 'content-type': 'application/json' })
      expect(json).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } })
      expect(json.body.error).toContain(chunkType)
      expect(json.body.error).toContain('without a body')
      expect((await create('longer', {})).body.code).toBe('PAYLOAD_TOO_LARGE')
      expect((await create('hello', digest('other'))).status).toBe(400)
      for (let at = 0; at < limits.openUploadsOfApplicationMax; at++)
        expect((await begin(app, 'files', 9)).status).toBe(201)
      expect((await create('hello', {})).body.code).toBe('CONFLICT')
    })

    test('an upload that begins without bytes needs no Content-Digest beside an Idempotency-Key', async () => {
      const app = await createBlobs(service())
      const named = { 'idempotency-key': 'one' }
      const first = await begin(app, 'files', [5, named])
      expect(first.status).toBe(201)
      const again = await begin(app, 'files', [5, named])
      expect([again.path, again.headers.get('idempotent-replayed')]).toEqual([first.path, 'true'])
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
