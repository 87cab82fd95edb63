import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { makeTestWorld } from '@tollbase/testing/test-world'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService } from '../../packages/server/src/app.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { BlobStore } from '../../packages/server/src/blobs/blob-store.ts'
import { S3Shelf } from '../../packages/server/src/blobs/s3-shelf.ts'
import { type Config, readConfig } from '../../packages/server/src/config/config.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { restoreBackup } from '../../packages/server/src/operator/backup/restore-backup.ts'
import { exportApplication } from '../../packages/server/src/operator/move/export-application.ts'
import { importApplication } from '../../packages/server/src/operator/move/import-application.ts'
import { blobGraceMs } from '../../packages/server/src/services/blobs/collect-blobs.ts'
import { settle } from '../encryption/change.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'
import { type S3Server, startS3Server } from './s3-server.ts'

const silent = () => undefined
const root = mkdtempSync(join(tmpdir(), 'tollbase-object-store-'))
const planted = 'Qz7Wm2Kt9Ra4'
const blobBytesMax = 64 * 1024 * 1024

let store: S3Server
let service: TestService
let blobs: Blobs

beforeAll(async () => {
  store = await startS3Server()
  const config = { blobStore: store.bucket, blobBytesMax, encryptionUpdatePrice: 0n }
  service = await startTestService({ config })
  blobs = await createBlobs(service)
})
afterAll(async () => {
  await service?.close()
  await store?.end()
  rmSync(root, { recursive: true, force: true })
})

/** The paths of the objects below the prefix. */
function listObjects({ folder, bucket }: S3Server = store): string[] {
  const all = readdirSync(join(folder, bucket.bucket), { recursive: true, withFileTypes: true })
  return all
    .filter((one) => one.isFile() && one.name.endsWith('_object'))
    .map((one) => join(one.parentPath, one.name))
}

