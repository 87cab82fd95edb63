import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { createSeller, createView, grouped, listRows, perMarket } from '../support/views.ts'

withService((service) => {
  test('rows of views that an earlier version made with other meanings are made anew, and never mix with later ones', async () => {
    const app = await createSeller(service())
    const views = ['live', 'lazy', 'kept'] as const
    for (const name of views)
      await createView(app, {
        name,
        query: perMarket,
        refresh_mode: name === 'lazy' ? 'lazy' : 'live',
      })
    const { tenants } = service().running.service
    const { schema, data } = await tenants.load(app.appId)
    const find = (name: string) => {
      const view = data.catalog.viewsByName.get(name)?.view
      if (view === undefined) throw new Error(`no view ${name}`)
      return view
    }
    for (const name of views) {
      const table = sql.id(schema, `v_${find(name).number}`)
      const wrong = sql`UPDATE ${table} SET data = jsonb_set(data, '{total}', '99'), body = replace(body, '"total":3', '"total":99')`
      await service().database.execute(wrong)
      if (name !== 'kept') await service().database.execute(sql`COMMENT ON TABLE ${table} IS NULL`)
    }
    await service().restart()
    const again = makeData(service(), app)
    const { viewBuilder } = service().running.service
    for (const name of views) await viewBuilder.whenDone(app.appId, find(name).id)
    const read = async (name: string) => listRows(await again.list(name))
    expect(await read('live')).toEqual(grouped)
    expect(await read('lazy')).toEqual(grouped)
    // Rows that were made with the meanings of now are not computed again.
    expect((await read('kept'))[0]).toMatchObject({ total: 99 })
    await again.store('sales', [{ id: 's4', market: 'BTC', price: 1, amount: 1 }])
    expect((await read('live'))[0]).toMatchObject({ total: 4 })
  })
})
