import { limits } from '@tollbase/contract/limits'
import { beforeAll, describe, expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { sumDefinitionBytes } from '../../packages/server/src/model/definition-bytes.ts'
import type { Definition } from '../../packages/server/src/model/definition-entry.ts'
import type { StoredQuery } from '../../packages/server/src/model/stored-query.ts'
import { define } from '../../packages/server/src/services/applications/define.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

const most = limits.definitionsBytesMax
const chunk = 1024 * 1024
const patienceMs = 120_000

const relation = {
  parent_collection: 'other',
  parent_field: 'id',
  child_collection: 'c',
  child_field: 'a',
}

/** A version of a query whose description has so many characters. */
function makeQuery(version: number, chars: number): Definition {
  const body: StoredQuery = {
    name: 'filler',
    version,
    parameters: [],
    source_collection: 'c',
    description: 'x'.repeat(chars),
    sources: ['c'],
    created_at: new Date(0).toISOString(),
  }
  return { kind: 'query', id: `filler@${version}`, body }
}

describe('definitionsBytesMax: all definitions of an application together have a bound', () =>
  withService((service) => {
    let data: Data
    const load = () => service().running.service.tenants.load(data.appId)
    const countUsed = async () => sumDefinitionBytes((await load()).data.catalog)

    beforeAll(async () => {
      data = await createData(service())
      await data.create({ name: 'c', schema_definition: { properties: { a: {} } } })
      await data.create({ name: 'other' })
      await data.store('c', [{ id: 'a', a: 1 }])
      const tenant = await load()
      let version = 1
      const left = async () => most - (await countUsed())
      while ((await left()) > 2 * chunk) await define(tenant, [makeQuery(version++, chunk)])
      // A version has more than its description.
      const before = await countUsed()
      await define(tenant, [makeQuery(version++, 0)])
      const bare = (await countUsed()) - before
      await define(tenant, [makeQuery(version++, (await left()) - bare)])
    }, patienceMs)

    test('they may fill it to the last byte', async () => {
      expect(await countUsed()).toBe(most)
    })

    test.each<[string, () => readonly [method: string, path: string, body: object]]>([
      ['a query', () => ['POST', '/queries', { name: 'q', source_collection: 'c' }]],
      [
        'a version with examples',
        () => [
          'POST',
          '/queries',
          { name: 'filler', source_collection: 'c', example_response: [{}] },
        ],
      ],
      ['a collection', () => ['POST', '/collections', { name: 'more' }]],
      ['a longer policy', () => ['PUT', '/collections/c', { access_policy: 'public' }]],
      ['an index', () => ['POST', '/collections/c/indexes', { field: 'a' }]],
      [
        'a view',
        () => [
          'POST',
          '/views',
          { name: 'v', source_collections: ['c'], query: { select: ['a'] } },
        ],
      ],
      ['a relation', () => ['POST', '/relations', relation]],
      [
        'a migration',
        () => ['POST', '/collections/c/migrate', { schema: { properties: { a: {}, b: {} } } }],
      ],
    ])('%s more is refused, and says what to do', async (_, make) => {
      const reply = await data.call(...make())
      expect(reply.status, reply.text).toBe(409)
      expect(reply.body).toMatchObject({ code: 'CONFLICT', details: { limit: most } })
      expect(reply.text).toContain('Delete queries')
    })

    test('what is there goes on, also after it was opened anew, and smaller definitions are taken', async () => {
      await define(await load(), [makeQuery(99, chunk)], { isOwed: true })
      service().running.service.tenants.reopenAll()
      expect(await countUsed()).toBeGreaterThan(most)
      expect((await data.list('c')).body.records).toHaveLength(1)
      const smaller = await data.call('PUT', '/collections/c', { schema_definition: null })
      expect(smaller.status, smaller.text).toBe(200)
      expect((await data.call('GET', '/queries')).body.queries).toHaveLength(1)
    })

    test('room that is freed is there for others', async () => {
      for (const version of [1, 99])
        expect((await data.call('DELETE', `/queries/filler?version=${version}`)).status).toBe(200)
      const reply = await data.call('POST', '/queries', { name: 'q', source_collection: 'c' })
      expect(reply.status, reply.text).toBe(201)
    })

    test('what a migration ends with is kept free for it while it runs', async () => {
      const description = 'x'.repeat(100_000)
      const schema = { properties: { a: { description } } }
      const tenant = await load()
      const left = most - (await countUsed())
      // Each has room alone: once for its own note, and once for the schema of the collection.
      await define(tenant, [makeQuery(100, left - 3.5 * description.length)])
      const migrate = (name: string) =>
        data.call('POST', `/collections/${name}/migrate`, { schema })
      const { table } = requirePresent(tenant.data.catalog.byName.get('c'), 'the collection')
      const { running } = await service().database.transaction(async (tx) => {
        await tx.execute(sql`LOCK TABLE ${sql.id(tenant.schema, table)} IN ACCESS EXCLUSIVE MODE`)
        const running = migrate('c')
        await expect.poll(() => tenant.migrating.size).toBe(1)
        await expect.poll(() => tenant.data.catalog.migrations.size).toBe(1)
        const second = await migrate('other')
        expect(second.status, second.text).toBe(409)
        expect(second.body).toMatchObject({ code: 'CONFLICT', details: { limit: most } })
        return { running }
      })
      expect((await running).body).toMatchObject({ success: true, status: 'completed' })
      expect(await countUsed()).toBeLessThanOrEqual(most)
      expect((await migrate('other')).status).toBe(409)
      const freed = await data.call('DELETE', '/queries/filler?version=100')
      expect(freed.status, freed.text).toBe(200)
      expect((await migrate('other')).body).toMatchObject({ status: 'completed' })
    })

    test('an encrypted collection that is refused leaves no keys', async () => {
      const tenant = await load()
      const body = { private_app: true, updated_at: new Date(0).toISOString() }
      await define(tenant, [{ kind: 'encryption', id: 'encryption', body }])
      const left = most - (await countUsed())
      await define(tenant, [makeQuery(101, left - 400)], { isOwed: true })
      const countKeys = async () =>
        service().database.query(
          sql`SELECT DISTINCT collection FROM operations.data_key WHERE app = ${data.appId}`,
        )
      const before = await countKeys()
      const refused = await data.create({ name: 'more' })
      expect(refused.status, refused.text).toBe(409)
      expect(refused.body).toMatchObject({ details: { limit: most } })
      expect(await countKeys()).toEqual(before)
    })
  }))
