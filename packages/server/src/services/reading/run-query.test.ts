import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Semaphore } from '../../base/semaphore.ts'
import { realWorld } from '../../base/world.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { runQuery, toQueryFault } from './run-query.ts'
import { ShortReads } from './short-reads.ts'

let test: TestDatabase
beforeAll(async () => {
  const readOnly = { temporaryKbMax: limits.queryTemporaryKbMax }
  const timeOuts = { statementTimeoutMs: 100, longTimeoutMs: limits.queryTimeoutMs }
  test = await createTestDatabase(undefined, { readOnly, ...timeOuts })
})
afterAll(() => test?.drop())

describe('errors of PostgreSQL for a query that is too much', () => {
  it.each([
    ['57014', 'QUERY_TIMEOUT'],
    ['54000', 'QUERY_TOO_EXPENSIVE'],
    ['54001', 'QUERY_TOO_EXPENSIVE'],
    ['53200', 'QUERY_TOO_EXPENSIVE'],
    ['53400', 'QUERY_TOO_EXPENSIVE'],
    ['22003', 'VALIDATION_FAILED'],
    ['22008', 'VALIDATION_FAILED'],
    ['42P01', undefined],
    ['53100', undefined],
  ])('the error %s is told as %s, without its text', async (state, code) => {
    const raised = test.database.queryHeavy(
      sql`DO ${sql.literal(`BEGIN RAISE EXCEPTION 'secret value' USING ERRCODE = '${state}'; END`)}`,
    )
    const error: unknown = await raised.catch((reason: unknown) => reason)
    const fault = toQueryFault(error)
    expect(fault?.code).toBe(code)
    expect(String(fault?.message)).not.toContain('secret')
  })
})

describe('heavy queries', () => {
  const makeService = () => ({
    database: test.database,
    shortReads: new ShortReads({
      world: realWorld,
      boundMs: 100,
      slowForMs: 10_000,
      atOnceMax: 16,
    }),
    semaphore: new Semaphore({
      world: realWorld,
      atOnceMax: 1,
      waitingMax: 1,
      waitingOfApplicationMax: 1,
      waitingOfCallerMax: 1,
      waitMs: 1_000,
    }),
  })
  const turn = { application: 'shop', caller: 'key', rank: 'key' } as const
  const heavy = { isHeavy: true, turn }

  it('a heavy query has bounds of time and of temporary space, and cannot write', async () => {
    const row = await runQuery(
      makeService(),
      {
        text: `SELECT current_setting('transaction_read_only') AS read_only,
          current_setting('temp_file_limit') AS space, current_setting('statement_timeout') AS time`,
        values: [],
      },
      heavy,
    )
    expect(row).toEqual({ read_only: 'on', space: '512MB', time: '15s' })
    const writing = runQuery(
      makeService(),
      { text: 'CREATE TABLE public.mine (a int4)', values: [] },
      heavy,
    )
    await expect(writing).rejects.toMatchObject({ code: '25006' })
  })

  it('a heavy query is cancelled in the database once nobody wants it, and leaves its slot to the next', async () => {
    const one = makeService()
    const gone = new AbortController()
    const { signal } = gone
    // Several seconds of work, of which no row comes before the end.
    const text = 'SELECT count(*) AS n FROM generate_series(1, 300000000) AS n'
    const given = { isHeavy: true, turn: { ...turn, getSignal: () => signal } }
    const running = runQuery(one, { text, values: [] }, given)
    const readSessions = () =>
      test.database.query(sql`
        SELECT pid FROM pg_catalog.pg_stat_activity
        WHERE query LIKE ${`%${text}`} AND state = 'active'`)
    const refused = expect(running).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await vi.waitFor(async () => expect(await readSessions()).toHaveLength(1))
    const waiting = runQuery(one, { text, values: [] }, given)
    const alsoRefused = expect(waiting).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    gone.abort()
    await Promise.all([refused, alsoRefused])
    expect(await readSessions()).toEqual([])
    expect(await runQuery(one, { text: 'SELECT 1 AS one', values: [] }, heavy)).toEqual({ one: 1 })
    const never = runQuery(one, { text, values: [] }, given)
    await expect(never).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await readSessions()).toEqual([])
  })

  it('a heavy query that is too much leaves its slot to the next', async () => {
    const one = makeService()
    // PostgreSQL's word for too much temporary space; filling it would take too long here.
    const text = `DO $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '53400'; END $$`
    await expect(runQuery(one, { text, values: [] }, heavy)).rejects.toMatchObject({
      code: 'QUERY_TOO_EXPENSIVE',
    })
    expect(await runQuery(one, { text: 'SELECT 1 AS one', values: [] }, heavy)).toEqual({ one: 1 })
  })
})

describe('lists', () => {
  const turn = { application: 'shop', caller: 'key', rank: 'key' } as const
  const makeService = () => ({
    database: test.database,
    shortReads: new ShortReads({ world: realWorld, boundMs: 100, slowForMs: 10_000, atOnceMax: 2 }),
    semaphore: new Semaphore({
      world: realWorld,
      atOnceMax: 4,
      waitingMax: 100,
      waitingOfApplicationMax: 100,
      waitingOfCallerMax: 100,
      waitMs: 10_000,
    }),
  })
  const quick = { text: 'SELECT 1 AS one', values: [] }
  const slow = {
    text: 'SELECT count(*) AS n FROM generate_series(1, 300000000) AS n',
    values: [],
  }

  it('a list that proves slow goes on by a slot, and is cancelled once nobody wants it', async () => {
    const one = makeService()
    const gone = new AbortController()
    const plain = { isHeavy: false, turn: { ...turn, getSignal: () => gone.signal } }
    const lists = Array.from({ length: 8 }, () => runQuery(one, slow, plain))
    const refused = Promise.all(
      lists.map((list) => expect(list).rejects.toMatchObject({ code: 'UNAVAILABLE' })),
    )
    await vi.waitFor(() => expect(one.semaphore.stats()).toEqual({ running: 2, waiting: 6 }))
    // Attempts held at most two connections, and hold none any more.
    const other = { isHeavy: false, turn: { ...turn, application: 'other' } }
    expect(await runQuery(one, quick, other)).toEqual({ one: 1 })
    gone.abort()
    await refused
    expect(one.semaphore.stats()).toEqual({ running: 0, waiting: 0 })
  })

  it('a list of a caller who had a slow one takes a slot until a list was quick in it', async () => {
    const one = makeService()
    const bySlot = vi.spyOn(one.semaphore, 'run')
    const plain = { isHeavy: false, turn }
    const sleeping = { text: 'SELECT pg_sleep(0.3) IS NULL AS one', values: [] }
    await runQuery(one, quick, plain)
    expect(bySlot).toHaveBeenCalledTimes(0)
    await runQuery(one, sleeping, plain)
    expect(bySlot).toHaveBeenCalledTimes(1)
    for (let time = 0; time < 3; time += 1) await runQuery(one, quick, plain)
    expect(bySlot).toHaveBeenCalledTimes(2)
    await runQuery(one, sleeping, plain)
    await runQuery(one, quick, { isHeavy: false, turn: { ...turn, application: 'other' } })
    expect(bySlot).toHaveBeenCalledTimes(3)
  })
})
