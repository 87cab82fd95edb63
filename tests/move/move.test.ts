import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseCheckpoint } from '@tollbase/verify/checkpoint'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Config } from '../../packages/server/src/config/config.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import {
  findContradiction,
  listCheckpoints,
} from '../../packages/server/src/operator/audit/audit-checkpoint.ts'
import { exportApplication } from '../../packages/server/src/operator/move/export-application.ts'
import {
  type ImportReport,
  importApplication,
} from '../../packages/server/src/operator/move/import-application.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { createData, type Data, makeData } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'

const silent = () => undefined
const root = mkdtempSync(join(tmpdir(), 'tollbase-move-'))
const place = (name: string) => join(root, name)

let home: TestService
let away: TestService
let data: Data
let blobs: Blobs
let picture: string

/** The signing key of an application's chain, as the service that it is at tells it. */
async function readKey(service: TestService, { appId, headers }: Data): Promise<string> {
  const path = `/api/apps/${appId}/chain/checkpoint`
  return (await service.request('GET', path, { headers })).body.key
}

const exportTo = (to: string, app = data.appId) =>
  exportApplication(home.config, { app, to: place(to) }, silent)

const importFrom = (from: string, key: string, service = away): Promise<ImportReport> =>
  service.whileStopped((config) => importApplication(config, { from: place(from), key }, silent))

beforeAll(async () => {
  home = await startTestService({ config: { encryptionUpdatePrice: 0n } })
  away = await startTestService()
  // So that the application has another number there.
  await away.createApp('first')
  blobs = await createBlobs(home)
  data = blobs.data
  await data.publish('notes', [
    { id: 'n1', text: 'first' },
    { id: 'n2', text: 'second', amount: 1.5 },
  ])
  await data.store('notes', [{ id: 'n1', text: 'changed' }])
  await data.call('POST', '/views', {
    name: 'count',
    source_collections: ['notes'],
    query: { aggregate: { rows: { $count: '*' } } },
    refresh_mode: 'live',
  })
  await data.call('POST', '/datasets', { name: 'set', kind: 'values', entries: ['a', 7] })
  picture = (await blobs.upload('pictures', 'a picture of a cat')).body.blob_id
  const api = await data.call('POST', '/api-collections', {
    name: 'weather',
    upstream: {
      url: 'https://weather.example/v1',
      headers: { authorization: 'Bearer of the seller' },
    },
  })
  expect(api.status, api.text).toBe(201)
  await data.create({ name: 'secrets', primary_column: 'id' })
  const sealed = await data.call('POST', '/encryption', {
    collections: ['secrets'],
    action: 'add',
  })
  expect(sealed.status, sealed.text).toBe(200)
  await data.store('secrets', [{ id: 's1', word: 'open sesame' }])
})

afterAll(async () => {
  await home?.close()
  await away?.close()
  rmSync(root, { recursive: true, force: true })
})

