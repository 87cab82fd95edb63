import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { chunkType, makeUploadCalls } from '@tollbase/testing/uploads'
import { describe, expect, test } from 'vitest'

const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('continueUpload', () =>
  withService((service) => {
    const { begin, patch, head, look } = makeUploadCalls(service)

    test('an upload has as many bytes as it said, of the stated type and hash', async () => {
      const app = await createBlobs(service())
      const { path } = await begin(app, 'files', 5)
      expect((await patch(app, path, [0, '123456'])).status).toBe(413)
      const headers = { ...app.data.headers, 'upload-offset': '0' }
      const typed = { headers: { ...headers, 'content-type': 'text/plain' }, raw: '12345' }
      expect((await service().request('PATCH', path, typed)).status).toBe(400)
      const digest = createHash('sha256').update('12345').digest('base64')
      const stated = {
        ...headers,
        'content-type': chunkType,
        'content-digest': `sha-256=:${digest}:`,
      }
      const wrong = await service().request('PATCH', path, { headers: stated, raw: '12346' })
      expect(wrong.status).toBe(400)
      expect((await head(app, path)).offset).toBe(0)
      const right = await service().request('PATCH', path, { headers: stated, raw: '12345' })
      expect(right.status, right.text).toBe(204)
    })

    test('a later request takes the place of one that still waits for bytes', async () => {
      const app = await createBlobs(service())
      const bytes = randomBytes(200_000)
      const { path } = await begin(app, 'files', bytes.length)
      const hanging = request(service().url + path, {
        method: 'PATCH',
        headers: {
          ...app.data.headers,
          ...{ 'content-type': chunkType, 'upload-offset': '0', 'content-length': '200000' },
        },
      })
      hanging.on('error', () => undefined)
      hanging.write(bytes.subarray(0, 100_000))
      await expect.poll(async () => (await look(app, path)).body.offset).toBe(100_000)
      expect((await head(app, path)).offset).toBe(100_000)
      const rest = await patch(app, path, [100_000, bytes.subarray(100_000)])
      expect(rest.headers.get('x-blob-id')).toBe(`blob_${hash(bytes)}`)
      hanging.destroy()
    })
  }))
