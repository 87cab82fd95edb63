import { createHash, randomBytes } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { segmentBytes } from '../../packages/server/src/sealing/segments.ts'
import {
  blobGraceMs,
  collectBlobs,
} from '../../packages/server/src/services/blobs/collect-blobs.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { change, check } from './change.ts'

const hash = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const size = 3 * segmentBytes + 1000
const free = { config: { encryptionUpdatePrice: 0n, blobBytesMax: 1024 * 1024 } }

describe('blobs of encrypted collections', () =>
  withService((service) => {
    const open = async () => {
      const app = await createBlobs(service())
      await app.data.create({ name: 'scans', collection_type: 'blob' })
      const set = await change(app.data, 'add', ['scans'])
      expect(set.status, set.text).toBe(200)
      return app
    }

    const listPaths = () => {
      const root = join(service().config.dataDir, 'blobs')
      const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
      return files.filter((path) => /[0-9a-f]{64}$/.test(path)).map((path) => join(root, path))
    }

    const findPath = (id: string) =>
      listPaths().find((path) => path.endsWith(id.slice('blob_'.length))) ?? ''

    test('its readers get it as any other blob: whole, by ranges, by conditions, as HEAD and as text', async () => {
      const app = await open()
      const bytes = randomBytes(size)
      const sent = await app.upload('scans', bytes, {
        type: 'image/png',
        name: 'p 1.png',
        metadata: '{"person":"p1","n":1.50}',
      })
      expect(sent.status, sent.text).toBe(200)
      const id = String(sent.body.blob_id)
      const whole = await app.download('scans', id)
      expect(whole.bytes.equals(bytes)).toBe(true)
      expect(whole.headers.get('content-type')).toBe('image/png')
      expect(whole.headers.get('cache-control')).toBe('private, no-cache')
      expect(whole.headers.get('etag')).toBe(`"${id.slice('blob_'.length)}"`)
      const ranges = [
        [0, 0],
        [segmentBytes - 1, segmentBytes],
        [segmentBytes, 2 * segmentBytes - 1],
        [size - 1, size - 1],
        [10, size - 10],
        [0, size - 1],
      ] as const
      for (const [start, end] of ranges) {
        const got = await app.download('scans', id, { range: `bytes=${start}-${end}` })
        expect(got.status).toBe(206)
        expect(got.headers.get('content-range')).toBe(`bytes ${start}-${end}/${size}`)
        expect(got.bytes.equals(bytes.subarray(start, end + 1)), `${start}-${end}`).toBe(true)
      }
      const past = await app.download('scans', id, { range: `bytes=${size}-` })
      expect(past).toMatchObject({ status: 416, body: { details: { size } } })
      const again = { 'if-none-match': whole.headers.get('etag') ?? '' }
      expect((await app.download('scans', id, again)).status).toBe(304)
      const head = await app.head('scans', id)
      expect(head.headers.get('content-length')).toBe(String(size))
      const text = await app.download('scans', id, { accept: '*/*' })
      expect(Buffer.from(text.body, 'base64').equals(bytes)).toBe(true)
      const { records } = (await app.data.list('scans', { find: { person: 'p1' } })).body
      expect(records).toEqual([
        {
          person: 'p1',
          n: 1.5,
          blob_id: id,
          sha256: hash(bytes),
          size_bytes: size,
          content_type: 'image/png',
          filename: 'p 1.png',
          uploaded_at: expect.any(String),
        },
      ])
      expect((await app.data.list('scans', { find: { blob_id: id } })).body.total).toBe(1)
      expect((await app.data.record('scans', id)).body.record.person).toBe('p1')
      expect(await check(service())).toEqual([undefined, true])
      expect((await app.download('scans', id)).bytes.equals(bytes)).toBe(true)
    })

    test('the same bytes are another blob each time, and a file says nothing of them', async () => {
      const app = await open()
      const planted = 'a planted text of a patient'
      const bytes = Buffer.from(planted.repeat(10_000))
      const ids = [await app.upload('scans', bytes), await app.upload('scans', bytes)].map(
        ({ body }) => String(body.blob_id),
      )
      expect(new Set(ids).size).toBe(2)
      for (const id of ids) {
        const file = readFileSync(findPath(id))
        expect(hash(file)).toBe(id.slice('blob_'.length))
        expect(file.includes('planted')).toBe(false)
        expect((await app.download('scans', id)).bytes.equals(bytes)).toBe(true)
      }
      const empty = String((await app.upload('scans', '')).body.blob_id)
      expect((await app.download('scans', empty)).bytes).toHaveLength(0)
      expect((await app.download('scans', empty, { accept: '*/*' })).body).toBe('')
    })

    test('others, the operator among them, are not told that it is there', async () => {
      const app = await open()
      const { body } = await app.upload('scans', 'x', { metadata: '{"person":"p1"}' })
      const path = `/api/apps/${app.appId}/blobs/scans/${body.blob_id}`
      const other = await createData(service())
      for (const headers of [{}, other.headers, service().operator]) {
        for (const method of ['GET', 'HEAD'])
          expect((await service().request(method, path, { headers })).status).toBe(404)
        const none = await service().request('GET', path.replace('scans', 'none'), { headers })
        expect(none.status).toBe(404)
      }
    })

    test('a file that was cut, changed or exchanged for another one is not given, and the audit names it', async () => {
      const app = await open()
      const [one, other] = await Promise.all(
        [1, 2].map(async () => String((await app.upload('scans', randomBytes(size))).body.blob_id)),
      )
      const path = findPath(String(one))
      const before = readFileSync(path)
      const gone = { status: 410, body: { code: 'BLOB_GONE' } }
      copyFileSync(findPath(String(other)), path)
      expect(await app.download('scans', String(one), { range: 'bytes=0-9' })).toMatchObject(gone)
      const changed = Buffer.from(before)
      changed.writeUInt8(changed.readUInt8(5) ^ 1, 5)
      writeFileSync(path, changed)
      expect(await app.download('scans', String(one))).toMatchObject(gone)
      const far = await app.download('scans', String(one), { range: `bytes=${size - 5}-` })
      expect(far.status).toBe(206)
      const found = await service().whileStopped((config) => audit(config, () => undefined))
      expect(found.difference).toMatchObject({ what: `the file of the blob ${one}` })
      truncateSync(path, segmentBytes + 16)
      expect(await app.download('scans', String(one))).toMatchObject(gone)
      writeFileSync(path, before)
      expect((await app.download('scans', String(one))).status).toBe(200)
    })

    test('an envelope that was moved to another row opens no file', async () => {
      const app = await open()
      const ids = await Promise.all(
        ['a', 'b'].map(async (text) => String((await app.upload('scans', text)).body.blob_id)),
      )
      const { schema, data } = await service().running.service.tenants.load(app.appId)
      const table = sql.id(schema, data.catalog.byName.get('scans')?.table ?? '')
      await service().database.execute(sql`
        UPDATE ${table} SET body = (SELECT body FROM ${table} AS other WHERE other.key = ${ids[1] ?? ''})
        WHERE key = ${ids[0] ?? ''}`)
      expect((await app.download('scans', ids[0] ?? '')).status).toBe(500)
      expect((await app.download('scans', ids[1] ?? '')).text).toBe('b')
    })

    test('a blob of an erased person is gone, though its file stays for hours; a deleted collection takes all keys', async () => {
      const app = await open()
      const keep = async (person: string) =>
        String(
          (await app.upload('scans', person, { metadata: `{"person":"${person}"}` })).body.blob_id,
        )
      const [p1, p2] = [await keep('p1'), await keep('p2')]
      const erased = await app.data.call('POST', '/collections/scans/erase', {
        field: 'person',
        value: 'p1',
      })
      expect(erased.status, erased.text).toBe(200)
      expect((await app.download('scans', p1)).status).toBe(404)
      expect(listPaths().filter((path) => path === findPath(p1))).toHaveLength(1)
      const envelopes = await findEnvelopes(app)
      expect(envelopes).toHaveLength(1)
      expect((await app.download('scans', p2)).text).toBe('p2')
      expect((await app.data.call('DELETE', '/collections/scans')).status).toBe(200)
      const keys = await service().database.query(
        sql`SELECT epoch FROM operations.data_key WHERE app = ${app.appId}`,
      )
      expect(keys).toEqual([])
      expect((await app.download('scans', p2)).status).toBe(404)
      await collect(app)
      service().world.advance(blobGraceMs + 1)
      expect(await collect(app)).toBe(2)
      expect(app.listFiles()).toEqual([])
    })

    test('a blob that is deleted goes, and one that is not stays', async () => {
      const app = await open()
      const ids = await Promise.all(
        ['a', 'b'].map(async (text) => String((await app.upload('scans', text)).body.blob_id)),
      )
      const removed = await app.data.call('DELETE', `/blobs/scans/${ids[0]}?wait=true`)
      expect(removed.status, removed.text).toBe(200)
      expect((await app.download('scans', ids[0] ?? '')).status).toBe(404)
      await collect(app)
      service().world.advance(blobGraceMs + 1)
      expect(await collect(app)).toBe(1)
      expect((await app.download('scans', ids[1] ?? '')).text).toBe('b')
    })

    test('the first upload to a private application makes an encrypted collection', async () => {
      const app = await createBlobs(service())
      await app.data.call('POST', '/encryption', { private_app: true })
      const { body } = await app.upload('scans', 'x')
      const settings = await app.data.call('GET', '/encryption')
      expect(settings.body.encrypted_collections).toEqual(['scans'])
      expect(hash('x')).not.toBe(String(body.blob_id).slice('blob_'.length))
      expect((await app.download('scans', body.blob_id)).text).toBe('x')
    })

    async function collect({ appId }: Blobs): Promise<number> {
      const parts = service().running.service
      return collectBlobs(parts, await parts.tenants.load(appId))
    }

    /** The keys of files that are left in the log and the tables. */
    async function findEnvelopes({ appId }: Blobs): Promise<unknown[]> {
      const { chain } = await service().running.service.tenants.load(appId)
      const found: unknown[] = []
      for await (const block of chain.blocksFrom(1))
        for (const entry of block.entries)
          if (entry?.body.includes('"file":{')) found.push(entry.header)
      return found
    }
  }, free))