describe('blobs in a bucket', () => {
  test('a blob is an object by its hash, and is read whole, in part and by its head', async () => {
    const { body, status } = await blobs.upload('pictures', 'a picture of a cat')
    expect(status).toBe(200)
    const id = String(body.blob_id)
    const [object = ''] = listObjects()
    expect(object).toContain(`prod/`)
    expect(object).toContain(id.slice('blob_'.length))
    expect(readdirSync(join(service.config.dataDir, 'blobs', 'incoming'))).toEqual([])
    expect(blobs.listFiles()).toEqual([])
    expect((await blobs.download('pictures', id)).text).toBe('a picture of a cat')
    const part = await blobs.download('pictures', id, { range: 'bytes=2-8' })
    expect([part.status, part.text]).toEqual([206, 'picture'])
    const head = await blobs.head('pictures', id)
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '18'])
    const etag = head.headers.get('etag') ?? ''
    expect((await blobs.download('pictures', id, { 'if-none-match': etag })).status).toBe(304)
    expect((await blobs.upload('empty', '')).status).toBe(200)
  })

  test('many megabytes go up and come down without being in memory as a whole', async () => {
    const bytes = Buffer.alloc(48 * 1024 * 1024, 'tollbase ')
    const { body, status } = await blobs.upload('large', bytes)
    expect(status).toBe(200)
    const found = await blobs.download('large', String(body.blob_id))
    expect(found.bytes.equals(bytes)).toBe(true)
  })

  test('the same bytes that many bring at once are one object', async () => {
    const count = listObjects().length
    const answers = await Promise.all([1, 2, 3, 4].map(() => blobs.upload('same', 'the same')))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(listObjects()).toHaveLength(count + 1)
  })

  test('a resumable upload ends in the bucket', async () => {
    const bytes = 'piece by piece'
    const begun = await fetch(`${service.url}/api/apps/${blobs.appId}/blobs/pieces/uploads`, {
      method: 'POST',
      headers: { ...blobs.data.headers, 'upload-length': String(bytes.length) },
    })
    expect(begun.status).toBe(201)
    const path = begun.headers.get('location') ?? ''
    const sent = await fetch(new URL(path, service.url), {
      method: 'PATCH',
      headers: {
        ...blobs.data.headers,
        ...{ 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
      },
      body: bytes,
    })
    expect(sent.status, await sent.text()).toBe(204)
    const told = await fetch(new URL(path, service.url), { headers: blobs.data.headers })
    const { blob_id: id }: Json = await told.json()
    await expect
      .poll(async () => (await blobs.download('pieces', id)).text, { timeout: 20_000 })
      .toBe(bytes)
  })

  test('an object of an encrypted collection has nothing to be read', async () => {
    const secret = await createBlobs(service)
    await secret.data.call('POST', '/encryption', { private_app: true })
    const { body, status } = await secret.upload('scans', planted.repeat(1000))
    expect(status).toBe(200)
    for (const path of listObjects()) expect(readFileSync(path).includes(planted)).toBe(false)
    const found = await secret.download('scans', String(body.blob_id))
    expect(found.text).toBe(planted.repeat(1000))
  })

  test('blobs that become encrypted are other objects, and those from before are gone from the bucket', async () => {
    const { data, ...files } = await createBlobs(service)
    const { body } = await files.upload('scans', `open ${planted}`.repeat(30_000))
    const old = String(body.blob_id)
    const set = await data.call('POST', '/encryption', { action: 'add', collections: ['scans'] })
    await settle(data, set)
    for (const path of listObjects()) expect(readFileSync(path).includes(planted)).toBe(false)
    const [row] = (await data.list('scans')).body.records
    expect(row.blob_id).not.toBe(old)
    expect(listObjects().some((path) => path.includes(old.slice('blob_'.length)))).toBe(false)
    // The address of before leads there.
    expect((await files.download('scans', old)).text).toBe(`open ${planted}`.repeat(30_000))
    await settle(
      data,
      await data.call('POST', '/encryption', { action: 'remove', collections: ['scans'] }),
    )
    expect((await files.download('scans', old)).text).toBe(`open ${planted}`.repeat(30_000))
    await settle(
      data,
      await data.call('POST', '/encryption', { action: 'add', collections: ['scans'] }),
    )
  })

  test('an object that nobody names goes after the time of grace', async () => {
    // The store refuses requests of another time, so only the collector's clock moves.
    const world = makeTestWorld()
    const shelf = new S3Shelf({ ...store.bucket, prefix: 'passing/' }, realWorld)
    const incoming = join(root, 'incoming')
    const own = new BlobStore({ incoming, shelf, world, useRoom: (work) => work(silent) })
    const count = listObjects().length
    const file = await own.receive(Readable.from([Buffer.from('soon gone')]))
    await file.publish(7, silent)
    expect(listObjects()).toHaveLength(count + 1)
    expect(await own.measure(7)).toBe(9)
    const place = { folder: 7, sha256: file.sha256 }
    const seen = { isNamed: false, graceMs: blobGraceMs }
    expect(await own.sweep(place, seen)).toBe(false)
    world.advance(blobGraceMs + 1)
    expect(await own.sweep(place, { ...seen, isNamed: true })).toBe(false)
    expect(await own.sweep(place, seen)).toBe(false)
    world.advance(blobGraceMs + 1)
    expect(await own.sweep(place, seen)).toBe(true)
    expect(listObjects()).toHaveLength(count)
    expect(await own.measure(7)).toBe(0)
  })

  test('a bucket of more objects than one answer lists is listed whole', async () => {
    const shelf = new S3Shelf({ ...store.bucket, prefix: 'many/' }, realWorld, 2)
    const hashes = ['a', 'b', 'c', 'd', 'e'].map((text) => {
      const sha256 = createHash('sha256').update(text).digest('hex')
      return { text, sha256 }
    })
    for (const { text, sha256 } of hashes) {
      const path = join(root, text)
      writeFileSync(path, text)
      await shelf.put(path, { folder: 3, sha256 })
      expect(existsSync(path)).toBe(false)
    }
    const found: string[] = []
    for await (const { sha256, size } of shelf.list(3)) {
      expect(size).toBe(1)
      found.push(sha256)
    }
    expect(found).toEqual(hashes.map(({ sha256 }) => sha256).sort())
    for (const { sha256 } of hashes) await shelf.remove({ folder: 3, sha256 })
    expect(await shelf.findSize({ folder: 3, sha256: found[0] ?? '' })).toBeUndefined()
  })

  test('an object that was changed is never given as the blob', async () => {
    const { body } = await blobs.upload('changed', 'as it was sent')
    const id = String(body.blob_id)
    const object = listObjects().find((path) => path.includes(id.slice('blob_'.length))) ?? ''
    writeFileSync(object, 'as it was bent')
    const found = await blobs.download('changed', id).catch(() => undefined)
    expect(found?.text).not.toBe('as it was bent')
    writeFileSync(object, 'as it was sent')
    expect((await blobs.download('changed', id)).text).toBe('as it was sent')
  })

  test('a store that is down stops blobs with 503, and nothing else; they go on when it is back', async () => {
    const { body } = await blobs.upload('pictures', 'a picture of a dog')
    await store.stop()
    try {
      const upload = await blobs.upload('pictures', 'a picture of a cow')
      expect(upload).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } })
      const download = await blobs.download('pictures', String(body.blob_id))
      expect([download.status, download.body.code]).toEqual([503, 'UNAVAILABLE'])
      expect(download.text).not.toContain('127.0.0.1')
      await blobs.data.publish('notes', [{ id: 'n1' }])
    } finally {
      await store.restart()
    }
    expect((await blobs.download('pictures', String(body.blob_id))).status).toBe(200)
    expect((await blobs.upload('pictures', 'a picture of a cow')).status).toBe(200)
  })

  test('audit looks at every object; a backup, a restore into another bucket and a move bring them along', async () => {
    const check = (config: Config) => audit(config, silent)
    expect(await service.whileStopped(check)).toMatchObject({ equal: true })
    await createBackup(
      service.config,
      { to: join(root, 'backup'), keysTo: join(root, 'keys') },
      silent,
    )
    await exportApplication(service.config, { app: blobs.appId, to: join(root, 'moved') }, silent)
    const key = (
      await service.request('GET', `/api/apps/${blobs.appId}/chain/checkpoint`, {
        headers: blobs.data.headers,
      })
    ).body.key
    const other = await startS3Server('')
    const target = await createTestDatabase()
    const { host, port, user, database } = target.connection
    const config: Config = {
      ...service.config,
      dataDir: join(root, 'restored'),
      databaseUrl: `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`,
      blobStore: other.bucket,
    }
    try {
      const from = { from: join(root, 'backup'), keys: join(root, 'keys') }
      expect(await restoreBackup(config, from, silent)).toMatchObject({ equal: true })
      expect(await check(config)).toMatchObject({ equal: true })
      const [object = ''] = listObjects(other)
      writeFileSync(object, 'x')
      const report = await check(config)
      expect(report.equal).toBe(false)
      expect(report.difference?.what).toMatch(/^the file of the blob blob_/)
    } finally {
      await target.drop()
      await other.end()
    }
    const away = await startTestService()
    try {
      const report = await away.whileStopped((own) =>
        importApplication(own, { from: join(root, 'moved'), key }, silent),
      )
      expect(report).toMatchObject({ equal: true })
    } finally {
      await away.close()
    }
  })
})