describe('an application that moves', () => {
  test('at the other service it has the same records, history, views, files, keys and root of its log, and goes on', async () => {
    const before = await data.call('GET', '/chain/checkpoint')
    const exported = await exportTo('whole')
    expect(exported.checkpoint.split('\n').slice(0, 3)).toEqual(
      before.body.checkpoint.split('\n').slice(0, 3),
    )
    const key = await readKey(home, data)
    expect(exported.key).toBe(key)

    // The encrypted records need the master key that they were sealed under.
    const blocked = importFrom('whole', key)
    await expect(blocked).rejects.toThrow(/master key [0-9a-f]{16} of the other service: add that/)
    copyFileSync(join(home.config.dataDir, 'master-keys'), join(away.config.dataDir, 'master-keys'))
    const report = await importFrom('whole', key)
    expect(report).toMatchObject({ equal: true, app: data.appId, keys: 1 })

    const there = makeData(away, data)
    const same = async (ask: (of: Data) => Promise<{ body: unknown }>) =>
      expect((await ask(there)).body).toEqual((await ask(data)).body)
    const { body: moved } = await there.call('GET', '/chain/checkpoint')
    const [at, was] = [moved.checkpoint, before.body.checkpoint].map((note) =>
      parseCheckpoint(note),
    )
    expect([at?.size, at?.root]).toEqual([was?.size, was?.root])
    expect(at?.origin).not.toBe(was?.origin)
    await same(async (of) => ({ body: (await of.list('notes')).body.records }))
    await same(async (of) => ({ body: (await of.record('notes', 'n1', '/history')).body }))
    expect((await there.record('secrets', 's1')).body).toMatchObject({
      record: { word: 'open sesame' },
    })
    await expect
      .poll(async () => (await there.call('GET', '/views/count/data')).body.data)
      .toEqual([{ rows: 2 }])
    expect(await there.call('GET', '/api-collections/weather/data')).toMatchObject({
      status: 502,
      body: {
        error: 'The headers for this API cannot be opened here; its seller must set them again',
      },
    })
    const path = `/api/apps/${data.appId}/blobs/pictures/${picture}?format=raw`
    const file = await away.request('GET', path, { headers: data.headers })
    expect(file.text).toBe('a picture of a cat')

    expect((await there.store('notes', [{ id: 'n3', text: 'at the other' }])).status).toBe(200)
    expect((await there.list('notes')).body.records).toHaveLength(3)
    const check = async (config: Config) => {
      expect(await audit(config, silent)).toMatchObject({ equal: true })
      expect(await rebuild(config, silent)).toMatchObject({ equal: true })
      return audit(config, silent)
    }
    expect(await away.whileStopped(check)).toMatchObject({ equal: true })
    expect((await there.list('notes')).body.records).toHaveLength(3)

    const again = importFrom('whole', key)
    await expect(again).rejects.toThrow(`there is an application ${data.appId} here already`)
  })

  test('a change of encryption that is under way moves, and ends at the other service', async () => {
    const mover = await createData(home)
    const records = Array.from({ length: 1_200 }, (_, n) => ({ id: `r${n}`, text: 'planted' }))
    const points = new Set<string>()
    home.world.atFailpoints((point) => {
      if (points.has(point)) throw new Error('broken off')
    })
    const begin = async (name: string, point: string, state: string) => {
      points.add(point)
      await mover.store(name, records)
      await mover.call('POST', '/encryption', { action: 'add', collections: [name] })
      const of = async () => {
        const { data: now } = await home.running.service.tenants.load(mover.appId)
        return now.catalog.resealings.get(now.catalog.byName.get(name)?.id ?? '')?.state
      }
      await expect.poll(of).toBe(state)
    }
    await begin('first', 'block.erased', 'erasing')
    await begin('second', 'resealing.copied', 'copying')
    await exportTo('resealing', mover.appId)
    points.clear()
    copyFileSync(join(home.config.dataDir, 'master-keys'), join(away.config.dataDir, 'master-keys'))
    expect(await importFrom('resealing', await readKey(home, mover))).toMatchObject({ equal: true })
    const there = makeData(away, mover)
    const { chain, data: of } = await away.running.service.tenants.load(mover.appId)
    const listStates = () => [...of.catalog.resealings.values()].map(({ state }) => state)
    await expect.poll(listStates, { timeout: 30_000 }).toEqual(['completed', 'completed'])
    for await (const block of chain.blocksFrom(1))
      for (const entry of block.entries) expect(entry?.body ?? '').not.toContain('planted')
    for (const name of ['first', 'second'])
      expect((await there.list(name, { limit: 1 })).body.total).toBe(1_200)
    const check = async (config: Config) => {
      expect(await rebuild(config, silent)).toMatchObject({ equal: true })
      return audit(config, silent)
    }
    expect(await away.whileStopped(check)).toMatchObject({ equal: true })
  })

  test('the audit asks for the root that the other service signed', async () => {
    const { checkpoint, key } = await exportTo('signed')
    const { size, root: signed } = parseCheckpoint(checkpoint)
    const of = {
      app: data.appId,
      schema: 'app_2',
      origin: 'away/app',
      vkey: '',
      projections: () => [],
    }
    const expected = listCheckpoints([], { ...of, movedFrom: { checkpoint, key } })
    const compare = (found: Uint8Array) =>
      findContradiction(expected, {
        origin: of.origin,
        roots: new Map([[size, found]]),
        entries: size,
      })
    expect(compare(signed)).toBeUndefined()
    expect(compare(signed.map((byte) => byte ^ 1))?.what).toContain('was moved with')
    const changed = checkpoint.replace(`\n${size}\n`, `\n${size + 1}\n`)
    expect(() => listCheckpoints([], { ...of, movedFrom: { checkpoint: changed, key } })).toThrow()
  })
})

