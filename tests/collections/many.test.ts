import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { Definition } from '../../packages/server/src/model/definition-entry.ts'
import type {
  CollectionDefinition,
  IndexDefinition,
} from '../../packages/server/src/model/definitions.ts'
import { define as defineAll } from '../../packages/server/src/services/applications/define.ts'
import { createData, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestApp, TestService } from '../support/service.ts'

const most = limits.collectionsPerApplicationMax
/** Each with an index of its own, as most collections have. */
const schema_definition = { fields: { n: { type: 'number', index: true } } }
const patienceMs = 240_000
/**
 * The number of collections that are created by calls of their own, at the end; the others are defined as such
 * calls define them, but in groups.
 */
const single = 20
const groupSize = 100

/** Makes the definitions of a collection and its index, as a call would. */
function makeDefinitions(name: string, number: number): Definition[] {
  const created_at = new Date(0).toISOString()
  const collection: CollectionDefinition = {
    id: `col_${name}`,
    number,
    name,
    namespace: name,
    primary_column: 'id',
    sort_column: null,
    collection_type: 'document',
    access_policy: null,
    schema_definition,
    created_at,
    updated_at: created_at,
  }
  const index: IndexDefinition = {
    id: `idx_${name}`,
    number: number + 1,
    name: `${name}_n_idx`,
    collection: collection.id,
    fields: ['n'],
    index_type: 'number',
    unique: false,
    created_at,
  }
  return [
    { kind: 'collection', id: collection.id, body: collection },
    { kind: 'index', id: index.id, body: index },
  ]
}

/** Objects in the database's catalogue, and the size of its tables. */
async function catalogue({ database }: TestService): Promise<{ objects: number; mb: number }> {
  const [row] = await database.query<{ objects: bigint; bytes: bigint }>(sql`
    SELECT count(*) AS objects, sum(pg_catalog.pg_total_relation_size('pg_catalog.' || relation))::int8 AS bytes FROM (
      SELECT catalogue.relname AS relation FROM pg_catalog.pg_class AS catalogue
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = catalogue.relnamespace
      WHERE namespace.nspname = 'pg_catalog' AND catalogue.relkind = 'r') AS tables`)
  const [all] = await database.query<{ objects: bigint }>(
    sql`SELECT count(*) AS objects FROM pg_catalog.pg_class`,
  )
  return { objects: Number(all?.objects ?? 0), mb: Number(row?.bytes ?? 0) / 2 ** 20 }
}

withService((service) => {
  async function define(app: TestApp, { from, to }: { from: number; to: number }): Promise<void> {
    const { tenants } = service().running.service
    const tenant = await tenants.load(app.appId)
    for (let at = from; at < to; at += groupSize) {
      const names = Array.from({ length: Math.min(groupSize, to - at) }, (_, n) => `c${at + n}`)
      await defineAll(
        tenant,
        names.flatMap((name, n) => makeDefinitions(name, tenant.data.catalog.nextNumber + 2 * n)),
      )
    }
  }

  test(`${most} collections fit into one application, one more does not, and a definition touches its own collection alone`, {
    timeout: patienceMs,
  }, async () => {
    const app = await createData(service())
    const before = await catalogue(service())
    const heap = process.memoryUsage().heapUsed
    const from = performance.now()
    await define(app, { from: 0, to: most - single })
    const grouped = performance.now()
    for (let at = most - single; at < most; at++)
      expect((await app.create({ name: `c${at}`, schema_definition })).status).toBe(201)
    const ended = performance.now()
    const after = await catalogue(service())
    console.log(
      `${most} collections with an index each: ${((grouped - from) / (most - single)).toFixed(1)} ms for each in groups, ` +
        `${((ended - grouped) / single).toFixed(1)} ms for each of the last by a call of its own; ` +
        `${((process.memoryUsage().heapUsed - heap) / 2 ** 20).toFixed(0)} MB of heap; ` +
        `${after.objects - before.objects} objects and ${(after.mb - before.mb).toFixed(0)} MB more in the database's catalogue`,
    )

    const { status, body } = await app.create({ name: 'one_more' })
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'CONFLICT' })
    expect((await app.store('one_more', [{ id: 'a' }])).status).toBe(409)

    const tenant = await service().running.service.tenants.load(app.appId)
    const states = new Map(tenant.data.catalog.byId)
    await app.call('PUT', '/collections/c7', { sort_column: 'n' })
    const changed = [...tenant.data.catalog.byId.values()].filter(
      (state) => states.get(state.id) !== state,
    )
    expect(
      changed.map(({ name }) => name),
      'a definition costs its own collection',
    ).toEqual(['c7'])

    await app.store('c0', [{ id: 'a', n: 1 }])
    await app.store(`c${most - 1}`, [{ id: 'z', n: 1 }])
    expect(listIds(await app.list('c0', { find: { n: 1 } }))).toEqual(['a'])
    expect((await app.call('GET', '/collections')).body).toHaveLength(most)
    expect((await app.call('GET', '/indexes')).body).toHaveLength(most)

    const restarted = performance.now()
    await service().restart()
    const found = await service().request('POST', '/list', {
      body: { root: `${app.appId}::c${most - 1}` },
      headers: app.headers,
    })
    expect(listIds(found)).toEqual(['z'])
    console.log(`restarted in ${Math.round(performance.now() - restarted)} ms`)
  })
})
