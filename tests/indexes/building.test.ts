import { expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { printKeyExpression } from '../../packages/server/src/query/index-key.ts'
import { IndexBuilder } from '../../packages/server/src/services/indexes/index-builder.ts'
import { createData, type Data } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'

/** The time-outs are long, so that a slow day fails no test. */
const patience = { timeout: 30_000 }

/** The number is higher than the records that are indexed at once. */
const manyMin = 2_500

const records = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ id: `r${from + at}`, n: (from + at) % 1_000 }))

async function filled(service: TestService, count = manyMin): Promise<Data> {
  const app = await createData(service)
  for (let from = 0; from < count; from += 10_000)
    await app.store('c', records(Math.min(10_000, count - from), from))
  return app
}

const indexRequest = { collection: 'c', field_name: 'n', index_type: 'number' }
const status = async (app: Data, name = 'c_n_idx') =>
  (await app.call('GET', `/collections/c/indexes/${name}/status`)).body

/** Waits until the index has this state. */
async function until(app: Data, wanted: string, name?: string) {
  await expect.poll(async () => (await status(app, name)).status, patience).toBe(wanted)
}

/** Reads the indexes and statistics that the application's schema has, whatever their state. */
async function stored(service: TestService, app: Data) {
  const { schema } = await service.running.service.tenants.load(app.appId)
  return service.database.query<{ name: string; valid: boolean }>(sql`
    SELECT class.relname::text AS name, index.indisvalid AS valid FROM pg_catalog.pg_index AS index
    JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND class.relname LIKE 'i\\_%' ORDER BY class.relname`)
}