describe('an export that is not what the other service signed', () => {
  test('it is refused by name: another key, a changed list of keys, a changed log, a changed file', async () => {
    const key = await readKey(home, data)
    const other = await readKey(away, await createData(away))
    await exportTo('changed')
    const folder = place('changed')
    await expect(importFrom('changed', other)).rejects.toThrow(/not signed by the key of --key/)
    await expect(importFrom('changed', 'no key')).rejects.toThrow(/--key: /)
    await expect(importFrom('nowhere', key)).rejects.toThrow(/not an exported application/)

    const manifest = join(folder, 'application.json')
    const text = readFileSync(manifest, 'utf8')
    writeFileSync(manifest, text.replace('"Read"', '"Read","Operator"'))
    await expect(importFrom('changed', key)).rejects.toThrow(/was changed/)
    writeFileSync(manifest, text)
  })

  test('a damaged log or file leaves nothing behind, and the whole export is taken afterwards', async () => {
    const mover = await createBlobs(home)
    await mover.upload('pictures', 'a dog')
    await exportTo('damaged', mover.appId)
    const key = await readKey(home, mover.data)
    const block = readFileSync(join(place('damaged'), 'block'))
    appendFileSync(join(place('damaged'), 'block'), 'x')
    await expect(importFrom('damaged', key)).rejects.toThrow()
    writeFileSync(
      join(place('damaged'), 'block'),
      block.map((byte, at) => (at === 300 ? byte ^ 1 : byte)),
    )
    await expect(importFrom('damaged', key)).rejects.toThrow()
    expect((await away.request('GET', `/api/apps/${mover.appId}`)).status).toBe(404)
    writeFileSync(join(place('damaged'), 'block'), block)
    expect(await importFrom('damaged', key)).toMatchObject({ equal: true })
    expect(await away.whileStopped((config) => audit(config, silent))).toMatchObject({
      equal: true,
    })
  })

  test('an import that dies at its end is run again, and the keys come with its last step', async () => {
    const mover = await createData(home)
    await mover.publish('notes', [{ id: 'a' }])
    const key = await readKey(home, mover)
    // Archived, so that nothing is written after the export; where it goes it is active.
    expect((await mover.call('DELETE', '')).status).toBe(200)
    await exportTo('died', mover.appId)
    // The row that the import is about to write stands in its way.
    const [{ next } = { next: 0 }] = await away.database.query<{ next: number }>(
      sql`SELECT max((body::jsonb ->> 'number')::int4) + 1 AS next FROM system.application`,
    )
    await away.database.execute(sql`
      INSERT INTO operations.chain_lease (chain, holder, epoch, expires_at_ms) VALUES (${`app_${next}`}, '', 1, 0)`)
    await expect(importFrom('died', key)).rejects.toThrow(/chain_lease_pkey/)
    const ask = (path: string) => away.request('GET', path, { headers: mover.headers })
    expect((await ask(`/api/apps/${mover.appId}/collections`)).status).toBe(401)
    await away.database.execute(
      sql`DELETE FROM operations.chain_lease WHERE chain = ${`app_${next}`}`,
    )
    expect(await importFrom('died', key)).toMatchObject({ equal: true, keys: 1 })
    expect((await ask(`/api/apps/${mover.appId}/collections`)).status).toBe(200)
    expect(await away.whileStopped((config) => audit(config, silent))).toMatchObject({
      equal: true,
    })
  })

  test('an import that died is not in the way of a newer export of the same application', async () => {
    const mover = await createData(home)
    await mover.publish('notes', [{ id: 'a' }])
    const key = await readKey(home, mover)
    await exportTo('older', mover.appId)
    const [{ next } = { next: 0 }] = await away.database.query<{ next: number }>(
      sql`SELECT max((body::jsonb ->> 'number')::int4) + 1 AS next FROM system.application`,
    )
    await away.database.execute(sql`
      INSERT INTO operations.chain_lease (chain, holder, epoch, expires_at_ms) VALUES (${`app_${next}`}, '', 1, 0)`)
    await expect(importFrom('older', key)).rejects.toThrow(/chain_lease_pkey/)
    await away.database.execute(
      sql`DELETE FROM operations.chain_lease WHERE chain = ${`app_${next}`}`,
    )
    await mover.store('notes', [{ id: 'b' }])
    await exportTo('newer', mover.appId)
    expect(await importFrom('newer', key)).toMatchObject({ equal: true, keys: 1 })
    const there = makeData(away, mover)
    expect((await there.list('notes')).body.records).toHaveLength(2)
    expect(await away.whileStopped((config) => audit(config, silent))).toMatchObject({
      equal: true,
    })
    for (const name of ['older', 'newer'])
      await expect(importFrom(name, key)).rejects.toThrow(/here already/)
  })

  test('an export that lacks the file of a blob is taken only by a flag, and what is lost is named', async () => {
    const mover = await createBlobs(home)
    const { blob_id: id } = (await mover.upload('pictures', 'a bird')).body
    await mover.upload('pictures', 'a fish')
    await exportTo('holey', mover.appId)
    const hash = id.slice('blob_'.length)
    rmSync(join(place('holey'), 'blobs', hash.slice(0, 2), hash))
    const key = await readKey(home, mover.data)
    const from = place('holey')
    const lost = { count: 1, first: [`${mover.appId}, pictures, ${id}`] }
    expect(await importFrom('holey', key)).toMatchObject({ equal: false, lost })
    expect((await away.request('GET', `/api/apps/${mover.appId}`)).status).toBe(404)
    const taken = await away.whileStopped((config) =>
      importApplication(config, { from, key, acceptLost: true }, silent),
    )
    expect(taken).toMatchObject({ equal: true, lost })
    const path = `/api/apps/${mover.appId}/blobs/pictures/${id}?format=raw`
    const { headers } = mover.data
    expect(await away.request('GET', path, { headers })).toMatchObject({ status: 410 })
  })

  test('a view over another application does not move, since nobody has granted it there', async () => {
    const [mover, other] = [
      makeData(home, await home.createApp('mover')),
      makeData(home, await home.createApp('other')),
    ]
    await other.publish('open', [{ id: 'a', n: 1 }])
    await mover.publish('notes', [{ id: 'a' }])
    await other.call('POST', '/grants', { grantee: 'mover', collection: 'open' })
    const view = await mover.call('POST', '/views/sql', {
      sql: `CREATE MATERIALIZED VIEW ${mover.appId}::sums AS SELECT sum(n) AS n FROM ${other.appId}::open`,
      refresh_mode: 'lazy',
    })
    expect(view.status, view.text).toBeLessThan(300)
    await exportTo('foreign', mover.appId)
    const key = await readKey(home, mover)
    await expect(importFrom('foreign', key)).rejects.toThrow(
      `the view sums reads the application ${other.appId}`,
    )
    expect((await away.request('GET', `/api/apps/${mover.appId}`)).status).toBe(404)
  })

  test('a grant does not move, since there its name may be of somebody else', async () => {
    const [mover, friend] = [
      makeData(home, await home.createApp('granter')),
      makeData(home, await home.createApp('friend')),
    ]
    await mover.publish('stations', [{ id: 'a' }])
    const granted = await mover.call('POST', '/grants', {
      ...{ grantee: friend.appId, collection: 'stations' },
    })
    expect(granted.status, granted.text).toBe(201)
    await exportTo('granting', mover.appId)
    const key = await readKey(home, mover)
    await expect(importFrom('granting', key)).rejects.toThrow(
      `the collection stations is granted to the application ${friend.appId}, which here may be of somebody else: take the grant back at the other service, and export again`,
    )
    expect((await away.request('GET', `/api/apps/${mover.appId}`)).status).toBe(404)
    const revoked = await mover.call('DELETE', `/grants/${granted.body.id}`)
    expect(revoked.status, revoked.text).toBe(200)
    await exportTo('granted', mover.appId)
    expect(await importFrom('granted', key)).toMatchObject({ equal: true })
  })
})
