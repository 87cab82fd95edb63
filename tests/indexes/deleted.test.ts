import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { createSeller, createView, perMarket } from '../support/views.ts'

/** Stored as it is sent: a short text that takes much more memory once it is parsed. */
const wide = { a: { exists: true }, and: Array.from({ length: 1_000 }, () => ({})) }

async function readIndexRows(service: TestService, app: Data) {
  const { schema } = await service.running.service.tenants.load(app.appId)
  return service.database.query<{ id: string; body: string; leaf: bigint }>(
    sql`SELECT id, body, leaf FROM ${sql.id(schema, 'definition')} WHERE kind = 'index' ORDER BY id`,
  )
}

async function makeIndex(app: Data, body: object) {
  const reply = await app.call('POST', '/indexes', body)
  expect(reply.status, reply.text).toBe(200)
  return reply.body
}

const agree = (service: TestService) =>
  service.whileStopped(async (config) => {
    expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
    expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
    expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
  })

describe('the indexes of what was deleted', () =>
  withService((service) => {
    test('leave the tables together with their collection, and no others do', async () => {
      const app = await createData(service())
      const kept = await makeIndex(app, { collection: 'kept', field: 'a', where: wide })
      for (const round of [1, 2]) {
        await makeIndex(app, { collection: 'gone', field: 'a', where: wide })
        await makeIndex(app, { collection: 'gone', field: 'b' })
        expect(await readIndexRows(service(), app), `round ${round}`).toHaveLength(3)
        expect((await app.call('DELETE', '/collections/gone')).status).toBe(200)
      }
      expect(await readIndexRows(service(), app)).toMatchObject([{ id: kept.id }])
      await agree(service())
      expect(await readIndexRows(service(), app)).toMatchObject([{ id: kept.id }])
      await makeIndex(app, { collection: 'gone', field: 'a', where: wide })
      await agree(service())
      expect(await readIndexRows(service(), app)).toHaveLength(2)
    })

    test('leave the tables together with a view that is replaced or deleted', async () => {
      const app = await createSeller(service())
      const view = { name: 'v', source_collections: ['sales'], query: perMarket }
      await createView(app, view)
      await makeIndex(app, { collection: 'v', field: 'total', where: { total: { gt: 1 } } })
      const [first] = await readIndexRows(service(), app)
      await createView(app, { ...view, or_replace: true })
      await expect
        .poll(() => readIndexRows(service(), app))
        .toMatchObject([{ id: expect.not.stringMatching(first?.id ?? '') }])
      await agree(service())
      expect((await app.call('DELETE', '/views/v')).status).toBe(200)
      expect(await readIndexRows(service(), app)).toEqual([])
    })

    test('that an earlier version of the service has left are deleted when this one comes', async () => {
      const app = await createSeller(service())
      await createView(app, { name: 'v', source_collections: ['sales'], query: perMarket })
      const named = { name: 'a "quoted", {"collection":"x"} \\ name', where: { collection: 'x' } }
      await makeIndex(app, { collection: 'v', field: 'total', ...named })
      await makeIndex(app, { collection: 'sales', field: 'market', ...named })
      const before = await readIndexRows(service(), app)
      expect(before).toHaveLength(2)
      await makeIndex(app, { collection: 'gone', field: 'a', ...named })
      const left = (await readIndexRows(service(), app)).filter(
        ({ id }) => !before.some((one) => one.id === id),
      )
      expect(left).toHaveLength(1)
      expect((await app.call('DELETE', '/collections/gone')).status).toBe(200)
      const { schema } = await service().running.service.tenants.load(app.appId)
      await service().whileStopped(async () => {
        for (const { id, body, leaf } of left)
          await service().database.execute(sql`
            INSERT INTO ${sql.id(schema, 'definition')} (kind, id, body, leaf) VALUES ('index', ${id}, ${body}, ${leaf})
            ON CONFLICT DO NOTHING`)
        await service().database.execute(sql`DELETE FROM operations.migration WHERE id = 46`)
      })
      expect(await readIndexRows(service(), app)).toEqual(before)
      await agree(service())
    })
  }))
