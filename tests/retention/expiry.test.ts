import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData, type Data, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestService } from '../support/service.ts'
import { auditStopped, dayMs, keepFor, sweep } from './sweep.ts'

withService((service) => {
  test('what is older than its retention is gone from reads, history and the log, and what is younger stays', async () => {
    const app = await createData(service())
    await app.create({ name: 'visits' })
    await app.store('visits', [
      { id: 'a', n: 1, text: 'planted-old' },
      { id: 'b', n: 2 },
    ])
    const old = (await app.record('visits', 'a', '/proof')).body
    const { schema } = await service().running.service.tenants.load(app.appId)
    expect(await holdsText(service(), schema, 'planted-old')).toBe(true)
    service().world.advance(5 * dayMs)
    await app.store('visits', [
      { id: 'b', n: 3 },
      { id: 'c', n: 4 },
    ])
    await keepFor(service(), app, ['visits', 3])
    await sweep(service(), app)

    expect(listIds(await app.list('visits', { sortBy: 'id' }))).toEqual(['b', 'c'])
    expect(await app.record('visits', 'a')).toMatchObject({
      status: 410,
      body: { code: 'RECORD_EXPIRED' },
    })
    expect((await app.record('visits', 'never')).status).toBe(404)
    const { versions } = (await app.record('visits', 'b', '/history')).body
    expect(versions).toMatchObject([
      { record: null, expired: true, leaf_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { record: { id: 'b', n: 3 } },
    ])
    expect((await app.record('visits', 'a', '/history')).body.versions).toHaveLength(1)
    expect((await app.list('visits', { include_history: true })).body.total).toBe(2)
    const stats = (await app.call('GET', '/collections/visits?include_stats=true')).body.metadata
    expect(stats.document_count).toBe(2)

    // The proof from before holds, and the one of now has the same hash.
    const key = (await app.call('GET', '/chain/checkpoint')).body.key
    expect(verifyDocument(JSON.stringify(old), { trustedKey: key }).ok).toBe(true)
    const at = `height=${old.height}&sequence=${old.sequence}`
    const now = (await app.call('GET', `/chain/proof?${at}`)).body
    expect(now.entry).toBeUndefined()
    expect(verifyDocument(JSON.stringify(now), { trustedKey: key }).ok).toBe(true)
    const tenant = await service().running.service.tenants.load(app.appId)
    const block = await tenant.chain.readBlock(old.height)
    expect(block?.entry(old.sequence)).toBeUndefined()
    expect(await holdsText(service(), schema, 'planted-old')).toBe(false)
    expect(await auditStopped(service())).toMatchObject({ equal: true })
  })

  test('a log without the bytes of expired versions makes the same tables again', async () => {
    const app = await createData(service())
    const schema_definition = {
      fields: { mail: { type: 'string', unique: true }, n: { type: 'number', index: true } },
    }
    await app.create({ name: 'people', schema_definition })
    const add = (from: number) =>
      app.store(
        'people',
        Array.from({ length: 40 }, (_, i) => ({
          id: `p${from + i}`,
          mail: `m${(from + i) % 30}`,
          n: i,
        })),
      )
    await add(0)
    service().world.advance(2 * dayMs)
    await add(20)
    await app.store('people', [{ id: 'p59', deleted: true }])
    service().world.advance(2 * dayMs)
    await add(50)
    await keepFor(service(), app, ['people', 3])
    await sweep(service(), app)
    const read = async () => [
      (await app.list('people', { sortBy: 'id' })).text,
      (await app.list('people', { include_history: true, sortBy: 'n' })).body.total,
      (await app.record('people', 'p30', '/history')).text,
      (await app.record('people', 'p3')).body.code,
      await readTables(service(), app),
    ]
    const before = await read()
    expect(before[3]).toBe('RECORD_EXPIRED')
    expect(await auditStopped(service())).toMatchObject({ equal: true })
    const rebuilt = await service().whileStopped((config) => rebuild(config, () => undefined))
    expect(rebuilt.equal).toBe(true)
    expect(await read()).toEqual(before)
    await add(80)
    service().world.advance(10 * dayMs)
    await sweep(service(), app)
    expect((await app.list('people')).body.total).toBe(0)
    expect(await auditStopped(service())).toMatchObject({ equal: true })
  })

  test('live and lazy views, and those of other applications, lose what expires and stay equal to their definitions', async () => {
    const app = await createData(service())
    const other = await createData(service())
    await app.create({ name: 'sales' })
    const put = (from: number, count: number) =>
      app.store(
        'sales',
        Array.from({ length: count }, (_, i) => ({
          id: `s${from + i}`,
          market: `m${(from + i) % 4}`,
          amount: from + i,
        })),
      )
    await put(0, 20)
    const aggregate = { total: { $sum: 'amount' }, most: { $max: 'amount' }, n: { $count: '*' } }
    const query = { select: ['market'], group_by: ['market'], aggregate }
    const view = async (owner: Data, name: string, more: object) => {
      const made = await owner.call('POST', '/views', { name, query, ...more })
      expect(made.status, made.text).toBe(201)
    }
    const source_collections = ['sales']
    await view(app, 'live', { source_collections, refresh_mode: 'live' })
    await view(app, 'lazy', { source_collections, refresh_mode: 'lazy' })
    await view(app, 'rows', {
      source_collections,
      refresh_mode: 'live',
      query: { find: { amount: { lt: 30 } } },
    })
    await app.call('POST', '/grants', { grantee: other.appId, collection: 'sales' })
    await view(other, 'theirs', { source_collections: [`${app.appId}::sales`] })
    await settle(service(), app, other)
    service().world.advance(3 * dayMs)
    await put(15, 20)
    await keepFor(service(), app, ['sales', 2])
    await sweep(service(), app)
    await settle(service(), app, other)
    const told = await app.list('sales', { group_by: ['market'], aggregate, sortBy: 'market' })
    expect(told.status, told.text).toBe(200)
    const grouped = told.body.data ?? told.body.records
    expect(grouped.reduce((sum: number, { n }: Json) => sum + n, 0)).toBe(20)
    expect((await app.list('live', { sortBy: 'market' })).body.records).toEqual(grouped)
    expect((await app.list('rows')).body.total).toBe(15)
    // These state a height before the later sales: what is left of that height is nothing.
    expect((await app.list('lazy')).body.records).toEqual([])
    expect((await other.list('theirs')).body.records).toEqual([])
    await app.call('POST', '/views/lazy/refresh')
    await other.call('POST', '/views/theirs/refresh')
    await settle(service(), app, other)
    expect((await app.list('lazy', { sortBy: 'market' })).body.records).toEqual(grouped)
    expect((await other.list('theirs', { sortBy: 'market' })).body.records).toEqual(grouped)
    expect(await auditStopped(service())).toMatchObject({ equal: true })
  })

  test('an application that cannot be opened keeps no views of others from losing what expires', async () => {
    const app = await createData(service())
    const [broken, sound] = [await createData(service()), await createData(service())]
    await app.store('sales', [{ id: 's', amount: 1 }])
    for (const other of [broken, sound]) {
      await app.call('POST', '/grants', { grantee: other.appId, collection: 'sales' })
      const view = {
        name: 'theirs',
        query: { select: ['id'] },
        source_collections: [`${app.appId}::sales`],
      }
      expect((await other.call('POST', '/views', view)).status).toBe(201)
    }
    await settle(service(), app, broken)
    await settle(service(), app, sound)
    const read = async () => (await sound.list('theirs')).body.records
    expect(await read()).toHaveLength(1)
    const { tenants } = service().running.service
    const number = tenants.system.applications.get(broken.appId)?.number
    const block = sql.id(`app_${number}`, 'block')
    const swap = () =>
      service().whileStopped(() =>
        service().database.execute(
          sql`UPDATE ${block} SET header = set_byte(header, 0, 255 - get_byte(header, 0)) WHERE height = (SELECT max(height) FROM ${block})`,
        ),
      )
    await swap()
    service().world.advance(2 * dayMs)
    await keepFor(service(), app, ['sales', 1])
    await expect(sweep(service(), app)).rejects.toThrow()
    expect(await read()).toEqual([])
    await swap()
    await sweep(service(), app)
    expect((await broken.list('theirs')).body.records).toEqual([])
  })

  test('the bytes of expired records no longer count to the quota, after a restart too', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a', pad: 'x'.repeat(100_000) }])
    const size = async () =>
      (await service().running.service.tenants.load(app.appId)).chain.contents().bytes
    const before = await size()
    service().world.advance(2 * dayMs)
    await keepFor(service(), app, ['c', 1])
    await sweep(service(), app)
    const after = await size()
    expect(before - after).toBeGreaterThan(99_000)
    await service().restart()
    expect(await size()).toBe(after)
  })

  test('what is far over a quota that the operator lowered expires all the same', async () => {
    const app = await createData(service())
    const pad = 'x'.repeat(100_000)
    // More than the room that definitions have beyond a quota.
    for (let at = 0; at < 18; at++) {
      const records = Array.from({ length: 10 }, (_, i) => ({ id: `r${10 * at + i}`, pad }))
      await app.store('c', records)
    }
    service().world.advance(2 * dayMs)
    await keepFor(service(), app, ['c', 1])
    const set = await service().request('PATCH', `/api/apps/${app.appId}`, {
      ...{ body: { quota: { bytes: 1_000_000 } }, headers: service().operator },
    })
    expect(set.status, set.text).toBe(200)
    await sweep(service(), app)
    expect((await app.list('c')).body.total).toBe(0)
  })
})

