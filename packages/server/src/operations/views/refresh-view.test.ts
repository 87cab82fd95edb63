import { withService } from '@tollbase/testing/per-engine'
import { createFromSql, createSeller, listRows } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('refreshView', () =>
  withService((service) => {
    test('a refresh computes a view anew where changes cannot keep it up to date', async () => {
      const app = await createSeller(service())
      const sql = `CREATE MATERIALIZED VIEW "${app.appId}"::ranks AS
        SELECT id, rank() OVER (ORDER BY amount DESC) AS place FROM "${app.appId}"::sales`
      await createFromSql(app, sql)
      const live = await app.call('POST', '/views/sql', {
        sql: sql.replace('::ranks', '::other'),
        refresh_mode: 'live',
      })
      expect(live.status).toBe(400)
      expect(live.body.error).toContain('window function')
      await app.store('sales', [{ id: 's4', market: 'SOL', amount: 4 }])
      expect((await app.call('POST', '/views/ranks/refresh')).status).toBe(200)
      expect(listRows(await app.list('ranks'), 'id')).toEqual([
        { id: 's1', place: 3 },
        { id: 's2', place: 4 },
        { id: 's3', place: 1 },
        { id: 's4', place: 2 },
      ])
    })
  }))
