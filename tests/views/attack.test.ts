import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData, type Data, makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { createFromSql } from '../support/views.ts'

const quiet = () => undefined

withService((service) => {
  /** An application with the collections a and b. */
  async function newApp(): Promise<Data> {
    const app = await createData(service())
    await app.create({ name: 'a' })
    await app.create({ name: 'b' })
    return app
  }

  /** The select as a live and as a lazy view. */
  async function views(app: Data, name: string, select: string): Promise<void> {
    for (const refresh_mode of ['live', 'lazy'] as const)
      await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW "${app.appId}"::${name}_${refresh_mode} AS ${at(app, select)}`,
        { refresh_mode },
      )
  }

  const at = (app: Data, select: string) => select.replaceAll('app::', `"${app.appId}"::`)

  /** The rows of both, which equal those that the query itself gives now. */
  async function same(app: Data, name: string, select: string): Promise<unknown[]> {
    const ask = async (text: string) => {
      const reply = await service().request('POST', '/query/sql', {
        body: { sql: at(app, text) },
        headers: app.headers,
      })
      expect(reply.status, reply.text).toBe(200)
      return reply
    }
    const refreshed = await app.call('POST', `/views/${name}_lazy/refresh`, {})
    expect(refreshed.status, refreshed.text).toBe(200)
    const wanted = await ask(select)
    for (const mode of ['live', 'lazy']) {
      const have = await ask(`SELECT * FROM app::${name}_${mode}`)
      // PostgreSQL keeps all digits, and knows which values are equal.
      const [found] = await service().database.query<{ missing: string; surplus: string }>(sql`
        WITH have AS (SELECT jsonb_array_elements(${have.text}::jsonb -> 'data') AS row),
          want AS (SELECT jsonb_array_elements(${wanted.text}::jsonb -> 'data') AS row)
        SELECT (SELECT jsonb_agg(row)::text FROM (SELECT row FROM want EXCEPT ALL SELECT row FROM have) AS m) AS missing,
          (SELECT jsonb_agg(row)::text FROM (SELECT row FROM have EXCEPT ALL SELECT row FROM want) AS s) AS surplus`)
      expect(found, `${mode} ${select}`).toEqual({ missing: null, surplus: null })
    }
    return wanted.body.data
  }

  test('the audit and a rebuild agree with views whose HAVING leaves groups out', async () => {
    const app = await newApp()
    await views(app, 'h', 'SELECT n, count(*) AS c FROM app::a GROUP BY n HAVING count(*) > 1')
    await app.storeText('a', '{"id":"1","n":1},{"id":"2","n":1},{"id":"3","n":2}')
    await service().whileStopped(async (config) => {
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
      expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
    const after = makeData(service(), app)
    await after.storeText('a', '{"id":"4","n":2},{"id":"1","deleted":true}')
    expect(
      await same(after, 'h', 'SELECT n, count(*) AS c FROM app::a GROUP BY n HAVING count(*) > 1'),
    ).toEqual([{ n: 2, c: 2 }])
  })

  test('a view whose HAVING makes one group of all rows, and that has no aggregate, has one row', async () => {
    const app = await newApp()
    const select = "SELECT 'x' AS one FROM app::a HAVING 1 = 1"
    await views(app, 'one', select)
    expect(await same(app, 'one', select)).toEqual([{ one: 'x' }])
    await app.storeText('a', '{"id":"1"},{"id":"2"}')
    expect(await same(app, 'one', select)).toEqual([{ one: 'x' }])
  })

  test('groups of lists and objects that are equal but differ in digits are given alike, however they came', async () => {
    const app = await newApp()
    const select = 'SELECT g, count(*) AS c FROM app::a GROUP BY g'
    await views(app, 'g', select)
    await app.storeText('a', '{"id":"1","g":[1.0]},{"id":"2","g":{"p":2.50}}')
    await app.storeText('a', '{"id":"3","g":[1]},{"id":"4","g":{"p":2.5}}')
    await same(app, 'g', select)
    await app.storeText('a', '{"id":"1","deleted":true},{"id":"2","deleted":true}')
    await same(app, 'g', select)
    await service().whileStopped(async (config) => {
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
  })

  test('the audit agrees with lazy views whose order SQL leaves open, over records that were replaced since', async () => {
    const app = await newApp()
    const record = (at: number) =>
      `{"id":"${at}","n":${at % 2},"v":${at},"t":"t${at}","x":[${at % 2 === 0 ? '1.0' : '1'}]}`
    const some = Array.from({ length: 12 }, (_, at) => record(at))
    await app.storeText('a', some.join(','))
    await app.storeText('b', some.toReversed().join(','))
    const selects = [
      'SELECT array_agg(v) AS list FROM app::a',
      'SELECT array_agg(DISTINCT x) AS list FROM app::a',
      "SELECT string_agg(t, ',') AS list FROM app::a GROUP BY n",
      'SELECT id, row_number() OVER (ORDER BY n) AS place FROM app::a',
      'SELECT n, row_number() OVER (ORDER BY count(*)) AS place FROM app::a GROUP BY n',
      'SELECT t.v, row_number() OVER (ORDER BY t.n) AS place FROM (SELECT n, v FROM app::a) t',
      'SELECT id, sum(v) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS so_far FROM app::a',
      'SELECT v, lag(v) OVER (ORDER BY n) AS before FROM app::a',
      'SELECT id, first_value(v) OVER (ORDER BY n) AS one FROM app::a',
      'SELECT id, first_value(v) OVER (PARTITION BY n) AS one FROM app::a',
      'SELECT id, last_value(v) OVER (ORDER BY n RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS one FROM app::a',
      'SELECT id, last_value(v) OVER (PARTITION BY n) AS one FROM app::a',
      'SELECT id, nth_value(v, 2) OVER (ORDER BY n GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS one FROM app::a',
      'SELECT id, array_agg(v) OVER (PARTITION BY n) AS list FROM app::a',
      "SELECT id, string_agg(t, ',') OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS list FROM app::a",
      'SELECT n, first_value(count(*)) OVER (ORDER BY count(*)) AS one FROM app::a GROUP BY n',
      'SELECT x FROM app::a INTERSECT SELECT x FROM app::b',
      'SELECT x FROM app::a EXCEPT SELECT n FROM app::b',
      'SELECT n, (SELECT b.v FROM app::b b WHERE b.n = a.n LIMIT 1) AS other FROM app::a a',
      'SELECT a.id, l.v FROM app::a a JOIN (SELECT n, v FROM app::b ORDER BY n LIMIT 2) l ON l.n = a.n',
    ]
    for (const [number, select] of selects.entries())
      await createFromSql(
        app,
        `CREATE MATERIALIZED VIEW "${app.appId}"::open${number} AS ${at(app, select)}`,
      )
    for (const name of ['a', 'b'])
      await app.storeText(
        name,
        some
          .filter((_, at) => at % 3 === 0)
          .toReversed()
          .join(','),
      )
    const outcome = await service().whileStopped((config) => audit(config, quiet))
    expect(outcome).toMatchObject({ equal: true })
  })

  test('a window whose value nothing decides is refused and named, and ranks are those that SQL gives', async () => {
    const app = await newApp()
    const records = [1, 1, 1, 2].map((n, v) => ({ id: `r${v}`, n, v }))
    await app.store('a', records)
    const create = (select: string) =>
      app.call('POST', '/views/sql', {
        sql: `CREATE OR REPLACE MATERIALIZED VIEW "${app.appId}"::ranks AS ${at(app, select)}`,
      })
    const open = {
      'nth_value(v, 2) OVER (ORDER BY n)': 'nth_value over the usual frame',
      'last_value(v) OVER (ORDER BY n)': 'last_value over the usual frame',
      'array_agg(v) OVER (ORDER BY n)': 'array_agg over the usual frame',
      'first_value(v) OVER (ORDER BY n GROUPS 1 PRECEDING)': 'first_value over GROUPS',
      'sum(v) OVER (ORDER BY n ROWS 1 PRECEDING EXCLUDE TIES)': 'sum over ROWS EXCLUDE TIES',
    }
    for (const [call, words] of Object.entries(open)) {
      const reply = await create(`SELECT id, ${call} AS one FROM app::a`)
      expect(reply, call).toMatchObject({
        status: 400,
        body: { code: 'VALIDATION_FAILED', details: { field: '/sql' } },
      })
      expect(reply.body.error).toContain(words)
    }
    const one = { $array_agg: 'v', over: { order_by: ['n'] } }
    const json = { name: 'ranks', source_collections: ['a'], query: { select: ['id', { one }] } }
    expect(await app.call('POST', '/views', json)).toMatchObject({
      status: 400,
      body: { details: { field: '/query' } },
    })
    const made = await create(
      'SELECT id, rank() OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS place, last_value(v) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS one FROM app::a',
    )
    expect(made.status, made.text).toBe(201)
    expect((await app.list('ranks', { sortBy: 'id' })).body.records).toEqual([
      { id: 'r0', place: 1, one: 0 },
      { id: 'r1', place: 1, one: 1 },
      { id: 'r2', place: 1, one: 2 },
      { id: 'r3', place: 4, one: 3 },
    ])
  })

  test('a store is applied though a live view that is to join the writes cannot take its last step', async () => {
    const app = await newApp()
    const select = 'SELECT n, count(*) AS c FROM app::a GROUP BY n'
    await views(app, 'v', select)
    const { running, database } = service()
    const { schema, data } = await running.service.tenants.load(app.appId)
    const { id = '', table = '' } = data.catalog.viewsByName.get('v_live') ?? {}
    await database.execute(
      sql`UPDATE ${sql.id(schema, 'view_state')} SET status = 'building' WHERE view = ${id}`,
    )
    let isStored = false
    await database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      running.service.viewBuilder.notice(app.appId)
      const waiting = () =>
        database.query(sql`
        SELECT pid FROM pg_catalog.pg_locks
        WHERE NOT granted AND relation = ${`${schema}.${table}`}::regclass`)
      await expect.poll(async () => (await waiting()).length).toBe(1)
      const stored = await app.storeText('a', '{"id":"1","n":1}')
      isStored = stored.status === 200
    })
    expect(isStored).toBe(true)
    await running.service.viewBuilder.whenDone(app.appId, id)
    expect(await same(app, 'v', select)).toEqual([{ n: 1, c: 1 }])
  })

  const long = 'k'.repeat(10_000)
  /** The values that are stored in a and b at the same time, step by step. */
  const edges: readonly (readonly [a: string, b: string])[] = [
    [
      '{"id":"1","n":1e300,"g":"x"},{"id":"2","n":0.1,"g":"x"},{"id":"3","n":0.2,"g":"x"},{"id":"4","n":-0,"g":null},{"id":"5"}',
      '{"id":"1","n":1,"g":1},{"id":"2","n":2.50,"g":1.0},{"id":"3","n":"7","g":"1"},{"id":"4","g":null}',
    ],
    [
      '{"id":"1","n":-1e300,"g":"x"},{"id":"6","n":123456789012345678901234567890,"g":[1,{"p":"a.0\\"1.0"}]},{"id":"7","n":1.000,"g":[1.0,{"p":"a.0\\"1.0"}]}',
      '{"id":"2","deleted":true},{"id":"1","n":"text","g":true},{"id":"5","n":[1.50],"g":{"x":1.0}},{"id":"1","n":0.30,"g":"1"}',
    ],
    [
      `{"id":"8","n":1,"g":"${long}"},{"id":"9","n":1.0,"g":"${long}z"},{"id":"4","n":0,"g":0},{"id":"5","g":1}`,
      `{"id":"6","n":1,"g":"${long}"},{"id":"7","n":2,"g":null},{"id":"8","n":[1.5],"g":{"x":1}},{"id":"2","n":5,"g":1.00}`,
    ],
    [
      '{"id":"1","deleted":true},{"id":"2","deleted":true},{"id":"3","deleted":true},{"id":"8","n":2,"g":"1"},{"id":"8","deleted":true}',
      '{"id":"5","deleted":true},{"id":"6","n":1e-300,"g":"x"},{"id":"3","n":null,"g":1}',
    ],
    [
      '{"id":"4","deleted":true},{"id":"5","deleted":true},{"id":"6","deleted":true},{"id":"7","deleted":true},{"id":"9","deleted":true}',
      '{"id":"1","deleted":true},{"id":"3","deleted":true},{"id":"4","n":3,"g":"y"}',
    ],
    ['{"id":"1","n":3,"g":"y"},{"id":"2","n":3.0,"g":"y"}', '{"id":"4","n":3.00,"g":"y"}'],
  ]

  test('live and lazy views of every kind are what the query itself gives, at the edges of values and joins', async () => {
    const app = await newApp()
    const selects = [
      'SELECT g, count(*) AS c, sum(n) AS s, avg(n) AS a, min(n) AS l, max(n) AS h, count(DISTINCT n) AS d FROM app::a GROUP BY g',
      'SELECT count(*) AS c, sum(n) AS s, min(g) AS l, max(g) AS h, count(DISTINCT g) AS d, bool_or(n > 1) AS o FROM app::b',
      'SELECT g, sum(n) AS s FROM app::b GROUP BY g HAVING sum(n) > 1 AND count(*) < 3',
      'SELECT a.id AS a, b.id AS b FROM app::a a JOIN app::b b ON a.g = b.g',
      'SELECT a.id AS a, b.id AS b, a.n AS n FROM app::a a FULL JOIN app::b b ON a.g = b.g',
      'SELECT a.id AS a, b.id AS b FROM app::a a FULL JOIN app::b b ON a.n = b.n AND a.g = b.g',
      'SELECT x.id AS x, y.id AS y FROM app::b x LEFT JOIN app::b y ON x.g = y.g AND x.id <> y.id',
      'SELECT x.id AS x, y.id AS y FROM app::b x, app::a y',
      'SELECT g, n FROM app::b UNION ALL SELECT g, n FROM app::b UNION ALL SELECT g, n FROM app::a',
      'SELECT g FROM app::b UNION SELECT g FROM app::a',
      'SELECT DISTINCT n FROM app::b',
      'SELECT id, n FROM app::b ORDER BY n DESC, id LIMIT 2 OFFSET 1',
      'SELECT g, count(*) AS c FROM app::a GROUP BY g ORDER BY c DESC, g LIMIT 2',
      'SELECT b.g AS g, count(a.id) AS c FROM app::b b LEFT JOIN app::a a ON a.g = b.g GROUP BY b.g',
      'SELECT t.c, count(*) AS n FROM (SELECT g, count(*) AS c FROM app::b GROUP BY g) t GROUP BY t.c',
      'SELECT b.id, t.s FROM app::b b JOIN (SELECT g, sum(n) AS s FROM app::a GROUP BY g) t ON t.g = b.g',
      'SELECT a.id FROM app::a a LEFT JOIN app::b b ON a.g = b.g WHERE b.id IS NULL',
      "SELECT id, coalesce(n, 0) + 1 AS m, CASE WHEN n > 1 THEN 'big' WHEN n IS NULL THEN 'none' END AS k FROM app::b WHERE g IS NOT NULL OR id IN ('4', '5')",
      'WITH t AS (SELECT g, n FROM app::b WHERE n IS NOT NULL) SELECT t.g, u.n FROM t JOIN t u ON t.g = u.g',
    ]
    for (const [number, select] of selects.entries()) await views(app, `v${number}`, select)
    for (const [a, b] of edges) {
      await Promise.all(
        [app.storeText('a', a), app.storeText('b', b)].map(async (reply) => {
          const { status, text } = await reply
          expect(status, text).toBe(200)
        }),
      )
      for (const [number, select] of selects.entries()) await same(app, `v${number}`, select)
    }
    const outcome = await service().whileStopped((config) => audit(config, quiet))
    expect(outcome).toMatchObject({ equal: true })
  }, 180_000)
})
