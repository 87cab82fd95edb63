import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createBlobs } from '@tollbase/testing/blobs'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'
import { parseRange } from '../../http/byte-range.ts'

const bytes = Buffer.from(Array.from({ length: 1000 }, (_, at) => at % 256))

describe('getBlob', () =>
  withService((service) => {
    const open = async (policy: unknown = 'public') => {
      const app = await createBlobs(service())
      await app.data.create({ name: 'files', collection_type: 'blob', access_policy: policy })
      const sent = await app.upload('files', bytes, { type: 'image/png', name: 'ä;.png' })
      const id = String(sent.body.blob_id)
      const nobody = { 'x-app-key': '' }
      return { app, id, nobody, path: `/api/apps/${app.appId}/blobs/files/${id}` }
    }

    /** Flips a byte of a blob's file. */
    const changeFile = (id: string) => {
      const root = join(service().config.dataDir, 'blobs')
      const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
      const name = files.find((path) => path.endsWith(`/${id.slice('blob_'.length)}`)) ?? ''
      const changed = readFileSync(join(root, name))
      changed.writeUInt8(changed.readUInt8(500) ^ 1, 500)
      writeFileSync(join(root, name), changed)
    }

    test('a caller that names no type but JSON gets a JSON string of base64, and one that names a type, a range or a condition gets bytes', async () => {
      const { app, id, path } = await open()
      for (const accept of ['*/*', 'application/json', 'application/json, */*;q=0.8', '']) {
        const got = await app.download('files', id, { accept })
        expect(Buffer.from(got.body, 'base64'), accept).toEqual(bytes)
        expect(got.headers.get('content-type')).toBe('application/json; charset=utf-8')
        expect(got.headers.get('content-length')).toBe(String(got.bytes.length))
      }
      const raw = [
        { accept: 'application/json, text/plain, */*' },
        { accept: 'image/avif,image/webp,*/*;q=0.8' },
        { accept: '*/*', range: 'bytes=0-' },
        { accept: '*/*', 'if-none-match': '"other"' },
      ]
      for (const headers of raw)
        expect((await app.download('files', id, headers)).bytes, headers.accept).toEqual(bytes)
      const asked = await fetch(`${service().url}${path}?format=raw`)
      expect(Buffer.from(await asked.arrayBuffer())).toEqual(bytes)
      for (const size of [1, 2, 3, 300_001]) {
        const more = Buffer.alloc(size, size)
        const { body } = await app.upload('files', more)
        const got = await app.download('files', body.blob_id, { accept: '*/*' })
        expect(Buffer.from(got.body, 'base64').equals(more)).toBe(true)
      }
    })

    test('bytes come with a name that breaks out of nothing, in a sandbox, and never with a guessed type', async () => {
      const { app, id } = await open()
      const { headers } = await app.download('files', id)
      expect(headers.get('content-disposition')).toBe(
        `inline; filename="__.png"; filename*=UTF-8''%C3%A4%3B.png`,
      )
      for (const type of ['text/html', 'image/svg+xml', 'application/pdf', 'text/xml']) {
        const { body } = await app.upload('files', `<script>${type}`, { type, name: 'x' })
        const got = await app.download('files', body.blob_id)
        expect(got.headers.get('content-type')).toBe(type)
        expect(got.headers.get('content-disposition')).toMatch(/^attachment;/)
        expect(got.headers.get('x-content-type-options')).toBe('nosniff')
        expect(got.headers.get('content-security-policy')).toMatch(/^default-src 'none'.*sandbox$/)
      }
    })

    test('a range, at whichever end, is those bytes; several are the whole; one past the end is refused', async () => {
      const { app, id } = await open()
      const ranges: [string, number, number][] = [
        ['bytes=0-0', 0, 0],
        ['bytes=10-19', 10, 19],
        ['bytes=990-', 990, 999],
        ['bytes=-5', 995, 999],
        ['bytes=-5000', 0, 999],
        ['bytes=5-99999999', 5, 999],
      ]
      for (const [range, start, end] of ranges) {
        const got = await app.download('files', id, { range })
        expect(got.status, range).toBe(206)
        expect(got.bytes).toEqual(bytes.subarray(start, end + 1))
        expect(got.headers.get('content-range')).toBe(`bytes ${start}-${end}/1000`)
        expect(got.headers.get('content-length')).toBe(String(end - start + 1))
      }
      const many = `bytes=${Array.from({ length: 500 }, (_, at) => `${at}-${at}`).join(',')}`
      for (const range of [many, 'bytes=5-2', 'bytes=-', 'lines=1-2', 'bytes=a-b', 'bytes=0x1-2']) {
        const got = await app.download('files', id, { range })
        expect([got.status, got.bytes.equals(bytes)], range.slice(0, 20)).toEqual([200, true])
      }
      for (const range of ['bytes=1000-', 'bytes=-0', 'bytes=999999999999999-']) {
        const got = await app.download('files', id, { range })
        expect(got, range).toMatchObject({ status: 416, body: { details: { size: 1000 } } })
        expect(got.headers.get('content-range')).toBe('bytes */1000')
      }
    })

    test('a caller that has the bytes already is told so; a range of other content is the whole', async () => {
      const { app, id, nobody } = await open()
      const first = await app.download('files', id, nobody)
      const tag = String(first.headers.get('etag'))
      expect(tag).toBe(`"${createHash('sha256').update(bytes).digest('hex')}"`)
      expect(first.headers.get('cache-control')).toBe('public, no-cache')
      for (const condition of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
        const got = await app.download('files', id, { ...nobody, 'if-none-match': condition })
        expect([got.status, got.bytes.length]).toEqual([304, 0])
      }
      expect((await app.download('files', id, { 'if-none-match': '"other"' })).status).toBe(200)
      const range = 'bytes=0-1'
      expect((await app.download('files', id, { range, 'if-range': tag })).status).toBe(206)
      for (const condition of ['"other"', `W/${tag}`, 'Sun, 22 Nov 2026 00:00:00 GMT'])
        expect((await app.download('files', id, { range, 'if-range': condition })).status).toBe(200)
    })

    test('HEAD has the headers of GET, in each form, and no bytes', async () => {
      const { app, id } = await open()
      for (const headers of [{}, { accept: '*/*' }, { range: 'bytes=5-9' }]) {
        const [head, got] = [
          await app.head('files', id, headers),
          await app.download('files', id, headers),
        ]
        expect(head.bytes).toHaveLength(0)
        expect(head.status).toBe(got.status)
        for (const name of ['content-type', 'content-length', 'etag', 'content-range', 'vary'])
          expect(head.headers.get(name), name).toBe(got.headers.get(name))
      }
      expect((await app.head('files', 'blob_1')).status).toBe(404)
    })

    test('a private blob is there for keys of its application, on every verb, and its id is no key to another collection', async () => {
      const { app, id, nobody } = await open('private')
      await app.data.create({ name: 'open', collection_type: 'blob', access_policy: 'public' })
      const other = await createBlobs(service())
      const strangers = [
        nobody,
        { 'x-app-key': other.data.key },
        { 'x-app-key': '', range: 'bytes=0-1' },
      ]
      for (const headers of strangers) {
        expect(await app.download('files', id, headers)).toMatchObject({
          status: 404,
          body: { code: 'COLLECTION_NOT_FOUND' },
        })
        expect((await app.head('files', id, headers)).status).toBe(404)
        expect(await app.download('open', id, headers)).toMatchObject({
          status: 404,
          body: { code: 'BLOB_NOT_FOUND' },
        })
      }
      const own = await app.download('files', id)
      expect([own.status, own.headers.get('cache-control')]).toEqual([200, 'private, no-cache'])
    })

    test('a blob whose file is lost is gone, in plain words', async () => {
      const { app, id } = await open()
      rmSync(join(service().config.dataDir, 'blobs'), { recursive: true })
      expect(await app.download('files', id)).toMatchObject({
        status: 410,
        body: { code: 'BLOB_GONE' },
      })
      await service().restart()
    })

    test('a blob whose file has lost bytes is gone, and never sent under the hash of the whole', async () => {
      const { app, id } = await open()
      const root = join(service().config.dataDir, 'blobs')
      const name = id.slice('blob_'.length)
      const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
      const found = files.filter((path) => path.endsWith(`/${name}`))
      for (const path of found) truncateSync(join(root, path), 999)
      for (const headers of [{}, { accept: '*/*' }, { range: 'bytes=0-0' }])
        expect(await app.download('files', id, headers)).toMatchObject({
          status: 410,
          body: { code: 'BLOB_GONE' },
        })
      await app.upload('files', bytes)
      expect((await app.download('files', id)).bytes).toEqual(bytes)
    })

    test('a blob of which a byte changed on the disk never arrives whole', async () => {
      const { app } = await open()
      const large = randomBytes(600_000)
      const answers: object[] = []
      for (const sent of [large, randomBytes(1000)]) {
        const id = String((await app.upload('files', sent)).body.blob_id)
        changeFile(id)
        for (const headers of [{}, { accept: '*/*' }, { range: 'bytes=0-' }])
          answers.push(
            await app.download('files', id, headers).catch(() => ({ status: 'cut off' })),
          )
        await app.upload('files', sent)
        expect((await app.download('files', id)).bytes.equals(sent)).toBe(true)
      }
      const gone = { status: 410, body: { code: 'BLOB_GONE' } }
      const cut = { status: 'cut off' }
      // A JSON string has begun by the time; bytes of one piece have not.
      expect(answers).toMatchObject([cut, cut, cut, gone, cut, gone])
    })

    test('a deleted blob is not there, and is again once it is uploaded again', async () => {
      const { app, id } = await open()
      const remove = () => app.data.call('DELETE', `/blobs/files/${id}?wait=true`)
      expect(await remove()).toMatchObject({ status: 200, body: { blob_id: id } })
      expect(await app.download('files', id)).toMatchObject({ status: 404 })
      expect((await app.data.list('files', {})).body.records).toEqual([])
      expect(await remove()).toMatchObject({ status: 404, body: { code: 'BLOB_NOT_FOUND' } })
      await app.upload('files', bytes)
      expect((await app.download('files', id)).bytes).toEqual(bytes)
    })
  }))

test('a range is read as RFC 9110 says, whatever the size', () => {
  expect(parseRange(undefined, 10)).toBeUndefined()
  expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseRange('BYTES=2-3', 10)).toEqual({ start: 2, end: 3 })
  expect(parseRange('bytes=0-9007199254740993', 10)).toBeUndefined()
})
