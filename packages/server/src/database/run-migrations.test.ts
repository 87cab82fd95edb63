import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from './database.ts'
import { type Migration, runMigrations } from './run-migrations.ts'
import { type SqlStatement, sql } from './sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

const step = (id: number, ...statements: SqlStatement[]): Migration => ({
  id,
  name: `step-${id}`,
  statements: () => statements,
})
const first = step(
  1,
  sql`CREATE TABLE operations.a (k integer PRIMARY KEY)`,
  sql`INSERT INTO operations.a VALUES (1)`,
)
const second = step(2, sql`UPDATE operations.a SET k = k + 1`)
const now = 1_700_000_000_000

describe.each(listTestEngines())('migrations (%s)', (engine) => {
  let db: TestDatabase
  beforeEach(async () => {
    db = await createTestDatabase(engine)
  })
  afterEach(() => db.drop())

  const rows = () => db.database.query(sql`SELECT k FROM operations.a`)

  test('each migration runs once, in order, and is recorded', async () => {
    expect(await runMigrations(db.database, [first], { now })).toBe(1)
    expect(await runMigrations(db.database, [first, second], { now: now + 1 })).toBe(1)
    expect(await runMigrations(db.database, [first, second], { now: now + 2 })).toBe(0)
    expect(await rows()).toEqual([{ k: 2 }])
    expect(
      await db.database.query(
        sql`SELECT id, name, applied_at_ms FROM operations.migration ORDER BY id`,
      ),
    ).toEqual([
      { id: 1, name: 'step-1', applied_at_ms: BigInt(now) },
      { id: 2, name: 'step-2', applied_at_ms: BigInt(now + 1) },
    ])
  })

  test('several starters at once apply each migration exactly once', async () => {
    const starters = await Promise.all(
      Array.from({ length: 4 }, () => openDatabase({ connection: db.connection, poolSize: 1 })),
    )
    const counts = await Promise.all(
      starters.map((each) => runMigrations(each, [first, second], { now })),
    )
    await Promise.all(starters.map((each) => each.close()))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2)
    expect(await rows()).toEqual([{ k: 2 }])
  })

  test('a failing migration leaves nothing of itself, and the ones before it stay', async () => {
    const broken = step(2, sql`UPDATE operations.a SET k = 9`, sql`SELECT 1 / 0`)
    await expect(runMigrations(db.database, [first, broken], { now })).rejects.toMatchObject({
      code: '22012',
    })
    expect(await rows()).toEqual([{ k: 1 }])
    expect(await runMigrations(db.database, [first, second], { now })).toBe(1)
  })

  test('a database newer than the program, or made by another one, is refused', async () => {
    await runMigrations(db.database, [first, second], { now })
    await expect(runMigrations(db.database, [first], { now })).rejects.toThrow(
      /newer than this program: it has migration 2/,
    )
    const edited = step(2, sql`UPDATE operations.a SET k = k + 2`)
    await expect(runMigrations(db.database, [first, edited], { now })).rejects.toThrow(
      /migration 2 \(step-2\) differs/,
    )
    await expect(runMigrations(db.database, [first, step(3)], { now })).rejects.toThrow(
      /migration 2 \(step-2\) differs/,
    )
  })
})