/** Does the work while another transaction holds the collection, which every build waits for. */
async function whileHeld<T>(service: TestService, app: Data, work: () => Promise<T>): Promise<T> {
  const { schema, data } = await service.running.service.tenants.load(app.appId)
  const table = data.catalog.byName.get('c')?.table ?? ''
  return service.database.transaction(async (tx) => {
    await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ROW EXCLUSIVE MODE`)
    return work()
  })
}

/** Returns how many records the planner expects for a condition. */
async function expected(service: TestService, app: Data, condition: string): Promise<number> {
  const { schema, data } = await service.running.service.tenants.load(app.appId)
  const table = sql.id(schema, data.catalog.byName.get('c')?.table ?? '')
  const [row] = await service.database.query<{ 'QUERY PLAN': string }>(sql`
    EXPLAIN (FORMAT JSON) SELECT body FROM ${table}
    WHERE superseded_by IS NULL AND ${sql.compiled(condition, [])}`)
  return JSON.parse(row?.['QUERY PLAN'] ?? '')[0].Plan['Plan Rows']
}

/** Says that the values were analyzed, too. */
async function hasAnalyzed(service: TestService, app: Data): Promise<boolean> {
  const { schema } = await service.running.service.tenants.load(app.appId)
  const rows = await service.database.query(sql`
    SELECT statistics_name FROM pg_catalog.pg_stats_ext_exprs
    WHERE schemaname = ${schema} AND n_distinct IS NOT NULL`)
  return rows.length > 0
}

/** Lists the names of the statistics that the planner has in the application's schema. */
async function listStatistics(service: TestService, app: Data): Promise<string[]> {
  const { schema } = await service.running.service.tenants.load(app.appId)
  const rows = await service.database.query<{ name: string }>(sql`
    SELECT stxname::text AS name FROM pg_catalog.pg_statistic_ext AS statistics
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = stxnamespace
    WHERE nspname = ${schema}`)
  return rows.map(({ name }) => name)
}

describePerEngine('building indexes', (service) => {
  test('the planner learns how many records a value has, and forgets it with the index', async () => {
    const app = await filled(service(), 5_000)
    await app.call('POST', '/indexes', indexRequest)
    await expect.poll(() => hasAnalyzed(service(), app), patience).toBe(true)
    // The range has about a tenth of the 1,000 values; each value has five records.
    const n = `(${printKeyExpression(['n'])})`
    const wide = await expected(service(), app, `${n} >= '900'::jsonb AND ${n} < '1e9'::jsonb`)
    expect(wide).toBeGreaterThan(300)
    expect(wide).toBeLessThan(700)
    const narrow = await expected(service(), app, `${n} = '7'::jsonb`)
    expect(narrow).toBeLessThan(10)
    await app.call('DELETE', '/collections/c/indexes/c_n_idx')
    await expect.poll(() => listStatistics(service(), app), patience).toEqual([])
  })

  test('the planner learns of an index that was made before there were records', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'first', n: 1 }])
    await app.call('POST', '/indexes', indexRequest)
    await expect.poll(() => listStatistics(service(), app), patience).toHaveLength(1)
  })

  test('stores go on while an index over 50,000 records is built, and none of them is missing in it', async () => {
    const app = await filled(service(), 50_000)
    let replies: TestReply[] = []
    await whileHeld(service(), app, async () => {
      const made = await app.call('POST', '/indexes', indexRequest)
      expect(made).toMatchObject({ status: 200, body: { status: 'building' } })
      replies = await Promise.all(
        Array.from({ length: 20 }, (_, at) => app.store('c', [{ id: `new${at}`, n: 5_000 }])),
      )
      expect(await status(app)).toMatchObject({
        status: 'building',
        building: true,
        rows_total: 50_020,
      })
    })
    // Once the collection is released, the build goes on beside further stores.
    let now = await status(app)
    for (let at = 20; now.status === 'building'; at++) {
      // An exact fraction would tell the size of the table.
      expect(String(now.progress)).toMatch(/^[01](\.\d\d?)?$/)
      replies.push(await app.store('c', [{ id: `new${at}`, n: 5_000 }]))
      now = await status(app)
    }
    expect(replies.map((reply) => reply.status)).toEqual(replies.map(() => 200))
    expect(await status(app)).toMatchObject({ status: 'active', progress: 1, building: false })
    const query = { find: { n: 5_000 }, limit: 1_000 }
    const explained = await app.call('POST', '/collections/c/explain', { query })
    expect(explained.body.indexes_used).toEqual(['c_n_idx'])
    expect((await app.list('c', query)).body.total).toBe(replies.length)
  }, 90_000)

  test('a build that the end of the service broke off is begun again by the next one', async () => {
    const app = await filled(service())
    await whileHeld(service(), app, async () => {
      await app.call('POST', '/indexes', indexRequest)
      await expect.poll(() => stored(service(), app), patience).toMatchObject([{ valid: false }])
      await service().restart()
    })
    await until(app, 'active')
    expect(await stored(service(), app)).toMatchObject([{ valid: true }])
  })

  test('a rebuild makes large indexes too, once all rows are there; the audit finds nothing amiss', async () => {
    const app = await filled(service())
    await app.call('POST', '/indexes', indexRequest)
    await until(app, 'active')
    await service().whileStopped(async (config) => {
      expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
    })
    await until(app, 'active')
    expect(await stored(service(), app)).toMatchObject([{ valid: true }])
    expect((await app.list('c', { find: { n: 7 }, limit: 10 })).body.total).toBe(3)
  })

  test('the remains of a broken build are removed and the index is built again, and a broken rebuild leaves nothing', async () => {
    const app = await filled(service())
    await app.call('POST', '/indexes', indexRequest)
    await until(app, 'active')
    const { schema } = await service().running.service.tenants.load(app.appId)
    const [index] = await stored(service(), app)
    await service().whileStopped(async () => {
      const name = index?.name ?? ''
      await service().database.execute(sql`DROP INDEX ${sql.id(schema, name)}`)
      // The indexes are as a killed server leaves them.
      for (const [left, valid] of [
        [name, false],
        [`${name}_ccnew`, false],
        ['i_0', true],
      ] as const) {
        await service().database.execute(
          sql`CREATE INDEX ${sql.id(left)} ON ${sql.id(schema, 'c_1')} (leaf)`,
        )
        await service().database.execute(sql`
          UPDATE pg_catalog.pg_index SET indisvalid = ${valid}
          WHERE indexrelid = ${`"${schema}"."${left}"`}::regclass`)
      }
    })
    await until(app, 'active')
    await expect
      .poll(() => stored(service(), app), patience)
      .toEqual([{ name: index?.name, valid: true }])
  })

  test.each([
    ['the index', '/indexes/c_n_index'],
    ['the collection', '/collections/c'],
  ])('%s is deleted at once while it is being built', async (_what, path) => {
    const app = await filled(service())
    const read = async (tx: Queryable) => {
      // A reader that began before, which the build waits for at its end.
      await tx.query(sql`SELECT count(*) FROM pg_catalog.pg_class`)
      await app.call('POST', '/indexes', indexRequest)
      await expect.poll(() => stored(service(), app), patience).toMatchObject([{ valid: false }])
      expect(await status(app)).toMatchObject({ building: true })
      const deleted = await app.call('DELETE', path)
      expect(deleted.status, deleted.text).toBe(200)
      expect((await app.store('c', [{ id: 'after' }])).status).toBe(200)
      await expect.poll(() => stored(service(), app), patience).toEqual([])
    }
    await service().database.transaction(read, { isolation: 'repeatable read' })
    await expect.poll(() => stored(service(), app), patience).toEqual([])
  })

  test('an index that is replaced is built anew, and the old one goes', async () => {
    const app = await filled(service())
    await app.call('POST', '/indexes', indexRequest)
    await until(app, 'active')
    const [before] = await stored(service(), app)
    const changed = await app.call('POST', '/indexes', { ...indexRequest, index_type: 'hash' })
    expect(changed.body).toMatchObject({ updated: true, index_type: 'hash' })
    await until(app, 'active')
    await expect.poll(() => stored(service(), app), patience).toMatchObject([{ valid: true }])
    expect((await stored(service(), app))[0]?.name).not.toBe(before?.name)
  })

  test('an index is rebuilt beside reads and writes, at once or in the background', async () => {
    const app = await filled(service())
    await app.call('POST', '/indexes', indexRequest)
    await until(app, 'active')
    const at = '/collections/c/indexes/c_n_idx/rebuild'
    expect((await app.call('POST', at)).body).toMatchObject({ success: true, status: 'active' })
    await whileHeld(service(), app, async () => {
      const reply = await app.call('POST', at, { background: true })
      expect(reply.body).toMatchObject({ success: true, status: 'building' })
      expect((await app.store('c', [{ id: 'x', n: 1 }])).status).toBe(200)
      expect(await status(app)).toMatchObject({ building: true })
    })
    await until(app, 'active')
    await expect.poll(() => stored(service(), app), patience).toMatchObject([{ valid: true }])
    expect((await app.call('POST', '/collections/c/indexes/no/rebuild')).status).toBe(404)
  })

  test('an index of few records, and a unique one of many, is active in the reply', async () => {
    const app = await createData(service())
    await app.store('c', records(10))
    expect((await app.call('POST', '/indexes', indexRequest)).body.status).toBe('active')
    const large = await filled(service())
    const unique = { ...indexRequest, field_name: 'id', unique_constraint: true }
    expect((await large.call('POST', '/indexes', unique)).body.status).toBe('active')
  })

  test('an index that cannot be built says so after some attempts, and a rebuild tries again', async () => {
    const app = await filled(service())
    const { database, log, tenants } = service().running.service
    const tenant = await tenants.load(app.appId)
    const table = sql.id(tenant.schema, tenant.data.catalog.byName.get('c')?.table ?? '')
    await database.execute(sql`ALTER TABLE ${table} RENAME COLUMN data TO hidden`)
    await app.call('POST', '/indexes', indexRequest)
    await expect
      .poll(() => status(app), patience)
      .toMatchObject({
        status: 'building',
        error: expect.stringContaining('could not be built'),
      })
    // Another builder, whose pauses are short.
    const world = { ...realWorld, every: (_: number, call: () => void) => realWorld.every(5, call) }
    const hasty = new IndexBuilder({ database, world, log })
    hasty.notice(tenant)
    const [index] = tenant.data.listUnbuilt()
    await expect
      .poll(() => index && hasty.findTrouble(tenant.schema, index)?.isFinal, patience)
      .toBe(true)
    await hasty.close()
    await database.execute(sql`ALTER TABLE ${table} RENAME COLUMN hidden TO data`)
    const rebuilt = await app.call('POST', '/collections/c/indexes/c_n_idx/rebuild')
    expect(rebuilt.body, rebuilt.text).toMatchObject({ success: true, status: 'active' })
    expect(await status(app)).not.toHaveProperty('error')
  })
})
