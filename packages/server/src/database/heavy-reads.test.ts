import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import { type Database, openDatabase, type Queryable } from './database.ts'
import { sql } from './sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

describe.each(listTestEngines())('heavy reads (%s)', (engine) => {
  let place: TestDatabase
  let db: Database
  let now: number
  beforeAll(async () => {
    place = await createTestDatabase(engine)
    await place.database.execute(sql`CREATE SCHEMA s`)
    now = 1_000
    const world = { ...realWorld, ticks: () => now }
    db = await openDatabase({
      connection: place.connection,
      poolSize: 2,
      longTimeoutMs: 70_000,
      world,
    })
  })
  afterAll(async () => {
    await db.close()
    await place.drop()
  })

  /** The parallel workers that a statement may have, seen from inside. */
  const workers = async () => {
    const [row] = await db.queryHeavy<{ workers: string }>(
      sql`SELECT current_setting('max_parallel_workers') AS workers`,
    )
    return row?.workers
  }
  const readOften = () =>
    Promise.all(Array.from({ length: 100 }, () => db.queryShort(sql`SELECT 1 AS one`)))

  test('a long read has helpers unless many quick ones were there a moment ago', async () => {
    const usual = await workers()
    expect(usual).not.toBe('0')
    await readOften()
    expect(await workers()).toBe('0')
    now += 20_000
    expect(await workers()).toBe(usual)
  })

  test('a long read has its own time limit, which ends with it', async () => {
    const timeOut = sql`SELECT current_setting('statement_timeout') AS v`
    expect(await db.queryHeavy(timeOut)).toEqual([{ v: '70s' }])
    expect(await Promise.all([1, 2].map(() => db.query(timeOut)))).toEqual([
      [{ v: '15s' }],
      [{ v: '15s' }],
    ])
  })

  test('a transaction is cancelled once nobody wants it, and leaves its connection as it was', async () => {
    const gone = new AbortController()
    const work = (tx: Queryable) => tx.query(sql`SELECT pg_sleep(60)`)
    const running = db.transaction(work, { signal: gone.signal, statementTimeoutMs: 0 })
    const refused = expect(running).rejects.toMatchObject({ code: '57014' })
    gone.abort()
    await refused
    expect(await db.query(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
  })

  test('a long read beside quick ones is told of its error, and leaves its connection as it was', async () => {
    await readOften()
    await expect(db.queryHeavy(sql`SELECT 1 / 0 AS v`)).rejects.toMatchObject({ code: '22012' })
    const settings = await Promise.all(
      [1, 2].map(() =>
        db.query(
          sql`SELECT current_setting('max_parallel_workers') AS v, pg_sleep(0.05) IS NULL AS slept`,
        ),
      ),
    )
    for (const [row] of settings) expect(row?.v).not.toBe('0')
  })

  test('a long read beside quick ones sees the new columns of a table', async () => {
    await place.database.execute(sql`CREATE TABLE s.changing AS SELECT 1 AS a`)
    const rows = () => db.queryHeavy(sql`SELECT * FROM s.changing`)
    for (let round = 0; round < 3; round += 1) {
      await readOften()
      expect(await rows()).toEqual([{ a: 1 }])
    }
    await place.database.execute(sql`ALTER TABLE s.changing ADD COLUMN b integer DEFAULT 2`)
    expect(await rows()).toEqual([{ a: 1, b: 2 }])
  })
})
