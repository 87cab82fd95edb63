import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { limits } from '@tollbase/contract/limits'
import * as tus from 'tus-js-client'
import { describe, expect, test } from 'vitest'
import { segmentBytes } from '../../packages/server/src/sealing/segments.ts'
import { change } from '../encryption/change.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { createFundedBuyer, quote } from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { chunkType, makeUploadCalls } from '../support/uploads.ts'

const _mib = 1024 * 1024
const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('resumable uploads', () =>
  withService(
    (service) => {
      const at = (app: Blobs, collection: string) =>
        `/api/apps/${app.appId}/blobs/${collection}/uploads`

      const { begin, patch, head, look } = makeUploadCalls(service)

      /** Uploads with the official client of tus; gives the id of the blob. */
      const send = (
        app: Blobs,
        bytes: Buffer,
        options: Partial<tus.UploadOptions> & { readonly collection?: string } = {},
      ) =>
        new Promise<string>((resolve, reject) => {
          const { collection = 'files', ...more } = options
          const upload = new tus.Upload(bytes, {
            endpoint: service().url + at(app, collection),
            headers: { ...app.data.headers },
            retryDelays: [10, 50, 100],
            onError: reject,
            onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader('X-Blob-Id') ?? ''),
            ...more,
          })
          upload.start()
        })

      // It comes first: a payment made now is late once the clock has moved.
      test('an upload with a price is paid when its bytes are there, once, and a refusal costs neither money nor bytes', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sold', collection_type: 'blob' })
        const rule = { target: { collection: 'sold' }, operation: 'write', model: 'per_kb' }
        const rules = [{ ...rule, amount: '10' }]
        expect((await app.data.call('PUT', '/pricing', { rules })).status).toBe(200)
        const bytes = randomBytes(100 * 1024)
        let path = ''
        await send(app, bytes, {
          collection: 'sold',
          chunkSize: 70_000,
          onAfterResponse: (_, response) => {
            path ||= response.getHeader('Location') ?? ''
          },
        })
        expect((await look(app, path)).body).toMatchObject({ status: 'received', blob_id: null })
        expect((await app.data.list('sold')).body.total).toBe(0)
        await service().restart()
        const asked = {
          method: 'POST',
          path: `${path}/finish?wait=true`,
          headers: app.data.headers,
        }
        const buyer = await createFundedBuyer(service())
        const offer = await quote(service(), asked)
        expect(offer.body.accepts[0].maxAmountRequired).toBe('1000')
        const headers = { ...app.data.headers, ...(await buyer.payV2(offer)) }
        const finish = () => service().request('POST', asked.path, { headers })
        const paid = await finish()
        expect(paid.status, paid.text).toBe(200)
        expect(paid.body.blob_id).toBe(`blob_${hash(bytes)}`)
        expect((await finish()).text).toBe(paid.text)
        expect((await app.download('sold', paid.body.blob_id)).bytes.equals(bytes)).toBe(true)
        const unpaid = await service().request('POST', asked.path, { headers: app.data.headers })
        expect(unpaid.body.blob_id).toBe(paid.body.blob_id)
        // Sold once, less the platform's share.
        expect((await app.data.call('GET', '/wallet')).body.available).toBe('800')
      })

      test.each([0, 9])(
        'an upload of %s bytes that gets a price while its blob is made waits for its payment',
        async (length) => {
          const app = await createBlobs(service())
          await app.data.create({ name: 'sold', collection_type: 'blob' })
          const target = { collection: 'sold' }
          const rules = [{ target, operation: 'write', model: 'per_access', amount: '10' }]
          const { open } = service().running.service.blobs
          const take = open.take.bind(open)
          open.take = async (...given) => {
            expect((await app.data.call('PUT', '/pricing', { rules })).status).toBe(200)
            return take(...given)
          }
          try {
            const { path } = await begin(app, 'sold', length)
            if (length > 0) expect((await patch(app, path, [0, '123456789'])).status).toBe(204)
            open.take = take
            expect((await look(app, path)).body).toMatchObject({
              status: 'received',
              blob_id: null,
            })
            const asked = { method: 'POST', path: `${path}/finish`, headers: app.data.headers }
            expect((await quote(service(), asked)).body.accepts[0].maxAmountRequired).toBe('10')
            const { headers } = app.data
            expect((await service().request('DELETE', path, { headers })).status).toBe(204)
          } finally {
            open.take = take
          }
        },
      )

      test.each([
        ['at once', { chunkSize: Number.POSITIVE_INFINITY }, false],
        ['in chunks', { chunkSize: 100_000 }, false],
        ['in chunks, encrypted', { chunkSize: 100_000 }, true],
        ['in whole segments, encrypted', { chunkSize: 2 * segmentBytes }, true],
        ['at once, with the creation', { uploadDataDuringCreation: true }, false],
        [
          'in chunks, the first with the creation, encrypted',
          { chunkSize: 100_000, uploadDataDuringCreation: true },
          true,
        ],
      ])('the client tus-js-client sends a blob %s', async (_, options, isEncrypted) => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'files', collection_type: 'blob' })
        if (isEncrypted) await change(app.data, 'add', ['files'])
        const bytes = randomBytes(4 * segmentBytes + 17)
        const metadata = { filename: 'ä.png', filetype: 'image/png', metadata: '{"title":"T"}' }
        const id = await send(app, bytes, { ...options, metadata })
        expect(id === `blob_${hash(bytes)}`).toBe(!isEncrypted)
        await expect.poll(async () => (await app.download('files', id)).status).toBe(200)
        const got = await app.download('files', id)
        expect(got.bytes.equals(bytes)).toBe(true)
        expect(got.headers.get('content-type')).toBe('image/png')
        const { records } = (await app.data.list('files', { find: { title: 'T' } })).body
        expect(records).toMatchObject([
          { blob_id: id, sha256: hash(bytes), size_bytes: bytes.length, filename: 'ä.png' },
        ])
      })

      test('sizes at the edges of segments come whole, also a blob of no bytes', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sealed', collection_type: 'blob' })
        await change(app.data, 'add', ['sealed'])
        for (const collection of ['files', 'sealed'])
          for (const size of [
            0,
            1,
            segmentBytes - 1,
            segmentBytes,
            segmentBytes + 1,
            2 * segmentBytes,
          ]) {
            const bytes = randomBytes(size)
            const begun = await begin(app, collection, size)
            if (size > 0) expect((await patch(app, begun.path, [0, bytes])).status).toBe(204)
            const { body } = await look(app, begun.path)
            expect(body, `${collection} ${size}`).toMatchObject({ status: 'stored', length: size })
            await expect
              .poll(async () => (await app.download(collection, body.blob_id)).bytes.equals(bytes))
              .toBe(true)
          }
      })

      test('an upload that breaks off goes on where it was, after a restart too, and nothing of an encrypted one is to be read', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sealed', collection_type: 'blob' })
        await change(app.data, 'add', ['sealed'])
        const planted = 'Zb6Kq1Wd9Xt3'
        const bytes = Buffer.from(planted.repeat(50_000))
        const metadata = `filename ${Buffer.from(`${planted}.txt`).toString('base64')}`
        const { path } = await begin(app, 'sealed', [bytes.length, { 'upload-metadata': metadata }])
        const half = 3 * segmentBytes + 100
        await breakOff(app, path, { bytes: bytes.subarray(0, half), length: bytes.length })
        await expect.poll(async () => (await head(app, path)).offset).toBe(half)
        for (const file of listOpen()) {
          const kept = readFileSync(file)
          const forms = [planted, Buffer.from(planted).toString('base64')]
          expect(
            forms.some((form) => kept.includes(form)),
            file,
          ).toBe(false)
        }
        await service().restart()
        // The rest of a segment was in memory.
        const { offset } = await head(app, path)
        expect(offset).toBe(3 * segmentBytes)
        const late = await patch(app, path, [half, bytes.subarray(half)])
        expect(late).toMatchObject({ status: 409, body: { details: { offset } } })
        const rest = await patch(app, path, [offset, bytes.subarray(offset)])
        expect(rest.status, rest.text).toBe(204)
        const id = rest.headers.get('x-blob-id') ?? ''
        await expect
          .poll(async () => (await app.download('sealed', id)).text === planted.repeat(50_000))
          .toBe(true)
        expect(listOpen().filter((file) => file.endsWith('bytes'))).toEqual([])
        await service().restart()
        expect((await look(app, path)).body).toMatchObject({ status: 'stored', blob_id: id })
      })

      test('bytes that were changed on the disk never become a blob of an encrypted collection', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sealed', collection_type: 'blob' })
        await change(app.data, 'add', ['sealed'])
        const bytes = randomBytes(2 * segmentBytes)
        const { path, body } = await begin(app, 'sealed', bytes.length)
        await patch(app, path, [0, bytes.subarray(0, segmentBytes + 5)])
        const file =
          listOpen().find((one) => one.includes(body.upload_id) && one.endsWith('bytes')) ?? ''
        const kept = readFileSync(file)
        kept.writeUInt8(kept.readUInt8(9) ^ 1, 9)
        writeFileSync(file, kept)
        const last = await patch(app, path, [segmentBytes + 5, bytes.subarray(segmentBytes + 5)])
        expect(last.status).toBe(500)
        expect((await look(app, path)).body.status).toBe('open')
      })

      test('an upload is its application`s and its collection`s alone, and its writers`', async () => {
        const app = await createBlobs(service())
        const { path } = await begin(app, 'files', 5)
        const other = await createData(service())
        const made = await app.data.call('POST', '/keys', { permissions: ['Read'] })
        for (const [headers, status] of [
          [{}, 401],
          [other.headers, 401],
          [{ 'x-app-key': made.body.key }, 403],
        ] as const)
          for (const method of ['GET', 'HEAD', 'PATCH', 'DELETE'])
            expect((await service().request(method, path, { headers })).status).toBe(status)
        await app.upload('more', 'x')
        const elsewhere = path.replace('/files/', '/more/')
        expect((await look(app, elsewhere)).body.code).toBe('UPLOAD_NOT_FOUND')
      })

      test('an upload to which nothing came for a day is gone with its bytes', async () => {
        const app = await createBlobs(service())
        const { path: other } = await begin(app, 'files', 9)
        service().world.advance(limits.openUploadMs - 1_000)
        expect((await patch(app, other, [0, '123'])).status).toBe(204)
        service().world.advance(limits.openUploadMs - 1_000)
        expect((await head(app, other)).offset).toBe(3)
        service().world.advance(2_000)
        expect((await head(app, other)).status).toBe(404)
        await service().running.service.blobs.open.sweep()
        expect(listOpen()).toEqual([])
      })

      test('an upload that began before its collection was encrypted ends, and its bytes go', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'files', collection_type: 'blob' })
        const { path } = await begin(app, 'files', 9)
        await patch(app, path, [0, '123'])
        await change(app.data, 'add', ['files'])
        const late = await patch(app, path, [3, '456'])
        expect(late).toMatchObject({ status: 404, body: { code: 'UPLOAD_NOT_FOUND' } })
        expect((await head(app, path)).status).toBe(404)
      })

      test('an upload that goes on with other bytes after it was refused at its end changes no blob that has its first bytes', async () => {
        const app = await createBlobs(service())
        const [bytes, others] = ['a blob that is there', 'twenty other bytes..']
        const stored = await app.upload('pictures', bytes)
        const { path } = await begin(app, 'notes', bytes.length)
        // Its collection becomes one of another type, which is seen when the file has its name.
        await app.data.create({ name: 'notes' })
        for (const sent of [bytes, others])
          expect((await patch(app, path, [0, sent])).body.code).toBe('CONFLICT')
        const got = await app.download('pictures', stored.body.blob_id)
        expect([got.status, got.text]).toEqual([200, bytes])
      })

      test('no segment is sealed twice with different bytes, after a crash or a wrong hash', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sealed', collection_type: 'blob' })
        await change(app.data, 'add', ['sealed'])
        const bytes = randomBytes(3 * segmentBytes)
        const part = bytes.subarray(0, 2 * segmentBytes + 5)
        const begun = await Promise.all([1, 2, 3].map(() => begin(app, 'sealed', bytes.length)))
        const [same = '', other = '', wrong = ''] = begun.map(({ path }) => path)
        for (const path of [same, other]) {
          expect((await patch(app, path, [0, part])).status).toBe(204)
          // As a crash leaves it before the note.
          const state = listOpen().find((file) => isOf(path, file) && file.endsWith('.json')) ?? ''
          const kept = JSON.parse(readFileSync(state, 'utf8'))
          writeFileSync(state, JSON.stringify({ ...kept, durable: 0 }))
        }
        await service().restart()
        expect((await head(app, same)).offset).toBe(0)
        const whole = await patch(app, same, [0, bytes])
        expect(whole.status, whole.text).toBe(204)
        const id = whole.headers.get('x-blob-id') ?? ''
        await expect
          .poll(async () => (await app.download('sealed', id)).bytes.equals(bytes))
          .toBe(true)
        const stated = {
          ...app.data.headers,
          ...{ 'content-type': chunkType, 'upload-offset': '0' },
          'content-digest': `sha-256=:${createHash('sha256').update('x').digest('base64')}:`,
        }
        const lied = await service().request('PATCH', wrong, { headers: stated, raw: part })
        expect(lied.status).toBe(400)
        for (const path of [other, wrong]) {
          const late = await patch(app, path, [0, randomBytes(bytes.length)])
          expect(late).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
          expect((await head(app, path)).status).toBe(404)
          expect(listOpen().filter((file) => isOf(path, file))).toEqual([])
        }
      })

      test('how an upload ended is kept without its name, its metadata and the key of its bytes', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'sealed', collection_type: 'blob' })
        await change(app.data, 'add', ['sealed'])
        const metadata = `metadata ${Buffer.from('{"person":"Qp7Ann"}').toString('base64')}`
        for (const collection of ['files', 'sealed']) {
          const { path } = await begin(app, collection, [3, { 'upload-metadata': metadata }])
          expect((await patch(app, path, [0, '123'])).status).toBe(204)
          const [state = '', ...more] = listOpen().filter((file) => isOf(path, file))
          expect(more).toEqual([])
          expect(readFileSync(state, 'utf8')).not.toMatch(/Qp7Ann|ciphertext/)
          expect((await look(app, path)).body.status).toBe('stored')
        }
      })

      test('what comes for an upload while it is swept away keeps it', async () => {
        const app = await createBlobs(service())
        const { path, body } = await begin(app, 'files', 9)
        const { blobs, tenants } = service().running.service
        const tenant = await tenants.load(app.appId)
        const file = blobs.open.require({ tenant, collection: 'files' }, body.upload_id)
        service().world.advance(limits.openUploadMs + 1)
        const touch = () => file.keep({ touchedAtMs: service().world.now() })
        await Promise.all([blobs.open.run(file.id, touch), blobs.open.sweep()])
        expect((await head(app, path)).status).toBe(200)
      })

      function isOf(path: string, file: string): boolean {
        return file.includes(path.split('/').at(-1) ?? '/')
      }

      function listOpen(): string[] {
        const root = join(service().config.dataDir, 'uploads')
        const entries = readdirSync(root, { withFileTypes: true, recursive: true })
        return entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
      }

      /** Sends bytes of a longer body, and hangs up once they are there. */
      async function breakOff(
        app: Blobs,
        path: string,
        { bytes, length }: { readonly bytes: Uint8Array; readonly length: number },
      ): Promise<void> {
        const sent = request(service().url + path, {
          method: 'PATCH',
          headers: {
            ...app.data.headers,
            ...{
              'content-type': chunkType,
              'upload-offset': '0',
              'content-length': String(length),
            },
          },
        })
        sent.on('error', () => undefined)
        sent.write(bytes)
        await expect.poll(async () => (await look(app, path)).body.offset).toBe(bytes.length)
        sent.destroy()
        await wait(0)
      }
    },
    { devnet: true, config: { encryptionUpdatePrice: 0n } },
  ))
