import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import { type Database, openDatabase } from './database.ts'
import { sql } from './sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

describe.each(listTestEngines())('pipelined connections (%s)', (engine) => {
  let place: TestDatabase
  let db: Database
  let connections: Map<object, number>
  beforeAll(async () => {
    place = await createTestDatabase(engine)
    await place.database.execute(sql`CREATE SCHEMA s`)
    await place.database.execute(
      sql`CREATE TABLE s.t AS SELECT g AS k FROM generate_series(1, 1000) AS g`,
    )
    // On a busy machine reads are no shorter, so they would not share.
    const world = { ...realWorld, idle: () => realWorld.idle() / 10 }
    db = await openDatabase({ connection: place.connection, poolSize: 4, pipelines: 1, world })
    connections = new Map()
    db.observe((_text, connection) =>
      connections.set(connection, (connections.get(connection) ?? 0) + 1),
    )
    await warm()
  })
  afterAll(async () => {
    await db.close()
    await place.drop()
  })

  const read = async (k: number) =>
    (await db.queryShort<{ k: number }>(sql`SELECT k FROM s.t WHERE k = ${k}`))[0]?.k
  const sleep = (seconds: number) =>
    db.queryShort<{ v: number }>(
      sql`SELECT ${seconds}::float8 AS v, pg_sleep(${seconds}) IS NULL AS slept`,
    )
  /** Repeats until reads share a connection; on a busy machine some tries do not. */
  const warm = async () => {
    while ((await shares()) < 4) await new Promise((done) => setTimeout(done, 5))
  }
  const shares = async () => {
    connections.clear()
    await Promise.all(Array.from({ length: 8 }, (_, at) => read(at + 1)))
    return Math.max(...connections.values())
  }

  test('each of many reads at once gets its own answer', async () => {
    const keys = Array.from({ length: 1000 }, (_, at) => at + 1)
    expect(await Promise.all(keys.map(read))).toEqual(keys)
    await warm()
  })

  test('a read gives the same values however often it was run, whatever their types', async () => {
    const typed = (n: number) => sql`SELECT g AS "int4", g::int8 * 9007199254740993 AS "int8",
      nullif(g % 2, 0) AS "maybe", g::numeric / 3 AS "numeric", '\\x00ff'::bytea AS "bytes",
      ARRAY[g, NULL]::int8[] AS "list", to_jsonb(g) AS "json", g % 2 = 0 AS "bool", '' AS "empty"
      FROM generate_series(1, ${n}::int4) AS g ORDER BY g`
    const wanted = await db.query(typed(3))
    expect(wanted).toHaveLength(3)
    const runs = Array.from({ length: 40 }, (_, at) => db.queryShort(typed(at % 4)))
    for (const [at, rows] of (await Promise.all(runs)).entries())
      expect(rows).toEqual(wanted.slice(0, at % 4))
  })

  test('a value that cannot be read is an error of its own read', async () => {
    const lists = () => db.queryShort(sql`SELECT '{{1,2},{3,4}}'::int8[] AS lists`)
    for (const all of [
      await Promise.allSettled([lists(), lists(), lists()]),
      await Promise.allSettled([lists(), lists(), lists()]),
    ])
      for (const each of all) expect(each).toMatchObject({ reason: expect.any(SyntaxError) })
    expect(await read(7)).toBe(7)
  })

  test('an error behind the first rows is the answer, and the next run is whole', async () => {
    const divided = (by: number) =>
      db.queryShort<{ v: number }>(
        sql`SELECT 12 / (g - ${by}) AS v FROM generate_series(1, 3) AS g ORDER BY g`,
      )
    for (let round = 0; round < 5; round++) {
      const [good, bad, again] = await Promise.allSettled([divided(9), divided(2), divided(9)])
      expect(bad).toMatchObject({ status: 'rejected', reason: { code: '22012' } })
      for (const each of [good, again])
        expect(each).toMatchObject({ value: [{ v: -1 }, { v: -1 }, { v: -2 }] })
    }
  })

  test('an error is the answer of its own read alone', async () => {
    const wrong = (k: number) => db.queryShort(sql`SELECT 1 / (k - ${k}) FROM s.t WHERE k = ${k}`)
    const missing = () => db.queryShort(sql`SELECT nothing FROM s.t WHERE k = 1`)
    for (let round = 0; round < 3; round++) {
      const all = [
        read(1),
        wrong(2),
        read(3),
        missing(),
        missing(),
        read(4),
        missing(),
        wrong(5),
        read(6),
      ]
      const results = await Promise.allSettled(all)
      expect(
        results.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.code)),
      ).toEqual([1, '22012', 3, '42703', '42703', 4, '42703', '22012', 6])
    }
  })

  test('a read that stands behind a slow one does not wait for it', async () => {
    await warm()
    let isSlowOver = false
    const slow = sleep(2).then(() => {
      isSlowOver = true
    })
    expect(await Promise.all([1, 2, 3].map(read))).toEqual([1, 2, 3])
    expect(await read(4)).toBe(4)
    expect(isSlowOver).toBe(false)
    await slow
  })

  test('a lost connection costs its reads nothing, and another takes its place', async () => {
    await warm()
    const [shared] = await db.queryShort<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
    const slow = sleep(1)
    const reads = [read(1), read(2)]
    await place.database.query(sql`SELECT pg_terminate_backend(${shared?.pid})`)
    reads.push(read(3))
    expect(await Promise.all(reads)).toEqual([1, 2, 3])
    expect(await slow).toEqual([{ v: 1, slept: false }])
    await warm()
  })

  test('an error that was found elsewhere is the answer, not what becomes of the connection', async () => {
    await warm()
    const [shared] = await db.queryShort<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
    let isSlowOver = false
    const slow = sleep(2).then(() => {
      isSlowOver = true
    })
    await expect(db.queryShort(sql`SELECT 1 / (k - 2) FROM s.t WHERE k = 2`)).rejects.toMatchObject(
      {
        code: '22012',
      },
    )
    expect(isSlowOver).toBe(false)
    await place.database.query(sql`SELECT pg_terminate_backend(${shared?.pid})`)
    await slow
  })

  test('a table whose columns change is read by its new columns', async () => {
    await place.database.execute(sql`CREATE TABLE s.changing AS SELECT 1 AS a`)
    const rows = () =>
      Promise.all([1, 2, 3].map(() => db.queryShort(sql`SELECT * FROM s.changing`)))
    for (let round = 0; round < 3; round++) await rows()
    await place.database.execute(sql`ALTER TABLE s.changing ADD COLUMN b integer DEFAULT 2`)
    expect(await rows()).toEqual(Array.from({ length: 3 }, () => [{ a: 1, b: 2 }]))
  })

  test('a statement that keeps its plan is planned once for all values, with the same answers, and no other one is', async () => {
    const text =
      'SELECT count(*) AS n, current_setting($3) AS mode FROM s.t WHERE k BETWEEN $1 AND $2'
    const between = (to: number) => sql.compiled(text, [1, to, 'plan_cache_mode'])
    const count = (to: number) =>
      db.queryShort<{ n: bigint; mode: string }>(between(to), { keepsPlan: true })
    const keeps = async () => (await count(5))[0]?.mode === 'force_generic_plan'
    await expect.poll(keeps, { timeout: 20_000 }).toBe(true)
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all([1, 999, 0, 5_000].map(count))
      expect(answers.map(([row]) => row?.n)).toEqual([1n, 999n, 0n, 1000n])
    }
    const readPlans = () =>
      db.queryShort<{ mode: string; own: bigint; kept: boolean }>(
        sql`SELECT current_setting('plan_cache_mode') AS mode, sum(custom_plans)::int8 AS own,
          sum(generic_plans) > 0 AS kept FROM pg_prepared_statements WHERE statement = ${text}`,
        { keepsPlan: true },
      )
    const kept = { mode: 'force_generic_plan', own: 0n, kept: true }
    await expect.poll(readPlans, { timeout: 20_000 }).toEqual([kept])
    const [other] = await db.queryShort<{ mode: string }>(between(5))
    expect(other?.mode).toBe('auto')
  })

  test('closing lets reads under way end', async () => {
    const other = await openDatabase({ connection: place.connection, pipelines: 1 })
    const one = () => other.queryShort<{ v: number }>(sql`SELECT 1 AS v FROM pg_sleep(0.05)`)
    await one()
    await expect.poll(() => other.stats().total, { timeout: 20_000 }).toBe(2)
    const reads = [one(), one(), one()]
    await other.close()
    expect((await Promise.all(reads)).flat()).toEqual([{ v: 1 }, { v: 1 }, { v: 1 }])
  })
})
