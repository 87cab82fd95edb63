import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Slots } from '../../base/slots.ts'
import { realWorld } from '../../base/world.ts'
import { sql } from '../../database/sql.ts'
import { type TestDatabase, withTestDatabase } from '../../database/testing.ts'
import { queryFault, runQuery } from './run-query.ts'

let test: TestDatabase
beforeAll(async () => {
  const readOnly = { temporaryKbMax: limits.queryTemporaryKbMax }
  test = await withTestDatabase(undefined, { readOnly })
})
afterAll(() => test?.drop())

describe('what PostgreSQL says of a query that is too much', () => {
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
  ])('%s is told as %s, without its text', async (state, code) => {
    const raised = test.database.execute(
      sql`DO ${sql.literal(`BEGIN RAISE EXCEPTION 'secret value' USING ERRCODE = '${state}'; END`)}`,
    )
    const error: unknown = await raised.catch((reason: unknown) => reason)
    const fault = queryFault(error)
    expect(fault?.code).toBe(code)
    expect(String(fault?.message)).not.toContain('secret')
  })
})

describe('a heavy query', () => {
  const service = () => ({
    queryDatabase: test.database,
    querySlots: new Slots({ world: realWorld, atOnceMax: 1, waitingMax: 1, waitMs: 1_000 }),
  })

  it('has bounds of time and of temporary space, and cannot write', async () => {
    const row = await runQuery(
      service(),
      {
        text: `SELECT current_setting('transaction_read_only') AS read_only,
          current_setting('temp_file_limit') AS space, current_setting('statement_timeout') AS time`,
        values: [],
      },
      true,
    )
    expect(row).toEqual({ read_only: 'on', space: '512MB', time: '15s' })
    const writing = runQuery(
      service(),
      { text: 'CREATE TABLE public.mine (a int4)', values: [] },
      true,
    )
    await expect(writing).rejects.toMatchObject({ code: '25006' })
  })

  it('that is too much leaves its slot to the next', async () => {
    const one = service()
    // PostgreSQL's word for too much temporary space; filling it would take too long here.
    const text = `DO $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '53400'; END $$`
    await expect(runQuery(one, { text, values: [] }, true)).rejects.toMatchObject({
      code: 'QUERY_TOO_EXPENSIVE',
    })
    expect(await runQuery(one, { text: 'SELECT 1 AS one', values: [] }, true)).toEqual({ one: 1 })
  })
})
