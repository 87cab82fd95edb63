import { hash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { afterAll, expect, test, vi } from 'vitest'
import type { NeedRoom, UseRoom } from '../../packages/server/src/base/disk-room.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { EndedUploads } from '../../packages/server/src/services/blobs/ended-uploads.ts'
import { ResumableUploads } from '../../packages/server/src/services/blobs/resumable-uploads.ts'
import { withService } from '../support/per-engine.ts'

const digestOfNothing = `sha-256=:${hash('sha256', '', 'base64')}:`
const root = mkdtempSync(join(tmpdir(), 'tollbase-upload-places-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('where too many ends are remembered, the oldest of the application with the most goes, and not one of others', () => {
  const ended = new EndedUploads({ max: 4, ofApplicationMax: 3 })
  for (const id of ['own1', 'own2']) ended.add(id, 1)
  for (const id of ['many1', 'many2', 'many3']) ended.add(id, 2)
  expect(ended.findExcess()).toBe('many1')
  ended.delete('many1')
  expect(ended.findExcess()).toBeUndefined()
  ended.add('many4', 2)
  expect(ended.findExcess()).toBe('many2')
})

const details = { contentType: 'text/plain', filename: undefined, metadata: undefined }
const refuseOverQuota = () => undefined

const anyRoom: { readonly needRoom: NeedRoom; readonly useRoom: UseRoom } = {
  needRoom: () => undefined,
  useRoom: (work) => work(() => undefined),
}

withService((service) => {
  test('a few applications never have all places of open uploads: some are for those that have none', async () => {
    const places = { max: 8, ofHolderMax: 3, forNew: 2 }
    const uploads = new ResumableUploads({
      root,
      world: realWorld,
      ...anyRoom,
      places,
    })
    const { tenants } = service().running.service
    const load = async () => tenants.load((await service().createApp()).appId)
    const [first, second, third, fourth] = [await load(), await load(), await load(), await load()]
    const create = (tenant: typeof first) =>
      uploads.create({ tenant, collection: 'files' }, { length: 1, details, refuseOverQuota })
    const refused = { code: 'CONFLICT' }
    for (let at = 0; at < 3; at++) await create(first)
    await expect(create(first)).rejects.toMatchObject(refused)
    for (let at = 0; at < 3; at++) await create(second)
    const own = await create(third)
    await expect(create(third)).rejects.toMatchObject(refused)
    await create(fourth)
    await expect(create(await load())).rejects.toMatchObject(refused)
    await uploads.remove(own)
    await create(await load())
  })

  test('a beginning that is refused waits for no other one, and of an application no more wait than it may have open', async () => {
    const places = { max: 8, ofHolderMax: 3, forNew: 2 }
    const folder = join(root, 'waiting')
    const uploads = new ResumableUploads({ root: folder, world: realWorld, ...anyRoom, places })
    const { tenants } = service().running.service
    const tenant = await tenants.load((await service().createApp()).appId)
    const target = { tenant, collection: 'files' }
    const ends: string[] = []
    const create = (refuse: () => void) =>
      uploads.create(target, { length: 1, details, refuseOverQuota: refuse }).then(
        () => ends.push('begun'),
        (error) => ends.push(error.code ?? error.message),
      )
    const overQuota = () => {
      throw new Error('over quota')
    }
    await Promise.all([
      ...Array.from({ length: 5 }, () => create(refuseOverQuota)),
      create(overQuota),
    ])
    expect(ends).toEqual(['UNAVAILABLE', 'UNAVAILABLE', 'over quota', 'begun', 'begun', 'begun'])
  })

  test('of uploads that have ended some are remembered, those of an application that has many go first, also after a restart', async () => {
    const folder = join(root, 'ended')
    const open = () =>
      new ResumableUploads({
        ...{ root: folder, world: realWorld, ...anyRoom },
        ended: { max: 4, ofApplicationMax: 2 },
      })
    let uploads = open()
    const { tenants } = service().running.service
    const load = async () => tenants.load((await service().createApp()).appId)
    const end = async (tenant: Awaited<ReturnType<typeof load>>) => {
      const target = { tenant, collection: 'files' }
      const file = await uploads.create(target, {
        ...{ length: 0, details, refuseOverQuota },
      })
      await uploads.keepResult(file, '{}')
      return () => uploads.require(target, file.id)
    }
    const [first, second, third] = [await load(), await load(), await load()]
    const ends = [await end(first), await end(first), await end(first), await end(second)]
    expect(ends[0]).toThrow('There is no upload')
    for (const find of ends.slice(1)) expect(find().facts.result).toBe('{}')
    uploads = open()
    ends.push(await end(second), await end(third))
    expect(ends[1]).toThrow('There is no upload')
    for (const find of ends.slice(2)) expect(find().facts.result).toBe('{}')
    expect(readdirSync(folder)).toHaveLength(4)
  })

  test('open uploads are counted by application after a restart, an end, a removal, and the removal of an application', async () => {
    const folder = join(root, 'counted')
    let places = { max: 4, ofHolderMax: 2, forNew: 1 }
    const open = () =>
      new ResumableUploads({ ...{ root: folder, world: realWorld, ...anyRoom }, places })
    let uploads = open()
    const { tenants } = service().running.service
    const createApp = async () => {
      const app = await service().createApp()
      return { ...app, tenant: await tenants.load(app.appId) }
    }
    const [first, second, third] = [await createApp(), await createApp(), await createApp()]
    const create = ({ tenant }: typeof first) =>
      uploads.create({ tenant, collection: 'files' }, { length: 0, details, refuseOverQuota })
    const isRefused = (app: typeof first) =>
      expect(create(app)).rejects.toMatchObject({ code: 'CONFLICT' })
    const ended = await create(first)
    const { id: leftId } = await create(first)
    await isRefused(first)
    uploads = open()
    await isRefused(first)
    // Uploads from before the restart end, and are removed, as any other.
    const find = (id: string) => uploads.require({ ...first, collection: 'files' }, id)
    await uploads.keepResult(find(ended.id), '{}')
    await create(first)
    await isRefused(first)
    await uploads.remove(find(leftId))
    await create(first)
    await isRefused(first)
    await create(second)
    // An end counts no more when it is removed.
    await uploads.remove(find(ended.id))
    await isRefused(second)
    await create(third)
    // All four places are taken, also once an application is removed, until its uploads are.
    const gone = await service().request('DELETE', `/api/apps/${first.appId}`, first)
    expect(gone.status, gone.text).toBeLessThan(300)
    await isRefused(await createApp())
    uploads = open()
    await isRefused(await createApp())
    expect(uploads.listApplications()).toEqual(
      new Set([first, second, third].map(({ tenant }) => tenant.application.number)),
    )
    places = { ...places, max: 5 }
    uploads = open()
    await create(await createApp())
    await isRefused(await createApp())
  })

  test('a start removes the bytes that an ended upload has left and a state that is damaged, and nobody finds an upload whose text is', async () => {
    const folder = join(root, 'damaged')
    const open = () => new ResumableUploads({ root: folder, world: realWorld, ...anyRoom })
    const tenant = await service().running.service.tenants.load((await service().createApp()).appId)
    const target = { tenant, collection: 'files' }
    let uploads = open()
    const create = () => uploads.create(target, { length: 1, details, refuseOverQuota })
    const files = [await create(), await create(), await create()] as const
    const [ended, damaged, timeless] = files
    await uploads.keepResult(ended, '{}')
    writeFileSync(ended.path, 'left')
    const change = ({ id }: typeof ended, changes: object) => {
      const path = join(folder, id, 'state.json')
      const state = JSON.parse(readFileSync(path, 'utf8'))
      writeFileSync(path, JSON.stringify({ ...state, ...changes }))
    }
    change(damaged, { info: '{' })
    change(timeless, { touchedAtMs: undefined })
    uploads = open()
    expect(uploads.require(target, ended.id).facts.result).toBe('{}')
    expect(existsSync(ended.path)).toBe(false)
    for (const { id } of [damaged, timeless])
      expect(() => uploads.require(target, id)).toThrow('There is no upload')
    expect(readdirSync(folder).sort()).toEqual([ended.id, damaged.id].sort())
  })

  test('an upload that is refused reads no other one, and those that wait are not refused in one turn', async () => {
    const uploads = new ResumableUploads({
      ...{ root: join(root, 'turns'), world: realWorld, ...anyRoom },
      places: { max: 21, ofHolderMax: 21 },
    })
    const tenant = await service().running.service.tenants.load((await service().createApp()).appId)
    const create = (refuse: () => void) =>
      uploads.create(
        { tenant, collection: 'files' },
        { length: 1, details: { ...details, filename: 'planted' }, refuseOverQuota: refuse },
      )
    const rounds: number[] = []
    let round = 0
    let isOver = false
    const count = () => {
      round += 1
      if (!isOver) setImmediate(count)
    }
    count()
    /** It was within its quota when it came, and is not any more when its turn comes. */
    const makeRefuse = () => {
      let asked = 0
      return () => {
        asked += 1
        if (asked === 1) return
        rounds.push(round)
        throw new Error('no room')
      }
    }
    const parse = vi.spyOn(JSON, 'parse')
    try {
      const [, ...refused] = await Promise.allSettled([
        create(refuseOverQuota),
        ...Array.from({ length: 20 }, () => create(makeRefuse())),
      ])
      for (const one of refused) expect(one).toMatchObject({ reason: { message: 'no room' } })
      for (let n = 0; n < 20; n++) await create(refuseOverQuota)
      await expect(create(refuseOverQuota)).rejects.toMatchObject({ code: 'CONFLICT' })
      expect(parse.mock.calls.filter(([text]) => text.includes('planted'))).toEqual([])
    } finally {
      parse.mockRestore()
      isOver = true
    }
    expect(new Set(rounds).size).toBe(20)
  })

  test('an upload of no bytes that is refused is not left open', async () => {
    const app = await service().createApp()
    const ask = (method: string, path: string, more: object = {}) =>
      service().request(method, path, { headers: app.headers, ...more })
    await ask('POST', '/store?wait=true', {
      body: { root: `${app.appId}::rows`, data: [{ id: 'a', n: 1 }] },
    })
    const at = `"${app.appId}"::`
    const sql = `CREATE MATERIALIZED VIEW ${at}taken AS SELECT n FROM ${at}rows`
    expect(
      (await ask('POST', `/api/apps/${app.appId}/views/sql`, { body: { sql } })).status,
    ).toBeLessThan(300)
    const headers = { ...app.headers, 'tus-resumable': '1.0.0', 'upload-length': '0' }
    const path = `/api/apps/${app.appId}/blobs`
    for (let n = 0; n < limits.openUploadsOfApplicationMax; n++)
      expect((await ask('POST', `${path}/taken/uploads`, { headers })).body.code).toBe(
        'VIEW_EXISTS',
      )
    expect((await ask('POST', `${path}/free/uploads`, { headers })).status).toBe(201)
  })

  test('an application whose files cannot be measured now stops the uploads of no other', async () => {
    const [first, second] = [await service().createApp(), await service().createApp()]
    const { blobs, tenants } = service().running.service
    const { number } = (await tenants.load(first.appId)).application
    const hang: { end: () => void } = { end: () => undefined }
    const hanging = new Promise<void>((resolve) => {
      hang.end = resolve
    })
    const measure = blobs.store.measure.bind(blobs.store)
    blobs.store.measure = async (folder) => {
      if (folder === number) await hanging
      return measure(folder)
    }
    const create = ({ appId, headers }: typeof first) =>
      service().request('POST', `/api/apps/${appId}/blobs/files/uploads`, {
        headers: { ...headers, 'tus-resumable': '1.0.0', 'upload-length': '1' },
      })
    try {
      const waiting = create(first)
      // Time in which the first one comes to where it waits.
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect((await create(second)).status).toBe(201)
      hang.end()
      expect((await waiting).status).toBe(201)
    } finally {
      hang.end()
      blobs.store.measure = measure
    }
  })

  test('one Idempotency-Key names one upload: another length is refused, and not answered with the first one', async () => {
    const app = await service().createApp()
    const create = (length: string) =>
      service().request('POST', `/api/apps/${app.appId}/blobs/files/uploads`, {
        headers: {
          ...{ ...app.headers, 'tus-resumable': '1.0.0', 'upload-length': length },
          ...{ 'idempotency-key': 'one-upload', 'content-digest': digestOfNothing },
        },
      })
    const first = await create('5')
    expect(first.status, first.text).toBe(201)
    expect((await create('5')).headers.get('location')).toBe(first.headers.get('location'))
    expect((await create('6')).body.code).toBe('IDEMPOTENCY_KEY_USED')
  })
})