describe('the configuration of a bucket', () => {
  const start = async (changes: Partial<Config>) => {
    const config = { ...service.config, ...changes }
    const running = await startService({ config, world: service.world })
    await running.close()
  }

  test('a bucket that is not there, or is refused, ends the start with one line', async () => {
    await service.whileStopped(async () => {
      const blobStore = { ...store.bucket, bucket: 'none-here' }
      rmSync(join(service.config.dataDir, 'blob-store'))
      await expect(start({ blobStore })).rejects.toThrow(
        /^blob_store: s3 .* is not there: make the bucket first$/,
      )
      const refusing = createServer((_, reply) => reply.writeHead(403).end())
      await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve))
      const address = refusing.address()
      const port = typeof address === 'object' ? address?.port : 0
      const refused = { ...store.bucket, endpoint: `http://127.0.0.1:${port}` }
      await expect(start({ blobStore: refused })).rejects.toThrow(/is refused to AWS_ACCESS_KEY_ID/)
      refusing.close()
      await start({ blobStore: store.bucket })
    })
  })

  test('a service does not start where its blobs are not', async () => {
    await service.whileStopped(async () => {
      await expect(start({ blobStore: undefined })).rejects.toThrow(
        /^blob_store: the blobs of this data folder are in s3 .*blob-store; see "Blobs in a bucket"/,
      )
    })
    const files = await startTestService()
    try {
      await (await createBlobs(files)).upload('pictures', 'a file')
      await files.whileStopped(async (config) => {
        const begun = startService({
          config: { ...config, blobStore: store.bucket },
          world: files.world,
        })
        await expect(begun).rejects.toThrow(/has blobs: copy it into the bucket, then move it away/)
      })
    } finally {
      await files.close()
    }
  })

  test('it needs credentials, and a largest blob that one request can bring', () => {
    const path = join(root, 'config.json')
    const read = (more: object, environment: Record<string, string>) => {
      const blob_store = { endpoint: 'https://s3.example', bucket: 'blobs', prefix: 'a/b' }
      writeFileSync(path, JSON.stringify({ blob_store, ...more }))
      return readConfig({ config: path }, environment).blobStore
    }
    const credentials = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
    expect(() => read({}, {})).toThrow(/AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/)
    // The largest whose sealed form S3 takes, too.
    expect(() => read({ blob_mb_max: 5119 }, credentials)).toThrow(/blob_mb_max.* at most 5118/)
    expect(read({ blob_mb_max: 5118 }, credentials)).toEqual({
      ...{ endpoint: 'https://s3.example', region: 'us-east-1', bucket: 'blobs', prefix: 'a/b/' },
      ...{ isPathStyle: true, accessKeyId: 'id', secretAccessKey: 'secret' },
    })
  })
})
