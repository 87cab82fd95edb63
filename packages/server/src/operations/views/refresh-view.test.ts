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

    test('a key that may only write is not told which source is granted no more', async () => {
      const [app, owner] = [await createSeller(service()), await createSeller(service())]
      const grant = { grantee: app.appId, collection: 'sales', per_access: '5' }
      const { body: given } = await owner.call('POST', '/grants', grant)
      await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW "${app.appId}"::theirs AS SELECT id, amount FROM "${owner.appId}"::sales`,
      )
      await owner.call('DELETE', `/grants/${given.id}`)
      const { body: writer } = await app.call('POST', '/keys', { permissions: ['Write'] })
      const refresh = (headers: Readonly<Record<string, string>>) =>
        service().request('POST', `/api/apps/${app.appId}/views/theirs/refresh`, { headers })
      const [told, untold] = [
        await refresh(app.headers),
        await refresh({ 'x-app-key': String(writer.key) }),
      ]
      expect(told.body).toMatchObject({ code: 'GRANT_NEEDED' })
      expect(told.text).toContain(`${owner.appId}::sales`)
      expect(untold).toMatchObject({ status: told.status, body: { code: 'GRANT_NEEDED' } })
      expect(untold.text).not.toContain(owner.appId)
    })
  }))