describe('an entry whose bytes are gone', () => {
  withService((service) => {
    test('is a difference for the audit unless an entry of the chain lets it expire', async () => {
      const app = await createData(service())
      await app.store('c', [{ id: 'a' }, { id: 'b' }])
      const tenant = await service().running.service.tenants.load(app.appId)
      const { height, sequence } = (await app.record('c', 'a', '/proof')).body
      const { firstLeaf } = (await tenant.chain.readBlock(height)) ?? { firstLeaf: 0 }
      await tenant.chain.erase([firstLeaf + sequence])
      expect(await auditStopped(service())).toMatchObject({
        equal: false,
        difference: { what: `entry of leaf ${firstLeaf + sequence}`, found: 'erased' },
      })
    })
  })
})

/** Waits until no view of these has work left. */
async function settle({ running: { service } }: TestService, ...apps: Data[]): Promise<void> {
  for (const { appId } of apps) {
    const { data, chain } = await service.tenants.load(appId)
    await chain.whenCaughtUp()
    for (const id of data.catalog.views.keys()) await service.viewBuilder.whenDone(appId, id)
  }
}

async function readTables({ database, running }: TestService, app: Data) {
  const { schema, data } = await running.service.tenants.load(app.appId)
  const all = data.tableNames().map(async (table) => {
    const rows = await database.query<{ row: string }>(
      sql`SELECT to_jsonb(one)::text AS row FROM ${sql.id(schema, table)} AS one ORDER BY 1`,
    )
    return [table, rows.map(({ row }) => row)]
  })
  return Promise.all(all)
}

/** Returns whether any row of the schema's tables, the log among them, has the text. */
async function holdsText(database: TestService, schema: string, text: string): Promise<boolean> {
  const tables = await database.database.query<{ name: string }>(
    sql`SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = ${schema}`,
  )
  for (const { name } of tables) {
    const found = await database.database.query(sql`
      SELECT 1 AS one FROM ${sql.id(schema, name)} AS row
      WHERE position(${text} IN to_jsonb(row)::text) > 0
        OR position(encode(${text}::bytea, 'hex') IN to_jsonb(row)::text) > 0 LIMIT 1`)
    if (found.length > 0) return true
  }
  return false
}
