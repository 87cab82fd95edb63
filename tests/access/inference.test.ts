import { describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'
import { createView } from '../support/views.ts'

const people = Array.from({ length: 40 }, (_, n) => ({
  id: `p${n}`,
  n,
  city: n < 3 ? 'Bern' : '-',
}))
const sold = { read: 'public', price: { per_row: '1000' } }

/** Ways to learn something of sold or hidden data without paying and without a right; each was open once. */
describe('facts that no answer tells in passing', () =>
  withService((service) => {
    /** A seller, and another application that may build views for a price. */
    async function granted(per_access: string): Promise<{ owner: Data; app: Data; model: string }> {
      const [owner, app] = [await createData(service()), await createData(service())]
      await owner.create({ name: 'people', access_policy: sold })
      await owner.store('people', people)
      const grant = { grantee: app.appId, collection: 'people', per_access }
      expect((await owner.call('POST', '/grants', grant)).status).toBe(201)
      return { owner, app, model: `${owner.appId}::people` }
    }

    test('a view over what another application sells does not count it, whatever its conditions', async () => {
      const { app, model } = await granted('500')
      const told: Json[] = []
      for (const city of ['Bern', 'Genf']) {
        const name = `in_${city}`
        const body = { name, source_collections: [model], query: { find: { city } } }
        const made = await createView(app, body)
        await app.call('POST', `/collections/${name}/indexes`, { field: 'n', name: 'by_n' })
        const task = await service().request('GET', `/task/${made.ticket_id}`)
        // Its times and its id may hold any number.
        const { created_at, updated_at, ticket_id, ...told_by_task } = task.body
        expect(JSON.stringify(told_by_task)).not.toMatch(/\b40\b/)
        const outer = { name: `over_${name}`, source_collections: [name], query: {} }
        told.push([
          made.view.refresh_metadata,
          (await createView(app, outer)).view.refresh_metadata,
          (await app.call('GET', `/views/${name}`)).body.refresh_metadata,
          ...(await app.call('GET', '/views')).body.views.map((one: Json) => one.refresh_metadata),
          (await app.call('POST', `/views/${name}/refresh`, {})).body.refresh_metadata,
        ])
        const statistics = [
          await app.call('GET', '/indexes?include_stats=true'),
          await app.call('GET', `/collections/${name}/indexes?include_stats=true`),
        ]
        for (const reply of statistics) expect(reply.text).toContain('"size":0')
        const use = await app.call('GET', `/collections/${name}/indexes/by_n/statistics`)
        expect(use.body).toEqual({ size: 0, usage_count: 0, tuples_read: 0 })
      }
      for (const metadata of told.flat())
        expect(metadata).toMatchObject({
          total_source_records: 0,
          total_view_records: 0,
          counts_hidden: true,
        })
    })

    test('counts are told where the source asks for nothing, and to an owner', async () => {
      const { app, model } = await granted('0')
      const query = { find: { city: 'Bern' } }
      const free = await createView(app, { name: 'free', source_collections: [model], query })
      expect(free.view.refresh_metadata).toMatchObject({
        total_source_records: 40,
        total_view_records: 3,
      })
      await app.create({ name: 'own', access_policy: sold })
      await app.store('own', people)
      const own = await createView(app, { name: 'mine', source_collections: ['own'], query })
      expect(own.view.refresh_metadata).toMatchObject({ total_view_records: 3 })
      expect(own.view.refresh_metadata).not.toHaveProperty('counts_hidden')
    })

    test('no explain and no dry run tells the plan of what another application sells', async () => {
      const { owner, app, model } = await granted('500')
      await owner.call('PUT', '/collections/people', {
        access_policy: { ...sold, derive: { per_access: '5' } },
      })
      await app.create({ name: 'own', access_policy: 'public' })
      await createView(app, { name: 'asked', source_collections: [model], query: {} })
      const sqls = {
        direct: `SELECT id FROM "${owner.appId}"::people WHERE n < 3`,
        joined: `SELECT o.id FROM "${app.appId}"::own o JOIN "${owner.appId}"::people p ON p.id = o.id`,
        viewed: `SELECT id FROM "${app.appId}"::asked WHERE n < 3`,
      }
      for (const [name, sql] of Object.entries(sqls)) {
        expect((await app.call('POST', '/queries', { name, sql })).status, name).toBe(201)
        const replies = [
          await app.call('POST', `/queries/${name}/dry-run`, {}),
          await app.call('POST', '/collections/own/explain', { query: { sql } }),
        ]
        for (const reply of replies) {
          expect(reply, name).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
          expect(reply.text).not.toContain('cost')
        }
      }
      const sql = `SELECT id FROM "${app.appId}"::own`
      await app.call('POST', '/queries', { name: 'fine', sql })
      expect((await app.call('POST', '/queries/fine/dry-run', {})).status).toBe(200)
      expect((await app.call('POST', '/collections/own/explain', { query: { sql } })).status).toBe(
        200,
      )
    })

    test('the operator is told no plan of a source that he may not read', async () => {
      const app = await createData(service())
      await app.create({ name: 'closed', access_policy: 'private' })
      const sql = `SELECT id FROM "${app.appId}"::closed`
      await app.call('POST', '/queries', { name: 'q', sql })
      const path = `/api/apps/${app.appId}/queries/q/dry-run`
      const reply = await service().request('POST', path, { body: {}, headers: service().operator })
      expect(reply.status).toBe(403)
    })

    test('strangers learn how a chain grows only where something is open to them', async () => {
      const app = await createData(service())
      await app.create({ name: 'closed', access_policy: 'private' })
      const { body: stored } = await app.store('closed', people)
      const { block_height: height, sequence } = stored.results[0]
      const places = [
        'checkpoint',
        `blocks/${height}`,
        `proof?height=${height}&sequence=${sequence}`,
        'consistency?from=1&to=2',
      ]
      const createKey = async (permission: string) => {
        const { body } = await app.call('POST', '/keys', {
          name: permission,
          permissions: [permission],
        })
        return { 'x-app-key': String(body.key) }
      }
      const other = await createData(service())
      const callers: [string, Readonly<Record<string, string>>, number][] = [
        ['nobody', {}, 401],
        ['a stranger', other.headers, 401],
        ['Write', await createKey('Write'), 403],
        ['Pay', await createKey('Pay'), 403],
        ['Read', await createKey('Read'), 200],
        ['the operator', service().operator, 200],
      ]
      const ask = (place: string, headers: Readonly<Record<string, string>>): Promise<TestReply> =>
        service().request('GET', `/api/apps/${app.appId}/chain/${place}`, { headers })
      for (const place of places)
        for (const [name, headers, status] of callers) {
          const reply = await ask(place, headers)
          expect(reply.status, `${place} by ${name}: ${reply.text}`).toBe(status)
          if (status !== 200) expect(reply.text).not.toMatch(/\d{2,}"?[,}].*request_id/)
        }
      // A closed query opens nothing; a query that its owner publishes opens its source, and so does a sold
      // collection.
      const sql = `SELECT n FROM "${app.appId}"::closed`
      await app.call('POST', '/queries', { name: 'q', sql, public: false })
      expect((await ask('checkpoint', {})).status).toBe(401)
      await app.create({ name: 'sold', access_policy: sold })
      expect((await ask('checkpoint', {})).status).toBe(200)
      await app.call('DELETE', '/collections/sold')
      expect((await ask('checkpoint', {})).status).toBe(401)
      const system = await service().request('GET', '/api/apps/system/chain/checkpoint')
      expect(system.status).toBe(200)
    })
  }))
