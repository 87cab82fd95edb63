import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('querySql', () =>
  withService((service) => {
    const ask = (body: object, headers: Readonly<Record<string, string>>) =>
      service().request('POST', '/query/sql', { body, headers })

    test('a statement reads what its key may read, and answers rows, their number and the height that they were read at', async () => {
      const app = await createData(service())
      const stored = await app.store('orders', [
        { id: 'a', n: 1 },
        { id: 'b', n: 2 },
        { id: 'c', n: 3 },
      ])
      const sql = `SELECT id, n FROM "${app.appId}"::orders WHERE n > $1 ORDER BY n DESC`
      const { status, body } = await ask({ sql, params: [1] }, app.headers)
      expect(status).toBe(200)
      expect(body).toMatchObject({
        data: [
          { id: 'c', n: 3 },
          { id: 'b', n: 2 },
        ],
        count: 2,
        query: sql,
        app_id: app.appId,
        collection: 'orders',
        as_of: { block_height: stored.body.results[2].block_height },
      })
    })

    test('a statement that names a private collection of another application finds nothing, in a sub-query too', async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      await app.store('mine', [{ id: 'a' }])
      await other.create({ name: 'theirs', access_policy: 'private' })
      await other.store('theirs', [{ id: 'a' }])
      const theirs = `"${other.appId}"::theirs`
      for (const sql of [
        `SELECT id FROM ${theirs}`,
        `SELECT id FROM "${app.appId}"::mine WHERE id IN (SELECT id FROM ${theirs})`,
      ])
        expect(await ask({ sql }, app.headers), sql).toMatchObject({
          status: 404,
          body: { code: 'COLLECTION_NOT_FOUND' },
        })
    })

    test('a statement that is not one SELECT is refused, and changes nothing', async () => {
      const app = await createData(service())
      await app.store('mine', [{ id: 'a' }])
      const from = `"${app.appId}"::mine`
      for (const sql of [
        `DELETE FROM ${from}`,
        `SELECT id FROM ${from}; DELETE FROM ${from}`,
        `WITH gone AS (DELETE FROM ${from} RETURNING id) SELECT id FROM gone`,
      ])
        expect((await ask({ sql }, app.headers)).status, sql).toBe(400)
      expect((await app.list('mine')).body.total).toBe(1)
    })
  }))
