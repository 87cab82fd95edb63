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

    test('a statement without a collection is free for keys that read, as of their own chain, and for nobody else', async () => {
      const app = await createData(service())
      await app.store('orders', [{ id: 'a' }])
      const sql = 'SELECT n, n * 2 AS twice FROM generate_series(1, 2) n ORDER BY n'
      expect(await ask({ sql }, app.headers)).toMatchObject({
        status: 200,
        body: {
          data: [
            { n: 1, twice: 2 },
            { n: 2, twice: 4 },
          ],
          count: 2,
          app_id: app.appId,
          collection: '',
          as_of: { block_height: (await app.list('orders')).body.as_of.block_height },
        },
      })
      const long = `SELECT 1 AS n ${' '.repeat(2_000)}`
      expect((await ask({ sql: long }, app.headers)).body.data).toEqual([{ n: 1 }])
      for (const text of [sql, long])
        expect(await ask({ sql: text }, {})).toMatchObject({
          status: 400,
          body: { error: expect.stringContaining('names no collection') },
        })
      const made = await app.call('POST', '/keys', { permissions: ['Write'] })
      expect((await ask({ sql }, { 'x-app-key': made.body.key })).status).toBe(403)
    })

    test('series that are too long for one answer are 413 and say what to do', async () => {
      const app = await createData(service())
      await app.store('orders', [{ id: 'a', n: 200_000 }])
      const sql = `SELECT count(*) AS n FROM "${app.appId}"::orders o, generate_series(1, o.n) x`
      expect(await ask({ sql }, app.headers)).toMatchObject({
        status: 413,
        body: { code: 'QUERY_TOO_EXPENSIVE', error: expect.stringContaining('narrow its bounds') },
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
