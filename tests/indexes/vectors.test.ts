import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findExtensionSchema } from '../../packages/server/src/database/extensions.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { logNothing } from '../audit/place.ts'
import { createData, type Data, listIds } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Debian 12 has no package of pgvector: these tests are skipped where nobody has built it for PostgreSQL 15. */
const hasPgvector = existsSync('/usr/share/postgresql/15/extension/vector.control')

const numbers = 16
// Parts of sines of large numbers are as good as random ones, and the same in each run.
const makeList = (at: number) =>
  Array.from({ length: numbers }, (_, k) => Math.sin((at * numbers + k) ** 2 + 1))
const wanted = { collection: 'c', field_name: 'v', index_type: 'vector', dimensions: numbers }

async function store(app: Data): Promise<void> {
  const records = Array.from({ length: 3_000 }, (_, at) => ({
    id: `${at}`,
    g: at % 3,
    v: makeList(at),
  }))
  for (let at = 0; at < records.length; at += 1_000)
    expect((await app.store('c', records.slice(at, at + 1_000))).status).toBe(200)
}

async function isActive(app: Data): Promise<void> {
  const state = async () => (await app.call('GET', '/collections/c/indexes/c_v_idx/status')).body
  await expect.poll(state, { timeout: 60_000 }).toMatchObject({ status: 'active' })
}

describe.skipIf(!hasPgvector)('a server with pgvector', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService({ engine: 'debian15' })
  })
  afterAll(() => service?.close())

  const near = (app: Data, more: object = {}, also: object = {}) =>
    app.list('c', {
      nearest: { field: 'v', to: makeList(7), as: 'd', ...more },
      limit: 10,
      ...also,
    })

  test('has its extension created at the start, and an index answers those who ask for it, and says so', async () => {
    expect(await findExtensionSchema(service.database, 'vector')).toBe('extensions')
    const app = await createData(service)
    await store(app)
    const exact = await near(app)
    expect(exact.body).toMatchObject({ search: 'exact', total: 10 })
    expect((await near(app, { approximate: true })).text).toBe(exact.text)
    const made = await app.call('POST', '/indexes', wanted)
    expect(made.body).toMatchObject({
      dimensions: numbers,
      measure: 'cosine',
      index_type: 'vector',
    })
    await isActive(app)
    expect((await near(app)).body.records).toEqual(exact.body.records)
    const quick = await near(app, { approximate: true })
    expect(quick.body.search).toBe('approximate')
    expect(quick.body.records[0]).toEqual(exact.body.records[0])
    const common = listIds(quick).filter((id) => listIds(exact).includes(id))
    expect(common.length).toBeGreaterThan(6)
    const explained = await app.call('POST', '/collections/c/explain', {
      query: { nearest: { field: 'v', to: makeList(7), approximate: true }, limit: 10 },
    })
    expect(explained.body.optimization_hints.join()).toContain('c_v_idx')
    // Another measure, number of numbers or moment is none of the index.
    for (const other of [{ measure: 'l2' }, { to: makeList(7).slice(1) }])
      expect((await near(app, { approximate: true, ...other })).body.search).toBe('exact')
    const history = await near(app, { approximate: true }, { include_history: true })
    expect(history.body.search).toBe('exact')
  })

  test('gives as many as are asked for and match, new versions and not the old or deleted ones', async () => {
    const app = await createData(service)
    await store(app)
    await app.call('POST', '/indexes', wanted)
    await isActive(app)
    const few = await near(app, { approximate: true }, { find: { id: { in: ['5', '77'] } } })
    expect(few.body).toMatchObject({ search: 'exact', total: 2 })
    const page = await near(app, { approximate: true }, { find: { g: 1 }, offset: 90, limit: 30 })
    expect(page.body.records).toHaveLength(30)
    await app.store('c', [
      { id: '7', g: 1, v: makeList(8_000) },
      { id: '8', deleted: true },
      { id: 'new', v: makeList(7) },
      { id: 'text', v: 'x' },
      { id: 'short', v: [1] },
      { id: 'mixed', v: [...makeList(7).slice(1), '1'] },
      { id: 'large', v: [...makeList(7).slice(1), 1e200] },
    ])
    const ids = listIds(await near(app, { approximate: true }))
    expect(ids[0]).toBe('new')
    expect(ids).not.toContain('7')
    expect(ids).not.toContain('8')
  })

  test('passes the audit with its index, which is the same after a rebuild and a restart', async () => {
    const app = await createData(service)
    await store(app)
    await app.call('POST', '/indexes', { ...wanted, measure: 'l2' })
    await isActive(app)
    const ask = async () => (await near(app, { approximate: true, measure: 'l2' })).body.search
    expect((await app.call('POST', '/collections/c/indexes/c_v_idx/rebuild', {})).status).toBe(200)
    await service.whileStopped(async (config) => {
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
    })
    expect(await ask()).toBe('approximate')
  })

  test('serves exactly once its extension is gone, takes writes and starts again', async () => {
    const app = await createData(service)
    await store(app)
    await app.call('POST', '/indexes', wanted)
    await isActive(app)
    const before = await near(app)
    await service.database.execute(sql`DROP EXTENSION vector CASCADE`)
    expect((await near(app, { approximate: true })).text).toBe(before.text)
    expect((await app.store('c', [{ id: 'more', v: [1] }])).status).toBe(200)
    await service.restart()
    // The start has created the extension, and the index is built anew.
    await isActive(app)
    expect((await near(app, { approximate: true })).body.search).toBe('approximate')
  })

  test('whose pgvector is too old for conditions searches exactly, and refuses an index with what to do', async () => {
    const app = await createData(service)
    await service.database.execute(
      sql`UPDATE pg_catalog.pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'`,
    )
    const { status, body } = await app.call('POST', '/indexes', wanted)
    expect(status).toBe(400)
    expect(body.error).toContain('0.8')
    await service.database.execute(
      sql`UPDATE pg_catalog.pg_extension SET extversion = '0.8.6' WHERE extname = 'vector'`,
    )
  })
})

