import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import { makeFieldColumn, printFieldColumn } from '../field-column.ts'
import { parseSql } from '../sql/parse-sql.ts'
import { makeQueryRunner, testNow } from '../sql/test-sql.test-support.ts'
import { createTestCollection, createTestSchema } from '../test-collection.test-support.ts'
import type { ValueType } from '../tree/query.ts'
import { compileQuery } from './compile-query.ts'

const long = 'x'.repeat(127)
/** Values of every kind in every field, and texts around the length at which columns are cut. */
const values = [
  ...['"a"', '"b"', '""', '"5"', '"true"', `"${long}"`, `"${long}x"`, `"${long}xy"`, `"${long}y"`],
  ...['0', '1', '1.0', '-1.5', '5', '1e21', '123456789012345678901234567890.5'],
  ...['true', 'false', 'null', '[1]', '{"x":1}'],
]
const bodies = values.flatMap((value, at) => [
  `{"id":${at},"t":${value},"n":${value},"b":${value}}`,
  `{"id":${at + 100}}`,
])
const types = new Map<string, ValueType>([
  ['t', 'text'],
  ['n', 'number'],
  ['b', 'boolean'],
])
const columns = new Map(
  [...types].flatMap(([name, type]) => {
    const column = makeFieldColumn([name], type)
    return column === undefined ? [] : [[name, column] as const]
  }),
)
const literals = values
  .filter((value) => !/^[n[{]/.test(value))
  .map((value) => value.replaceAll('"', "'"))
const field = fc.constantFrom('t', 'n', 'b')
const literal = fc.constantFrom(...literals)
const sign = fc.constantFrom('=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM')
const test = fc.oneof(
  fc.tuple(field, sign, literal).map(([name, is, value]) => `${name} ${is} ${value}`),
  fc.tuple(literal, sign, field).map(([value, is, name]) => `${value} ${is} ${name}`),
  fc
    .tuple(field, fc.uniqueArray(literal, { minLength: 1, maxLength: 3 }))
    .map(([name, list]) => `${name} IN (${list.join(', ')})`),
  fc.tuple(field, literal, literal).map(([name, a, b]) => `${name} BETWEEN ${a} AND ${b}`),
)

describe.each(listTestEngines())('%s: comparisons by the columns of fields', (engine) => {
  let database: TestDatabase
  let ask: ReturnType<typeof makeQueryRunner>['ask']
  let askColumns: typeof ask

  beforeAll(async () => {
    database = await createTestDatabase(engine)
    const run = (text: string, given: readonly unknown[] = []) =>
      database.database.query(sql.compiled(text, given))
    await createTestSchema(run, 'app')
    await createTestCollection(
      run,
      'app.c',
      bodies.map((body) => ({ body })),
    )
    for (const column of columns.values())
      await run(`ALTER TABLE app.c ADD COLUMN ${printFieldColumn(column)}`)
    ask = makeQueryRunner(run).ask
    askColumns = makeQueryRunner(run, columns).ask
  })
  afterAll(async () => database?.drop())

  it('are true, false and NULL for the same records as by their JSON', async () => {
    await fc.assert(
      fc.asyncProperty(test, fc.boolean(), async (condition, isDeclared) => {
        const text = `SELECT id, (${condition}) AS v FROM app::c WHERE (${condition}) IS NOT TRUE OR NOT (${condition}) OR (${condition}) ORDER BY id`
        const declared = isDeclared ? types : undefined
        const run = (by: typeof ask) =>
          by(text, { now: testNow, typesOf: () => declared }).then(
            ({ rows }) => rows,
            (error: unknown) => String(error),
          )
        const byJson = await run(ask)
        expect(await run(askColumns), condition).toEqual(byJson)
      }),
      { numRuns: 300 },
    )
  })

  it.each([
    ['n > 4', true],
    ['n IN (1, 2)', true],
    ["t = 'a'", true],
    ["t < 'b'", true],
    ['b = true', true],
    [`t = '${long}x'`, false],
    ['id = 4', false],
  ])('%s reads the column: %s', async (condition, isRead) => {
    const query = await parseSql(`SELECT id FROM app::c WHERE ${condition}`, {
      now: testNow,
      typesOf: () => types,
    })
    const compile = (more: object) =>
      compileQuery(query, {
        schema: 'app',
        caps: { rows: 100, bytes: 10_000 },
        resolve: () => ({ schema: 'app', table: 'c', fieldColumns: columns, ...more }),
      }).text.split('WHERE')
    const where = compile({ filterColumns: columns }).slice(1).join()
    expect(/"f_\w+" IS NOT NULL AND/.test(where)).toBe(isRead)
  })
})
