import { createHash, randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect } from 'vitest'
import { PartialFile } from '../../packages/server/src/blobs/partial-files.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { restoreBackup } from '../../packages/server/src/operator/backup/restore-backup.ts'
import { copyWithBlobs } from '../../packages/server/src/operator/copy-with-blobs.ts'
import { segmentBytes } from '../../packages/server/src/sealing/segments.ts'
import { define } from '../../packages/server/src/services/applications/define.ts'
import {
  blobGraceMs,
  collectBlobs,
  collectEveryMs,
} from '../../packages/server/src/services/blobs/collect-blobs.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'
import { makeSharedTest } from '../support/shared-test.ts'
import { change, check, settle } from './change.ts'

const test = makeSharedTest(2)
const hash = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const blobBytesMax = 24 * 1024 * 1024
const settings = { config: { encryptionUpdatePrice: 0n, blobBytesMax } }
const planted = 'Kx7Rm2Vq9Ta4'

describe('blobs of a collection whose encryption changes', () =>
  withService((service) => {
    const keep = async (app: Blobs, bytes: string | Uint8Array<ArrayBuffer>, metadata = '{}') => {
      const sent = await app.upload('scans', bytes, { metadata, name: 'a.txt', type: 'text/plain' })
      expect(sent.status, sent.text).toBe(200)
      return String(sent.body.blob_id)
    }
    const set = async (app: Blobs, action: 'add' | 'remove') => {
      const asked = await change(app.data, action, ['scans'])
      await settle(app.data, asked)
      return asked
    }
    const findId = async (app: Blobs, find: object) => {
      const { body } = await app.data.list('scans', { find })
      expect(body.records).toHaveLength(1)
      return String(body.records[0].blob_id)
    }
    const isSealed = async (app: Blobs) =>
      (await app.data.call('GET', '/encryption')).body.encrypted_collections.includes('scans')
    /** Asks without following a redirection. */
    const ask = (app: Blobs, id: string, options: RequestInit & { query?: string } = {}) =>
      fetch(`${service().url}/api/apps/${app.appId}/blobs/scans/${id}${options.query ?? ''}`, {
        redirect: 'manual',
        ...options,
        headers: { ...app.data.headers, ...options.headers },
      })
    const collect = async (app: Blobs) => {
      const parts = service().running.service
      return collectBlobs(parts, await parts.tenants.load(app.appId))
    }

    test('each blob is sealed under an id of its own, and opened again under the first one; readers get the same', async () => {
      const app = await createBlobs(service())
      const contents = [
        randomBytes(3 * segmentBytes + 7),
        randomBytes(segmentBytes),
        Buffer.alloc(0),
      ]
      const plain: string[] = []
      for (const [n, bytes] of contents.entries())
        plain.push(await keep(app, Uint8Array.from(bytes), `{"n":${n},"v":1.50}`))
      const before = (await app.data.list('scans', { sortBy: 'n' })).body.records
      const asked = await set(app, 'add')
      expect(asked.body.message).toContain('other ids')
      expect(await isSealed(app)).toBe(true)
      const sealed = (await app.data.list('scans', { sortBy: 'n' })).body.records
      for (const [n, bytes] of contents.entries()) {
        const id = String(sealed[n].blob_id)
        // The id is the hash of the file; all else of the row is as before.
        expect(sealed[n]).toEqual({ ...before[n], blob_id: id })
        expect(id).not.toBe(plain[n])
        const got = await app.download('scans', id)
        expect(got.bytes.equals(bytes)).toBe(true)
        expect(got.headers.get('etag')).toBe(`"${id.slice(5)}"`)
      }
      const ids = sealed.map((one: { blob_id: string }) => one.blob_id.slice(5)).sort()
      expect(app.listFiles().sort()).toEqual(ids)
      const range = await app.download('scans', sealed[0].blob_id, { range: 'bytes=65530-65545' })
      expect([
        range.status,
        range.bytes.equals(contents[0]?.subarray(65530, 65546) ?? Buffer.alloc(0)),
      ]).toEqual([206, true])
      expect(await check(service())).toEqual([undefined, true])
      await set(app, 'remove')
      expect((await app.data.list('scans', { sortBy: 'n' })).body.records).toEqual(before)
      expect(app.listFiles().sort()).toEqual(plain.map((id) => id.slice(5)).sort())
      for (const [n, id] of plain.entries())
        expect((await app.download('scans', id)).bytes.equals(contents[n] ?? Buffer.alloc(0))).toBe(
          true,
        )
      expect(await check(service())).toEqual([undefined, true])
    })

    test('a request for the id of before is redirected, on every verb and with its query, for whoever may read and nobody else', async () => {
      const app = await createBlobs(service())
      const old = await keep(app, 'hello', '{"n":1}')
      await keep(app, 'other', '{"n":2}')
      await set(app, 'add')
      const now = await findId(app, { n: 1 })
      for (const method of ['GET', 'HEAD', 'DELETE']) {
        const query = method === 'DELETE' ? '?wait=true' : '?format=raw'
        const answer = await ask(app, old, { method, query })
        expect([method, answer.status]).toEqual([method, 307])
        expect(answer.headers.get('location')).toBe(
          `/api/apps/${app.appId}/blobs/scans/${now}${query}`,
        )
        expect(answer.headers.get('cache-control')).toBe('no-store')
        if (method === 'GET')
          expect(await answer.json()).toMatchObject({
            code: 'BLOB_MOVED',
            details: { blob_id: now },
          })
      }
      // Clients that follow it get the bytes, whole, in part and by conditions.
      expect((await app.download('scans', old)).text).toBe('hello')
      expect((await app.download('scans', old, { range: 'bytes=1-2' })).text).toBe('el')
      const tag = `"${now.slice(5)}"`
      expect((await app.download('scans', old, { 'if-none-match': tag })).status).toBe(304)
      const fresh = { 'if-none-match': `"${old.slice(5)}"` }
      expect((await app.download('scans', old, fresh)).text).toBe('hello')
      const stranger = await createBlobs(service())
      expect((await ask(app, old, { headers: stranger.data.headers })).status).toBe(404)
      // A key that may not read is not told that its guess of the bytes is right.
      const { key } = (await app.data.call('POST', '/keys', { permissions: ['Write'] })).body
      const guess = { method: 'DELETE', headers: { 'x-app-key': key } }
      expect((await ask(app, old, guess)).status).toBe(404)
      expect((await ask(app, `blob_${hash('never')}`)).status).toBe(404)
      // The one from while it was sealed leads to what it is now, too.
      await set(app, 'remove')
      const back = await ask(app, now)
      expect([back.status, back.headers.get('location')]).toEqual([
        307,
        `/api/apps/${app.appId}/blobs/scans/${old}`,
      ])
      expect((await app.download('scans', now)).text).toBe('hello')
      await set(app, 'add')
      expect((await ask(app, old)).status).toBe(307)
      const removed = await app.data.call(
        'DELETE',
        `/blobs/scans/${await findId(app, { n: 1 })}?wait=true`,
      )
      expect(removed.status).toBe(200)
      expect((await ask(app, old)).status).toBe(404)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('nothing of the plain bytes or of their hash is left in files, tables and log, but where others have them', async () => {
      const app = await createBlobs(service())
      const bytes = planted.repeat(20_000)
      const id = await keep(app, bytes, `{"n":1,"person":"${planted}"}`)
      const gone = await keep(app, `${planted} gone`, '{"n":2}')
      await app.data.call('DELETE', `/blobs/scans/${gone}?wait=true`)
      const shared = await keep(app, 'in two collections', '{"n":3}')
      expect((await app.upload('others', 'in two collections')).status).toBe(200)
      await set(app, 'add')
      expect(app.listFiles()).not.toContain(id.slice(5))
      expect(app.listFiles()).not.toContain(gone.slice(5))
      expect(app.listFiles()).toContain(shared.slice(5))
      expect((await app.download('others', shared)).text).toBe('in two collections')
      const root = join(service().config.dataDir, 'blobs')
      const { application } = await service().running.service.tenants.load(app.appId)
      const paths = readdirSync(join(root, String(application.number)), {
        recursive: true,
        encoding: 'utf8',
      })
      for (const path of paths.filter((one) => /[0-9a-f]{64}$/.test(one)))
        expect(readFileSync(join(root, String(application.number), path)).includes(planted)).toBe(
          false,
        )
      expect(await holds(app, [planted, id.slice(5), gone.slice(5)])).toEqual([])
      expect(await check(service())).toEqual([undefined, true])
    })

    test('versions, deleted blobs and blobs that came again keep their history', async () => {
      const app = await createBlobs(service())
      await keep(app, 'one', '{"n":1}')
      const one = await keep(app, 'one', '{"n":2}')
      await app.data.call('DELETE', `/blobs/scans/${one}?wait=true`)
      await keep(app, 'one', '{"n":3}')
      const two = await keep(app, 'two', '{"n":4}')
      await app.data.call('DELETE', `/blobs/scans/${two}?wait=true`)
      const count = async () =>
        (await app.data.list('scans', { include_history: true, limit: 100 })).body.total
      const versions = await count()
      await set(app, 'add')
      expect((await app.data.list('scans')).body.total).toBe(1)
      expect(await count()).toBe(versions)
      const id = await findId(app, { n: 3 })
      expect((await app.download('scans', id)).text).toBe('one')
      expect((await app.data.record('scans', id, '/history')).body.versions).toHaveLength(4)
      expect((await ask(app, two)).status).toBe(404)
      expect((await app.download('scans', one)).text).toBe('one')
      await set(app, 'remove')
      expect((await app.data.list('scans')).body.total).toBe(1)
      expect((await app.data.record('scans', one, '/history')).body.versions).toHaveLength(4)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('sealed blobs of the same bytes become one blob, which stays while one of them does', async () => {
      const app = await createBlobs(service())
      await app.data.create({ name: 'scans', collection_type: 'blob' })
      await set(app, 'add')
      const ids: string[] = []
      for (const n of [1, 2, 3]) ids.push(await keep(app, 'same', `{"n":${n}}`))
      await app.data.call('DELETE', `/blobs/scans/${ids[2]}?wait=true`)
      await set(app, 'remove')
      const id = `blob_${hash('same')}`
      expect((await app.data.list('scans')).body.records).toMatchObject([{ n: 2, blob_id: id }])
      expect((await app.download('scans', ids[0] ?? '')).text).toBe('same')
      expect((await app.download('scans', ids[1] ?? '')).text).toBe('same')
      expect((await ask(app, ids[2] ?? '')).status).toBe(404)
      expect(app.listFiles()).toEqual([hash('same')])
      expect(await check(service())).toEqual([undefined, true])
    })

    test('uploads, downloads and deletions go on meanwhile, and none of them is lost or left in the clear', async () => {
      const app = await createBlobs(service())
      const contents = new Map<string, string>()
      const write = async (n: number) => {
        const text = `${planted} ${n} `.repeat(3_000)
        const sent = await app.upload('scans', text, { metadata: `{"n":${n}}` })
        // At the moment of the change it is to be sent again.
        if (sent.status === 503) return write(n)
        expect(sent.status, sent.text).toBe(200)
        contents.set(String(n), text)
      }
      for (let n = 0; n < 60; n++) await write(n)
      const asked = change(app.data, 'add', ['scans'])
      for (let n = 60; n < 100; n++) {
        await write(n)
        if (n % 4 !== 0) continue
        const { records } = (await app.data.list('scans', { find: { n } })).body
        const gone = await app.data.call('DELETE', `/blobs/scans/${records[0].blob_id}?wait=true`)
        if (gone.status === 200) contents.delete(String(n))
      }
      await settle(app.data, await asked)
      const { records } = (await app.data.list('scans', { limit: 1000 })).body
      expect(records).toHaveLength(contents.size)
      for (const { n, blob_id } of records)
        expect((await app.download('scans', blob_id)).text).toBe(contents.get(String(n)))
      const named = new Set(records.map((one: { blob_id: string }) => one.blob_id.slice(5)))
      const others = app.listFiles().filter((sha256) => !named.has(sha256))
      const plain = new Set([...contents.values()].map(hash))
      expect(others.filter((sha256) => plain.has(sha256))).toEqual([])
      expect(await holds(app, [planted])).toEqual([])
      expect(await check(service())).toEqual([undefined, true])
    })

    test('the bytes of an upload in pieces that began before are gone at once', async () => {
      const app = await createBlobs(service())
      await keep(app, 'x')
      const at = `${service().url}/api/apps/${app.appId}/blobs/scans/uploads`
      const headers = { ...app.data.headers, 'tus-resumable': '1.0.0' }
      const length = 3 * segmentBytes
      const made = await fetch(at, {
        method: 'POST',
        headers: { ...headers, 'upload-length': String(length) },
      })
      const upload = new URL(made.headers.get('location') ?? '', service().url)
      const body = planted.repeat(length).slice(0, 2 * segmentBytes)
      const type = { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
      const sent = await fetch(upload, { method: 'PATCH', headers: { ...headers, ...type }, body })
      expect(sent.status).toBe(204)
      const folder = join(service().config.dataDir, 'uploads')
      expect(readdirSync(folder)).not.toEqual([])
      await set(app, 'add')
      expect(readdirSync(folder)).toEqual([])
      expect((await fetch(upload, { method: 'HEAD', headers })).status).toBe(404)
    })

    test.each(['the next start', 'the next round'])(
      'the bytes of an upload in pieces are removed by %s where the change broke off before it removed them',
      async (by) => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'scans', collection_type: 'blob' })
        const at = `${service().url}/api/apps/${app.appId}/blobs/scans/uploads`
        const headers = { ...app.data.headers, 'tus-resumable': '1.0.0' }
        const length = { 'upload-length': String(3 * segmentBytes) }
        const made = await fetch(at, { method: 'POST', headers: { ...headers, ...length } })
        expect(made.status).toBe(201)
        const folder = join(service().config.dataDir, 'uploads')
        expect(readdirSync(folder)).toHaveLength(1)
        service().world.atFailpoints((point) => {
          if (point === 'resealing.settled') throw new Error('broken off')
        })
        expect((await change(app.data, 'add', ['scans'])).status).toBe(500)
        service().world.atFailpoints(undefined)
        expect(readdirSync(folder)).toHaveLength(1)
        if (by === 'the next start') await service().restart()
        else service().world.passInterval(collectEveryMs)
        await expect.poll(() => readdirSync(folder), { timeout: 20_000 }).toEqual([])
      },
    )

    test('an upload in pieces whose collection changes while its keys are waited for, or its turn, is not begun', async () => {
      const app = await createBlobs(service())
      await app.data.create({ name: 'scans', collection_type: 'blob' })
      const { tenants, blobs } = service().running.service
      const tenant = await tenants.load(app.appId)
      const details = { contentType: 'text/plain', filename: planted, metadata: undefined }
      for (const action of ['add', 'remove'] as const) {
        const hang: { end: () => void } = { end: () => undefined }
        const hanging = new Promise<void>((resolve) => {
          hang.end = resolve
        })
        const { prepare } = tenant.sealer
        tenant.sealer.prepare = () => hanging
        const { keep } = PartialFile.prototype
        PartialFile.prototype.keep = async function (this: PartialFile, changed) {
          await hanging
          return keep.call(this, changed)
        }
        try {
          const begun = blobs.open.create(
            { tenant, collection: 'scans' },
            { length: 1, details, refuseOverQuota: () => undefined },
          )
          const refused = expect(begun).rejects.toThrow('has changed since this upload began')
          expect((await change(app.data, action, ['scans'])).status).toBe(200)
          hang.end()
          await refused
        } finally {
          hang.end()
          tenant.sealer.prepare = prepare
          PartialFile.prototype.keep = keep
        }
        expect(readdirSync(join(service().config.dataDir, 'uploads'))).toEqual([])
      }
      expect(blobs.open.listApplications()).toEqual(new Set())
    })

    test('an upload that meets the change is to be sent again, and leaves no file', async () => {
      const app = await createBlobs(service())
      await app.data.create({ name: 'scans', collection_type: 'blob' })
      const tenant = await service().running.service.tenants.load(app.appId)
      const { id = '' } = tenant.data.catalog.byName.get('scans') ?? {}
      const [sent] = await tenant.collectionLock.run([id], async () => {
        const sent = app.upload('scans', planted)
        await expect.poll(() => app.listFiles()).toEqual([hash(planted)])
        const definition = tenant.data.catalog.collections.get(id)
        if (definition === undefined) throw new Error('the collection is not defined')
        await tenant.sealer.createKeys([id])
        await define(tenant, [{ kind: 'collection', id, body: { ...definition, encrypted: true } }])
        return [sent] as const
      })
      expect((await sent).status).toBe(503)
      expect(app.listFiles()).toEqual([])
    })

    test('a blob without its file makes the change wait and says where it is, and a new upload or its deletion ends that', async () => {
      const app = await createBlobs(service())
      const ids = [await keep(app, 'first', '{"n":1}'), await keep(app, 'second', '{"n":2}')]
      const { application } = await service().running.service.tenants.load(app.appId)
      const root = join(service().config.dataDir, 'blobs', String(application.number))
      for (const id of ids) rmSync(join(root, id.slice(5, 7), id.slice(5)))
      const asked = change(app.data, 'add', ['scans'])
      const read = async () => {
        const { tasks } = (await app.data.call('GET', '/tasks')).body
        return JSON.stringify(
          tasks.find((one: { operation_type: string }) => one.operation_type === 'encrypt'),
        )
      }
      await expect.poll(read, { timeout: 20_000 }).toContain('missing or damaged')
      for (const id of ids) expect(await read()).not.toContain(id.slice(5))
      await keep(app, 'first', '{"n":1}')
      await app.data.call('DELETE', `/blobs/scans/${ids[1]}?wait=true`)
      service().world.advance(11_000)
      await settle(app.data, await asked)
      expect((await app.download('scans', await findId(app, { n: 1 }))).text).toBe('first')
      expect((await app.data.list('scans')).body.total).toBe(1)
      expect(await check(service())).toEqual([undefined, true])
    })

    test('a backup that is made while the files change has every file that its rows name', async () => {
      const app = await createBlobs(service())
      for (let n = 0; n < 20; n++) await keep(app, `${planted} ${n}`.repeat(20_000), `{"n":${n}}`)
      const root = mkdtempSync(join(tmpdir(), 'tollbase-changed-backup-'))
      let asked: Promise<TestReply> | undefined
      try {
        await createBackup(service().config, { to: join(root, 'backup') }, () => {
          asked ??= change(app.data, 'add', ['scans'])
        })
        if (asked === undefined) throw new Error('the backup reported no progress')
        service().world.advance(11_000)
        await settle(app.data, await asked)
        const store = await createTestDatabase()
        try {
          const { host, port, user, database } = store.connection
          const databaseUrl = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
          const config = { ...service().config, dataDir: join(root, 'data'), databaseUrl }
          await mkdir(config.dataDir, { mode: 0o700 })
          for (const name of ['signing-key.pem', 'master-keys'].filter((one) =>
            existsSync(join(service().config.dataDir, one)),
          ))
            copyFileSync(join(service().config.dataDir, name), join(config.dataDir, name))
          await restoreBackup(config, { from: join(root, 'backup') }, () => undefined)
          expect((await audit(config, () => undefined)).difference).toBeUndefined()
        } finally {
          await store.drop()
        }
      } finally {
        rmSync(root, { recursive: true, force: true })
      }
    })

    test.each(['before its snapshot', 'after its snapshot'])(
      'a copy names the files of a collection whose first table is dropped %s, and the drop waits for nothing',
      async (when) => {
        const app = await createBlobs(service())
        for (const n of [1, 2]) await keep(app, `scan ${n}`, `{"n":${n}}`)
        const { schema, application } = await service().running.service.tenants.load(app.appId)
        const plain = app.listFiles().sort()
        let isLeft = true
        const drop = async () => {
          if (isLeft) await set(app, 'add')
          isLeft = false
        }
        const { named } = await copyWithBlobs(
          { url: service().config.databaseUrl ?? '' },
          {
            listPlaces: async (session) => {
              // It still knows the table by the snapshot that this takes.
              await session.query(sql`SELECT 1`)
              if (when === 'before its snapshot') await drop()
              return [{ schema, folder: application.number }]
            },
            copy: drop,
          },
        )
        expect(isLeft).toBe(false)
        const found = [...named.values()].map(({ sha256 }) => sha256).sort()
        const sealed = app.listFiles().sort()
        expect(sealed).not.toEqual(plain)
        expect(found).toEqual(when === 'before its snapshot' ? sealed : plain)
      },
    )

    test('erasing a person takes the key of his blob, also from before the change', async () => {
      const app = await createBlobs(service())
      const one = await keep(app, 'scan of p1', '{"person":"p1"}')
      await app.data.call('DELETE', `/blobs/scans/${one}?wait=true`)
      await keep(app, 'scan of p1', '{"person":"p1"}')
      await keep(app, 'scan of p2', '{"person":"p2"}')
      await set(app, 'add')
      expect(await holds(app, ['"file":{'])).toHaveLength(1)
      for (const value of ['p1', 'p2']) {
        const erased = await app.data.call('POST', '/collections/scans/erase', {
          field: 'person',
          value,
        })
        expect(erased.status, erased.text).toBe(200)
      }
      expect((await app.download('scans', one)).status).toBe(404)
      expect(await holds(app, ['"file":{'])).toEqual([])
      expect(await check(service())).toEqual([undefined, true])
    })

    test('a service from before blobs could change keeps its tables, and gets what they lack', async () => {
      const app = await createBlobs(service())
      await app.data.store('notes', [{ id: '1' }])
      await settle(app.data, await change(app.data, 'add', ['notes']))
      const { schema } = await service().running.service.tenants.load(app.appId)
      const { database } = service()
      await service().whileStopped(async () => {
        await database.execute(sql`ALTER TABLE ${sql.id(schema, 'resealed')} DROP COLUMN former`)
        await database.execute(sql`DELETE FROM operations.migration WHERE id = 29`)
      })
      expect(await check(service())).toEqual([undefined, true])
      await keep(app, 'x')
      await set(app, 'add')
      expect(await check(service())).toEqual([undefined, true])
    })

    test('a quota counts each blob once while it has two files, and after', async () => {
      const app = await createBlobs(service())
      const size = 4 * 1024 * 1024
      for (const n of [1, 2, 3]) await keep(app, randomBytes(size), `{"n":${n}}`)
      const quota = { bytes: 5 * size, records: null }
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        body: { quota },
        headers: service().operator,
      })
      const { chain } = await service().running.service.tenants.load(app.appId)
      const hold = new Client({ connectionString: service().config.databaseUrl ?? '' })
      await hold.connect()
      try {
        await hold.query('SELECT pg_advisory_lock_shared(7461101)')
        const asked = change(app.data, 'add', ['scans'])
        const read = async () => JSON.stringify((await app.data.call('GET', '/tasks')).body)
        await expect.poll(read, { timeout: 20_000 }).toContain('a backup or a move is under way')
        // Six files of 4 MiB are there, and the quota is five of them.
        expect(app.listFiles()).toHaveLength(6)
        expect(chain.contents().bytes).toBeLessThan(size / 2)
        await keep(app, randomBytes(size), '{"n":4}')
        await hold.query('SELECT pg_advisory_unlock_all()')
        service().world.advance(11_000)
        await settle(app.data, await asked)
      } finally {
        await hold.end()
      }
      expect(app.listFiles()).toHaveLength(4)
      const over = await app.upload('scans', randomBytes(size))
      expect(over).toMatchObject({ status: 409, body: { code: 'QUOTA_EXCEEDED' } })
      await collect(app)
      service().world.advance(blobGraceMs + 1)
      expect(await collect(app)).toBe(0)
    })

    /** Those of the texts that are in the log or the tables of an application. */
    async function holds({ appId }: Blobs, texts: readonly string[]): Promise<string[]> {
      const { chain, schema } = await service().running.service.tenants.load(appId)
      let all = ''
      for await (const block of chain.blocksFrom(1))
        for (const [sequence] of block.entries.entries())
          all += block.entryBytes(sequence)?.toString() ?? ''
      const tables = await service().database.query<{ name: string }>(sql`
        SELECT relname::text AS name FROM pg_catalog.pg_class AS class
        JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
        WHERE nspname = ${schema} AND relkind = 'r' AND relname <> 'block'`)
      for (const { name } of tables) {
        const rows = await service().database.query<{ text: string }>(
          sql`SELECT one::text AS text FROM ${sql.id(schema, name)} AS one`,
        )
        all += rows.map(({ text }) => text).join('\n')
      }
      return texts.filter((text) => all.includes(text))
    }
  }, settings))
