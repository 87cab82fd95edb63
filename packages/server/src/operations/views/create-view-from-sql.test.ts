import { withService } from '@tollbase/testing/per-engine'
import {
  createFromSql,
  createSeller,
  createView,
  grouped,
  listRows,
  perMarket,
} from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('createViewFromSql', () =>
  withService((service) => {
    test('IF NOT EXISTS keeps the view that is there, OR REPLACE puts a new definition in its place', async () => {
      const app = await createSeller(service())
      const at = `"${app.appId}"::`
      const totals = `SELECT market, sum(amount) AS total, count(*) AS trades FROM ${at}sales GROUP BY market`
      const first = await createFromSql(app, `CREATE MATERIALIZED VIEW ${at}totals AS ${totals}`)
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      await app.call('POST', '/indexes', {
        collection: 'totals',
        field: 'market',
        name: 'by_market',
      })
      const kept = await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW IF NOT EXISTS ${at}totals AS SELECT id FROM ${at}sales`,
      )
      expect(kept.ticket_id).toBe(first.ticket_id)
      expect(kept.message).toContain('already exists')
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      const { view } = await createFromSql(
        app,
        `CREATE OR REPLACE MATERIALIZED VIEW ${at}totals AS SELECT market, max(amount) AS most FROM ${at}sales GROUP BY market`,
        { refresh_mode: 'live' },
      )
      expect(view.status).toBe('live')
      expect(listRows(await app.list('totals'))).toEqual([
        { market: 'BTC', most: 2 },
        { market: 'ETH', most: 7 },
      ])
      // The new table gets the index again, which takes a while.
      await expect
        .poll(async () => (await app.call('GET', '/collections/totals/indexes')).body.indexes)
        .toMatchObject([{ name: 'by_market', status: 'active' }])
      const again = { name: 'totals', query: perMarket, or_replace: true }
      await createView(app, { ...again, source_collections: [`${app.appId}::sales`] })
      expect(listRows(await app.list('totals'))).toEqual(grouped)
      expect((await app.call('GET', '/views')).body.views).toHaveLength(1)
    })

    test('a view with a recursion is refused, and says where else to ask it', async () => {
      const app = await createSeller(service())
      const sql = `CREATE MATERIALIZED VIEW "${app.appId}"::made AS WITH RECURSIVE t AS (SELECT s.id FROM "${app.appId}"::sales s UNION SELECT t.id FROM t) SELECT id FROM t`
      const { status, body } = await app.call('POST', '/views/sql', { sql })
      expect(status).toBe(400)
      expect(body.error).toContain('WITH RECURSIVE in a view')
      expect(body.error).toContain('predefined query')
    })
  }))
