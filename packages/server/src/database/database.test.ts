import { DatabaseError } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Database, openDatabase } from './database.ts'
import {
  CommitUnknownError,
  DatabaseSetupError,
  findStorageProblem,
  isTransient,
  isUniqueViolation,
} from './errors.ts'
import { makePreparedNames } from './prepared-names.ts'
import { sql } from './sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no failure',
    (error: unknown) => error,
  )

describe.each(listTestEngines())('a database (%s)', (engine) => {
  let test1: TestDatabase
  let db: Database
  beforeAll(async () => {
    test1 = await createTestDatabase(engine)
    db = test1.database
    await db.execute(sql`CREATE SCHEMA s`)
    await db.execute(sql`CREATE TABLE s.t (k integer PRIMARY KEY, v text)`)
  })
  afterAll(() => test1.drop())

  const keys = async () =>
    (await db.query<{ k: number }>(sql`SELECT k FROM s.t ORDER BY k`)).map((row) => row.k)
  const killSession = (pid: unknown) => db.query(sql`SELECT pg_terminate_backend(${pid})`)

  test('values arrive exactly: int8 as bigint, bytea as Buffer, numeric, JSON and times as text', async () => {
    const [row] = await db.query(sql`
      SELECT 9007199254740993::int8 AS int8, ARRAY[1, NULL]::int8[] AS int8s, 1.50::numeric AS numeric,
        '{"a": 1e400}'::json AS json, '{"b":1}'::jsonb AS jsonb, '\\x00ff'::bytea AS bytea, 7::int4 AS int4,
        '2026-01-02 03:04:05+00'::timestamptz AS time, true AS bool, 0.5::float8 AS float8, ARRAY['a','b']::text[] AS texts`)
    expect(row).toEqual({
      int8: 9007199254740993n,
      int8s: [1n, null],
      numeric: '1.50',
      json: '{"a": 1e400}',
      jsonb: '{"b": 1}',
      bytea: Buffer.from([0, 255]),
      int4: 7,
      time: '2026-01-02 03:04:05+00',
      bool: true,
      float8: 0.5,
      texts: ['a', 'b'],
    })
    expect(db.major).toBe(engine === 'debian15' ? 15 : 18)
  })

  test('settings that a role or a database was given do not change values', async () => {
    const { connection } = test1
    const shown = sql`SELECT ARRAY[1, NULL]::int8[]::text::int8[] AS nulls, '\\x00ff'::bytea AS bytes, '1 day'::interval::text AS span,
      to_char(1234.5, '9G999D9') AS number, 'a' || 0.1::float8 AS float, current_setting('transaction_isolation') AS isolation,
      timezone('EST', '2026-01-01'::timestamp)::text AS moment, current_setting('gin_fuzzy_search_limit') AS found_at_most,
      'lower(text)'::regprocedure::text AS name`
    const [before] = await db.query(shown)
    const name = sql.id(connection.database)
    const changes = {
      array_nulls: 'off',
      bytea_output: 'escape',
      IntervalStyle: 'iso_8601',
      transform_null_equals: 'on',
      extra_float_digits: '-3',
      default_transaction_isolation: 'serializable',
      timezone_abbreviations: 'Australia',
      gin_fuzzy_search_limit: '1',
      quote_all_identifiers: 'on',
    }
    for (const [setting, value] of Object.entries(changes))
      await db.execute(sql`ALTER DATABASE ${name} SET ${sql.id(setting)} TO ${sql.id(value)}`)
    const changed = await openDatabase({ connection, poolSize: 1 })
    try {
      expect(await changed.query(shown)).toEqual([before])
      const parameter = [1n, null]
      expect(await changed.query(sql`SELECT ${parameter}::int8[] AS given`)).toEqual([
        { given: parameter },
      ])
    } finally {
      await changed.close()
      await db.execute(sql`ALTER DATABASE ${name} RESET ALL`)
    }
  })

  test('statements of a transaction that do not wait for each other keep their order', async () => {
    const read = await db.transaction(async (tx) => {
      await Promise.all([
        tx.execute(sql`INSERT INTO s.t VALUES (901, 'a')`),
        tx.execute(sql`UPDATE s.t SET v = 'b' WHERE k = 901`),
      ])
      return tx.query(sql`SELECT v FROM s.t WHERE k = 901`)
    })
    expect(read).toEqual([{ v: 'b' }])
    await db.execute(sql`DELETE FROM s.t WHERE k = 901`)
  })

  test('statements that are sent with one that fails do nothing after it', async () => {
    const outcomes = db.transaction((tx) =>
      Promise.allSettled([
        tx.execute(sql`INSERT INTO s.t VALUES (902, 'a')`),
        tx.execute(sql`INSERT INTO s.t VALUES (902, 'again')`),
        tx.execute(sql`INSERT INTO s.t VALUES (903, 'a')`),
      ]),
    )
    await expect(outcomes).rejects.toThrow('one of its statements had failed')
    expect(await keys()).not.toEqual(expect.arrayContaining([902]))
    expect(await keys()).not.toEqual(expect.arrayContaining([903]))
  })

  test('a transaction fails with the error of the statement at fault, whichever answer is seen first', async () => {
    // Both answers are read at once, and the shallower wait is told first.
    const wrapped = async (statement: Promise<unknown>) => {
      await (async () => statement)()
    }
    const work = db.transaction(async (tx) => {
      const sent = [wrapped(tx.execute(sql`SELECT 1 / 0`)), tx.execute(sql`SELECT 1`)]
      await new Promise(process.nextTick)
      for (const end = Date.now() + 50; Date.now() < end; );
      await Promise.all(sent)
    })
    expect(await failure(work)).toMatchObject({ code: '22012' })
  })

  test('a transaction that could not begin does nothing', async () => {
    const insert = db.transaction((tx) => tx.execute(sql`INSERT INTO s.t VALUES (904, 'a')`), {
      statementTimeoutMs: -5,
    })
    expect(await failure(insert)).toMatchObject({ code: '22023' })
    expect(await keys()).not.toEqual(expect.arrayContaining([904]))
    // The connection is not reused, because of what pg believes about it.
    for (let n = 0; n < 8; n++)
      expect(await db.transaction((tx) => tx.query(sql`SELECT ${n}::int4 AS n`))).toEqual([{ n }])
  })

  test('a first statement without values goes with BEGIN: it answers as others do, under the settings of the transaction', async () => {
    const texts: string[] = []
    const stop = db.observe((text) => texts.push(text))
    const options = { isolation: 'repeatable read', statementTimeoutMs: 7_000 } as const
    const [row] = await db.transaction(
      (tx) =>
        tx.query(sql`SELECT 8::int8 AS n, '\\x00ff'::bytea AS b, current_setting('statement_timeout') AS timeout,
          current_setting('transaction_isolation') AS isolation, txid_current() = txid_current() AS same`),
      options,
    )
    stop()
    expect(row).toEqual({
      ...{ n: 8n, b: Buffer.from([0, 255]), timeout: '7s' },
      ...{ isolation: 'repeatable read', same: true },
    })
    expect(texts.map((text) => text.slice(0, 21))).toEqual([
      ...['BEGIN ISOLATION LEVEL', 'SET LOCAL statement_t', 'SELECT 8::int8 AS n, ', 'COMMIT'],
    ])
    const counted = await db.transaction(async (tx) => {
      const first = await tx.execute(
        sql`INSERT INTO s.t SELECT n, 'of three' FROM generate_series(901, 903) AS n`,
      )
      return [first, await tx.execute(sql`DELETE FROM s.t WHERE v = ${'of three'}`)]
    })
    expect(counted).toEqual([3, 3])
  })

  test.each([
    [
      '22012',
      sql`INSERT INTO s.t SELECT 904 / (n - 1), 'never' FROM generate_series(2, 1, -1) AS n`,
    ],
    ['42601', sql`INSERT INTO s.t VALUES (904, 'never'); INSERT INTO s.t VALUES (905, 'never')`],
  ])(
    'a first statement that fails with %s does nothing, nor does what follows it',
    async (code, first) => {
      const insert = sql`INSERT INTO s.t VALUES (${906}, 'never')`
      const both = db.transaction((tx) => Promise.all([tx.execute(first), tx.execute(insert)]))
      expect(await failure(both)).toMatchObject({ code })
      const swallowed = db.transaction((tx) =>
        Promise.allSettled([tx.execute(first), tx.execute(insert)]),
      )
      await expect(swallowed).rejects.toThrow()
      expect(await db.query(sql`SELECT k FROM s.t WHERE v = 'never'`)).toEqual([])
    },
  )

  test('a transaction without statements sends nothing to the database', async () => {
    const texts: string[] = []
    const stop = db.observe((text) => texts.push(text))
    expect(await db.transaction(async () => 'done')).toBe('done')
    expect(await failure(db.transaction(() => Promise.reject(new Error('no'))))).toMatchObject({
      message: 'no',
    })
    stop()
    expect(texts).toEqual([])
  })

  test('text sorts by code point', async () => {
    const rows = await db.query<{ x: string }>(
      sql`SELECT x FROM (VALUES ('b'), ('A'), ('é'), ('a'), ('Z')) v (x) ORDER BY x`,
    )
    expect(rows.map((row) => row.x)).toEqual(['A', 'Z', 'a', 'b', 'é'])
  })

  test('a call runs one statement, never two', async () => {
    expect(await failure(db.query(sql`SELECT 1; SELECT 2`))).toMatchObject({ code: '42601' })
  })

  test('a name without its schema is refused, so nothing depends on a search path', async () => {
    expect(await failure(db.query(sql`SELECT k FROM t`))).toMatchObject({ code: '42P01' })
    expect(await failure(db.execute(sql`CREATE TABLE loose (k integer)`))).not.toBe('no failure')
  })

  test('a transaction commits all or nothing, and its connection is free afterwards', async () => {
    await db.transaction(async (tx) => {
      expect(await tx.execute(sql`INSERT INTO s.t VALUES (1, 'a'), (2, 'b')`)).toBe(2)
    })
    const thrown = new Error('mine')
    const failed = db.transaction(async (tx) => {
      await tx.execute(sql`INSERT INTO s.t VALUES (3, 'c')`)
      throw thrown
    })
    expect(await failure(failed)).toBe(thrown)
    expect(await keys()).toEqual([1, 2])
    expect(db.stats().idle).toBe(db.stats().total)
  })

  test('a failed statement that was swallowed cannot pass for a commit', async () => {
    const swallowed = db.transaction(async (tx) => {
      await tx.execute(sql`INSERT INTO s.t VALUES (4, 'd')`)
      await failure(tx.execute(sql`INSERT INTO s.t VALUES (4, 'd')`))
    })
    expect(String(await failure(swallowed))).toMatch(
      /went on after one of its statements had failed/,
    )
    expect(await keys()).not.toContain(4)
  })

  test('a transaction cannot be used after its end, and waits for what it was not told to await', async () => {
    let late: unknown
    await db.transaction(async (tx) => {
      late = tx
      void tx.execute(sql`INSERT INTO s.t VALUES (5, 'e')`)
      void tx.execute(sql`DELETE FROM s.t WHERE k = 5`)
    })
    expect(await keys()).not.toContain(5)
    const tx = late as Database
    expect(String(await failure(tx.query(sql`SELECT 1`)))).toMatch(/used after its end/)
  })

  test('repeatable read sees one snapshot, and a conflict is transient', async () => {
    const conflict = db.transaction(
      async (tx) => {
        const before = await tx.query(sql`SELECT v FROM s.t WHERE k = 1`)
        await db.execute(sql`UPDATE s.t SET v = v || '!' WHERE k = 1`)
        expect(await tx.query(sql`SELECT v FROM s.t WHERE k = 1`)).toEqual(before)
        await tx.execute(sql`UPDATE s.t SET v = 'z' WHERE k = 1`)
      },
      { isolation: 'repeatable read' },
    )
    const error = await failure(conflict)
    expect(error).toMatchObject({ code: '40001' })
    expect(isTransient(error)).toBe(true)
  })

  test('a statement has a deadline, and a transaction may have another one', async () => {
    const slow = db.transaction((tx) => tx.query(sql`SELECT pg_sleep(5)`), {
      statementTimeoutMs: 50,
    })
    expect(await failure(slow)).toMatchObject({ code: '57014' })
    expect(await db.query(sql`SELECT current_setting('statement_timeout') AS t`)).toEqual([
      { t: '15s' },
    ])
  })

  test('a statement that refuses a transaction runs apart, with deadlines of its own, and leaves nothing behind', async () => {
    const timeOuts = { statementTimeoutMs: 70_000, lockTimeoutMs: 500 }
    const state = await db.useDedicatedSession(async (session, pid) => {
      await session.execute(sql`DROP INDEX CONCURRENTLY IF EXISTS s.not_there`)
      const [row] = await session.query(sql`
        SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
          pg_backend_pid() = ${pid}::int4 AS same`)
      return row
    }, timeOuts)
    expect(state).toEqual({ statement: '70s', lock: '500ms', same: true })
    const [after] = await db.query(sql`SELECT current_setting('lock_timeout') AS lock`)
    expect(after).toEqual({ lock: '0' })
  })

  test('unique violations and read-only refusals are told apart, and do not cost the connection', async () => {
    const before = await db.query(sql`SELECT pg_backend_pid() AS pid`)
    const duplicate = await failure(db.execute(sql`INSERT INTO s.t VALUES (1, 'again')`))
    expect([
      isUniqueViolation(duplicate),
      isTransient(duplicate),
      findStorageProblem(duplicate),
    ]).toEqual([true, false, undefined])
    const readOnly = await failure(
      db.transaction(async (tx) => {
        await tx.query(sql`SELECT set_config('transaction_read_only', 'on', true)`)
        await tx.execute(sql`DELETE FROM s.t`)
      }),
    )
    expect(findStorageProblem(readOnly)).toBe('STORAGE_READ_ONLY')
    const failing = Object.assign(
      new DatabaseError('could not extend file "base/1/2": Read-only file system', 1, 'error'),
      { code: '42501' },
    )
    expect(findStorageProblem(failing)).toBe('STORAGE_READ_ONLY')
    expect(
      findStorageProblem(Object.assign(failing, { message: 'permission denied' })),
    ).toBeUndefined()
    expect(await db.query(sql`SELECT pg_backend_pid() AS pid`)).toEqual(before)
  })

  test('a session killed during a statement or while idle fails that statement as transient, nothing more', async () => {
    const running = failure(db.query(sql`SELECT pg_sleep(20)`))
    let found: { pid: number }[] = []
    while (found.length === 0) {
      found = await db.query<{ pid: number }>(
        sql`SELECT pid FROM pg_stat_activity WHERE query LIKE ${'SELECT pg_sleep(20)%'} AND datname = current_database()`,
      )
    }
    await killSession(found[0]?.pid)
    expect(isTransient(await running)).toBe(true)
    await db.query(sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND datname = current_database()`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await db.query(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
  })

  test('a session killed between two statements of a transaction fails the transaction, not the process', async () => {
    const failed = db.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
      await killSession(row?.pid)
      await new Promise((resolve) => setTimeout(resolve, 100))
      await tx.query(sql`SELECT 1`)
    })
    expect(isTransient(await failure(failed))).toBe(true)
    expect(await db.query(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
  })

  test('a connection lost during COMMIT is an unknown outcome, which no retry loop takes for a failure', async () => {
    // A deferred trigger holds COMMIT open long enough to lose the connection in the middle of it.
    await db.execute(sql`CREATE FUNCTION s.slow() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`)
    await db.execute(sql`CREATE TABLE s.slow_commit (k integer)`)
    await db.execute(sql`CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON s.slow_commit
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION s.slow()`)
    let pid: unknown
    const lost = failure(
      db.transaction(async (tx) => {
        await tx.execute(sql`INSERT INTO s.slow_commit VALUES (1)`)
        pid = (await tx.query(sql`SELECT pg_backend_pid() AS pid`))[0]?.pid
      }),
    )
    await new Promise((resolve) => setTimeout(resolve, 200))
    await killSession(pid)
    const error = await lost
    expect(error).toBeInstanceOf(CommitUnknownError)
    expect(isTransient(error)).toBe(false)
  })

  test('a repeated text is prepared once per connection, and survives a change of its columns', async () => {
    const one = await createTestDatabase(engine, { poolSize: 1 })
    try {
      await one.database.execute(sql`CREATE SCHEMA s`)
      await one.database.execute(sql`CREATE TABLE s.t (k integer)`)
      const star = () => one.database.query(sql`SELECT * FROM s.t WHERE k > ${0}`)
      for (let i = 0; i < 4; i++) await star()
      const plans = await one.database.query(
        sql`SELECT name FROM pg_prepared_statements WHERE statement LIKE 'SELECT * FROM s.t%'`,
      )
      expect(plans).toHaveLength(1)
      await one.database.execute(sql`ALTER TABLE s.t ADD COLUMN extra text`)
      await one.database.execute(sql`INSERT INTO s.t VALUES (1, 'x')`)
      expect(await star()).toEqual([{ k: 1, extra: 'x' }])
    } finally {
      await one.drop()
    }
  })

  test('plans on one connection are bounded', async () => {
    const one = await createTestDatabase(engine, { poolSize: 1 })
    try {
      for (let i = 0; i < 600; i++) {
        const statement = sql`SELECT ${sql.literal(String(i))} AS x`
        await one.database.query(statement)
        await one.database.query(statement)
      }
      const [row] = await one.database.query<{ n: bigint }>(
        sql`SELECT count(*) AS n FROM pg_prepared_statements`,
      )
      expect(row?.n).toBeLessThan(513n)
    } finally {
      await one.drop()
    }
  })

  test('observers see every text sent, BEGIN and COMMIT too, until they stop', async () => {
    const texts: string[] = []
    const stop = db.observe((text) => texts.push(text))
    await db.transaction((tx) => tx.query(sql`SELECT ${1}::int4 AS one`))
    stop()
    await db.query(sql`SELECT 2`)
    expect(texts).toEqual(['BEGIN', 'SELECT $1::int4 AS one', 'COMMIT'])
  })

  test('close waits for running statements and may be called twice', async () => {
    const one = await createTestDatabase(engine)
    const running = one.database.query(sql`SELECT pg_sleep(0.1)::text AS done`)
    await new Promise((resolve) => setTimeout(resolve, 30))
    await one.database.close()
    expect(await running).toEqual([{ done: '' }])
    await one.drop()
  })

  test('a role that may make no temporary tables is refused with the command that lets it', async () => {
    const { database } = test1.connection
    const name = sql.id(database)
    const role = `bare_${engine}`
    await db.execute(sql`CREATE ROLE ${sql.id(role)} LOGIN`)
    await db.execute(sql`REVOKE TEMPORARY ON DATABASE ${name} FROM PUBLIC`)
    const open = () =>
      openDatabase({ connection: { ...test1.connection, user: role }, poolSize: 1 })
    try {
      const refusal = await failure(open())
      expect(refusal).toBeInstanceOf(DatabaseSetupError)
      const command = /GRANT [^;]*/.exec(String(refusal))?.[0] ?? ''
      await db.execute(sql.compiled(command, []))
      await (await open()).close()
    } finally {
      await db.execute(sql`GRANT TEMPORARY ON DATABASE ${name} TO PUBLIC`)
      await db.execute(sql`REVOKE ALL ON DATABASE ${name} FROM ${sql.id(role)}`)
      await db.execute(sql`DROP ROLE ${sql.id(role)}`)
    }
  })

  test('a database of another encoding or collation is refused with a command that makes a right one', async () => {
    const open = (database: string) =>
      openDatabase({ connection: { ...test1.connection, database }, poolSize: 1 })
    await db.execute(sql`CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'
      ${engine === 'embedded' ? sql`LOCALE_PROVIDER libc` : sql.empty}`)
    await db.execute(
      sql`CREATE DATABASE icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'`,
    )
    try {
      expect(String(await failure(open('latin')))).toMatch(/"latin" has the encoding LATIN1/)
      const refusal = await failure(open('icu'))
      expect(refusal).toBeInstanceOf(DatabaseSetupError)
      expect(String(refusal)).toMatch(
        /"icu" sorts text by the collation ICU en.*CREATE DATABASE tollbase/,
      )
      const command = /CREATE DATABASE [^;]*/.exec(String(refusal))?.[0] ?? ''
      await db.execute(sql.compiled(command, []))
      await (await open('tollbase')).close()
    } finally {
      for (const name of ['latin', 'icu', 'tollbase']) {
        await db.execute(sql`DROP DATABASE IF EXISTS ${sql.id(name)} WITH (FORCE)`)
      }
    }
  })

  test('a database is also opened by its URL', async () => {
    const { host, port, user, database } = test1.connection
    const url = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
    const byUrl = await openDatabase({ connection: { url }, poolSize: 1 })
    expect(await byUrl.query(sql`SELECT current_database()::text AS name`)).toEqual([
      { name: database },
    ])
    await byUrl.close()
  })
})

