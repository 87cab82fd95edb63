import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData, makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { createSeller, createView, listRows, perMarket } from '../support/views.ts'

const quiet = () => undefined

withService((service) => {
  test('a rebuild fills every view as of its own position, and the audit finds each as its definition says', async () => {
    const app = await createSeller(service())
    const guest = await createData(service())
    await app.call('POST', '/grants', { grantee: guest.appId, collection: 'sales' })
    await createView(app, { name: 'live', query: perMarket, refresh_mode: 'live' })
    await createView(app, { name: 'lazy', query: perMarket })
    await createView(app, { name: 'dropped', query: perMarket })
    await app.call('POST', '/indexes', { collection: 'live', field: 'total' })
    await createView(guest, {
      name: 'foreign',
      source_collections: [`${app.appId}::sales`],
      query: perMarket,
    })
    await app.store('sales', [{ id: 's9', market: 'BTC', amount: 9 }])
    await app.call('DELETE', '/views/dropped')
    const told = async () => {
      const [one, two] = [makeData(service(), app), makeData(service(), guest)]
      const rows = [await one.list('live'), await one.list('lazy'), await two.list('foreign')]
      return rows.map((reply) => ({ rows: listRows(reply), as_of: reply.body.as_of }))
    }
    const before = await told()
    expect(before[0]?.rows).not.toEqual(before[1]?.rows)
    await service().whileStopped(async (config) => {
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
      expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
    expect(await told()).toEqual(before)
    expect(await readRevisions(service(), app.appId)).toEqual([0n, 0n])
    await makeData(service(), app).store('sales', [{ id: 's10', market: 'BTC', amount: 1 }])
    expect(listRows(await makeData(service(), app).list('live'))[0]).toMatchObject({ total: 13 })
  })

  test('the audit finds one changed row of a view, and names the view', async () => {
    const app = await createSeller(service())
    await createView(app, { name: 'totals', query: perMarket })
    await service().whileStopped(async (config) => {
      const { number } = service().running.service.tenants.system.applications.get(app.appId) ?? {}
      const [{ id } = { id: 0n }] = await service().database.query<{ id: bigint }>(
        sql`SELECT id FROM ${sql.id(`app_${number}`, 'view_state')}`,
      )
      const table = sql.id(`app_${number}`, `v_${id}`)
      const change = (from: string, to: string) =>
        service().database.execute(sql`
          UPDATE ${table} SET body = replace(body, ${from}::text, ${to}::text),
            data = replace(data::text, ${from}::text, ${to}::text)::jsonb`)
      await change('BTC', 'BTX')
      expect(await audit(config, quiet)).toMatchObject({
        equal: false,
        difference: {
          chain: app.appId,
          what: 'view totals',
          expected: expect.stringContaining('BTC'),
          found: expect.stringContaining('BTX'),
        },
      })
      await change('BTX', 'BTC')
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
  })
})

/** Reads how often each view of an application was to be made anew since its tables were made. */
async function readRevisions({ running, database }: TestService, app: string): Promise<bigint[]> {
  const { number } = running.service.tenants.system.applications.get(app) ?? {}
  const rows = await database.query<{ revision: bigint }>(
    sql`SELECT revision FROM ${sql.id(`app_${number}`, 'view_state')} ORDER BY id`,
  )
  return rows.map(({ revision }) => revision)
}
