import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import {
  createTestCollection,
  createTestSchema,
  indexTestCollection,
} from '../test-collection.test-support.ts'
import { makeQueryRunner } from './test-sql.test-support.ts'

const long = 'x'.repeat(200)
const values: readonly unknown[] = [
  ...[null, true, false, 0, 1.5, '', 'a', '1.5', 'true', long, `${long}y`],
  ...[[], [1], [1, 'a'], {}, { a: 1 }, { a: 1, b: [2] }, { b: [2], a: 1 }],
]

describe.each(listTestEngines())('%s: constants of JSON', (engine) => {
  let test: TestDatabase
  let ask: ReturnType<typeof makeQueryRunner>['ask']

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    const run = (text: string, given: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, given))
    await createTestSchema(run, 'app')
    const bodies = values.map((a, id) => ({ body: JSON.stringify({ id, a }) }))
    await createTestCollection(run, 'app.c', bodies)
    await indexTestCollection(run, 'app.c', ['a'])
    ask = makeQueryRunner(run).ask
  })
  afterAll(async () => test?.drop())

  const print = (value: unknown) => `'${JSON.stringify(value)}'::jsonb`
  const listEqual = (wanted: readonly unknown[]) =>
    values.flatMap((value, id) =>
      value !== null && wanted.some((each) => isDeepStrictEqual(each, value)) ? [id] : [],
    )
  const find = async (condition: string) => {
    const { rows } = await ask(`SELECT id FROM app::c WHERE ${condition} ORDER BY id`)
    return rows.map(({ id }) => id)
  }

  it('a field equals a constant of JSON if it has that value, whatever its type and length', async () => {
    for (const value of values) {
      expect(await find(`a = ${print(value)}`), print(value)).toEqual(listEqual([value]))
      expect(await find(`${print(value)} = a`), print(value)).toEqual(listEqual([value]))
    }
    const others = values.filter((value) => value !== null && !isDeepStrictEqual(value, [1]))
    expect(await find(`a <> ${print([1])}`)).toEqual(listEqual(others))
  })

  it('IN takes constants of JSON of any type together', async () => {
    const wanted = [[1, 'a'], { a: 1 }, 'a', 1.5, true, `${long}y`]
    expect(await find(`a IN (${wanted.map(print).join(', ')})`)).toEqual(listEqual(wanted))
    expect(await find(`a IN (${print([])}, ${print({})})`)).toEqual(listEqual([[], {}]))
  })

  it('a constant of JSON orders with values of its type alone; lists and objects have no order', async () => {
    expect(await find(`a > ${print(1)}`)).toEqual(listEqual([1.5]))
    expect(await find(`a >= ${print('a')}`)).toEqual(listEqual(['a', 'true', long, `${long}y`]))
    expect(await find(`a > ${print(false)}`)).toEqual(listEqual([true]))
    expect(await find(`a >= ${print([1])}`)).toEqual([])
  })
})