test('a server that is not there is a transient error, not a hang', async () => {
  const error = await failure(
    openDatabase({ connection: { host: '/nowhere', user: 'x', database: 'x' } }),
  )
  expect(isTransient(error)).toBe(true)
})

test('a round of more texts than are remembered finds all but the few that are too many', () => {
  const names = makePreparedNames(100)
  const round = () => Array.from({ length: 120 }, (_, at) => names.findName(`SELECT ${at}`))
  round()
  for (let turn = 0; turn < 50; turn++)
    expect(round().filter((name) => name !== undefined)).toHaveLength(100)
})

test('only repeated, short, plannable texts get names, and those not used for long are forgotten', () => {
  const names = makePreparedNames(2)
  expect(names.findName('SELECT 1')).toBeUndefined()
  const name = names.findName('SELECT 1')
  expect(name).toMatch(/^t[0-9a-f]{32}_0$/)
  names.findName('SELECT 2')
  names.findName('SELECT 3')
  expect(names.findName('SELECT 1')).toBe(name)
  expect(names.findName('SELECT 3')).toBeUndefined()
  for (let use = 0; use < 5_000; use++) names.findName('SELECT 2')
  names.findName('SELECT 3')
  expect(names.findName('SELECT 3')).toBeDefined()
  expect(names.findName('SELECT 1')).toBeUndefined()
  for (let use = 0; use < 5_000; use++) names.findName('SELECT 2')
  expect(names.findName('SELECT 1')).toBeUndefined()
  expect(names.findName('SELECT 1')).toBe(name)
  names.forget('SELECT 1')
  names.findName('SELECT 1')
  expect(names.findName('SELECT 1')).not.toBe(name)
  for (const text of ['BEGIN', `SELECT '${'x'.repeat(20_000)}'`]) {
    names.findName(text)
    expect(names.findName(text)).toBeUndefined()
  }
})