describe('a server without pgvector', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService({ engine: 'embedded' })
  })
  afterAll(() => service?.close())

  test('answers who may have an approximate answer exactly, and says so', async () => {
    const app = await createData(service)
    await app.store(
      'c',
      [1, 2, 3].map((at) => ({ id: `${at}`, v: makeList(at) })),
    )
    const nearest = { field: 'v', to: makeList(2), approximate: true }
    const { body } = await app.list('c', { nearest, limit: 2 })
    expect(body).toMatchObject({ search: 'exact', total: 2 })
    expect(body.records[0].id).toBe('2')
    expect((await app.list('c', { limit: 2 })).body).not.toHaveProperty('search')
    expect(
      (await app.list('c', { nearest: { ...nearest, approximate: 'yes' }, limit: 2 })).status,
    ).toBe(400)
  })

  test.each([
    [wanted, /^\/index_type needs the extension vector of version 0\.8 or newer, .*pgvector/],
    [{ ...wanted, dimensions: undefined }, /^\/dimensions/],
    [{ ...wanted, dimensions: 2_001 }, /^\/dimensions .* 2000$/],
    [{ ...wanted, dimensions: 1.5 }, /^\/dimensions/],
    [{ ...wanted, measure: 'x' }, /^\/measure/],
    [{ ...wanted, unique: true }, /^\/index_type vector cannot be unique/],
    [{ ...wanted, sparse: true }, /^\/where/],
    [{ ...wanted, where: { g: 1 } }, /^\/where/],
    [{ ...wanted, fields: ['a', 'b'] }, /^\/fields/],
  ])('refuses an index like %j, and says why', async (request, message) => {
    const app = await createData(service)
    const { status, body } = await app.call('POST', '/indexes', request)
    expect(status).toBe(400)
    expect(body.error).toMatch(message)
  })
})
