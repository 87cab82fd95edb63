import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { createTestCollection, createTestSchema } from '../test-collection.test-support.ts'
import { makeQueryRunner } from './test-sql.test-support.ts'

describe('lists as parameters', () => {
  let test: TestDatabase
  let ask: ReturnType<typeof makeQueryRunner>['ask']

  beforeAll(async () => {
    test = await createTestDatabase()
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    ask = makeQueryRunner(run).ask
    await createTestSchema(run, 'app')
    const bodies = [1, 2, 3, 4].map((id) => ({ body: JSON.stringify({ id }) }))
    await createTestCollection(run, 'app.people', bodies)
  })
  afterAll(async () => test?.drop())

  it('a list of values stands behind IN and = ANY, cast as it says, and an empty one has no value', async () => {
    const findIds = async (where: string, list: readonly unknown[]) => {
      const text = `SELECT id FROM app::people WHERE ${where} ORDER BY id`
      return (await ask(text, { parameters: [list] })).rows.map(({ id }) => id)
    }
    expect(await findIds('id = ANY ($1)', [1, 3])).toEqual([1, 3])
    expect(await findIds('id IN ($1)', [2, '3', null])).toEqual([2])
    expect(await findIds('id = ANY ($1::int[])', ['2', '3'])).toEqual([2, 3])
    expect(await findIds('id <> ALL ($1)', [1])).toEqual([2, 3, 4])
    expect(await findIds('id = ANY ($1)', [])).toEqual([])
    expect(await findIds('id NOT IN ($1)', [])).toEqual([1, 2, 3, 4])
  })

  it('a list stands nowhere else, holds plain values alone, and is bounded', async () => {
    const refusal = (text: string, parameters: unknown) => expect(ask(text, { parameters })).rejects
    await refusal('SELECT :a', { a: [] }).toThrow('the list a outside of IN')
    await refusal('SELECT 1 IN (:a)', { a: [[1]] }).toThrow('/params/a/0 must be')
    await refusal('SELECT 1 > ANY (:a)', { a: [1] }).toThrow('write = ANY')
    const most = Array<number>(limits.inListMax).fill(1)
    const { rows } = await ask('SELECT 1 IN (:a) AS x', { parameters: { a: most } })
    expect(rows).toEqual([{ x: true }])
    const more = { a: most, b: [1] }
    await refusal('SELECT 1 IN (:a) OR 1 IN (:b)', more).toThrow('more than 10000 values')
  })
})
