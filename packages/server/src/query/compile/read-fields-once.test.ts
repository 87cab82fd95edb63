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

/** Values of every kind in every field: a schema may have been declared after they were stored. */
const value = fc.oneof(
  fc.constantFrom('a', 'b', '', '5', '2024-05-01T10:00:00Z', 'x'.repeat(200)),
  fc.constantFrom(0, 1, -1.5, 5, 1e21),
  fc.boolean(),
  fc.constantFrom(null, [1, 'a'], { x: 1 }),
)
const record = fc.record(
  { t: value, n: value, b: value, at: value, k: value },
  { requiredKeys: [] },
)
const records = fc.sample(record, { numRuns: 120, seed: 11 })
/** Digits that a double does not keep; equal numbers that are spelt differently. */
const spelt = ['1.0', '1', '1e0', '0.10', '123456789012345678901234567890.5'].map(
  (number) => `{"t":"a","n":${number},"b":true,"k":${number}}`,
)

const types = new Map<string, ValueType>([
  ['t', 'text'],
  ['n', 'number'],
  ['b', 'boolean'],
  ['at', 'timestamp'],
])

const fieldColumns = new Map(
  [...types].flatMap(([name, type]) => {
    const column = makeFieldColumn([name], type)
    return column === undefined ? [] : [[name, column] as const]
  }),
)

const names = ['t', 'n', 'b', 'at', 'k']
const group = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...names.map((name) => `x.${name}`)) },
  fc.constantFrom('lower(x.t)', 'coalesce(x.n, 0)', 'x.k IS NULL', 'x.t = x.k'),
)
const aggregate = fc.oneof(
  fc.constantFrom('count(*)', 'sum(x.n)', 'avg(x.n)', 'sum(x.n * 2) + sum(x.n)', 'bool_and(x.b)'),
  fc.constantFrom('min(x.k)', 'max(x.k)', 'min(x.t)', 'max(x.at)', 'count(DISTINCT x.k)'),
  fc.constantFrom(
    "string_agg(x.t, ',' ORDER BY x.t, x.t::text)",
    'jsonb_agg(x.k ORDER BY x.k, x.k::text)',
    "sum(x.n) FILTER (WHERE x.t = 'a')",
    'count(x.n) FILTER (WHERE x.k > 1 OR x.k IS NULL)',
    "count(*) FILTER (WHERE x.t LIKE 'x%')",
    'sum(CASE WHEN x.b THEN x.n ELSE 1 END)',
    'count(y.k)',
    'sum(y.n)',
  ),
)
const having = fc.constantFrom('count(*) > 1', 'max(x.n) > 0', 'min(x.k) IS NOT NULL', 'true')
const from = fc.constantFrom(
  'app::many AS x JOIN app::few AS y ON x.k = y.k',
  'app::many AS x LEFT JOIN app::few AS y ON x.t = y.t',
  'app::many AS x LEFT JOIN (SELECT k, n FROM app::few) AS y ON x.k = y.k WHERE x.n IS NOT NULL',
)
const statement = fc.record({
  sets: fc.constantFrom('', '', 'ROLLUP', 'CUBE'),
  groups: fc.uniqueArray(group, { maxLength: 3 }),
  aggregates: fc.uniqueArray(aggregate, { minLength: 1, maxLength: 4 }),
  having,
  from,
})

describe.each(listTestEngines())('%s: readFieldsOnce', (engine) => {
  let test: TestDatabase
  let ask: ReturnType<typeof makeQueryRunner>['ask']
  /** Reads tables whose fields have columns, of the types that may be declared. */
  let askColumns: typeof ask

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    const bodies = [...records.map((each) => JSON.stringify(each)), ...spelt]
    const versions = bodies.map((body) => ({ body }))
    await createTestCollection(run, 'app.many', versions)
    await createTestCollection(run, 'app.few', versions.slice(100))
    for (const column of fieldColumns.values())
      for (const table of ['many', 'few'])
        await run(`ALTER TABLE app.${table} ADD COLUMN ${printFieldColumn(column)}`)
    ask = makeQueryRunner(run).ask
    askColumns = makeQueryRunner(run, fieldColumns).ask
  })
  afterAll(async () => test?.drop())

  it('a grouped query gives what it gives where its fields are read at each use', async () => {
    await fc.assert(
      fc.asyncProperty(statement, fc.boolean(), async (asked, isTyped) => {
        const declared = isTyped ? types : undefined
        const columns = [...asked.groups, ...asked.aggregates].map(
          (each, at) => `${each} AS v${at}`,
        )
        const list = asked.groups.join(', ')
        const groups = asked.sets === '' ? list : `${asked.sets} (${list})`
        const text = (more: string) =>
          `SELECT ${columns.join(', ')} FROM ${asked.from}${list === '' ? '' : ` GROUP BY ${groups}`} HAVING ${asked.having}${more}`
        // A sub-query that a query has beside its aggregates leaves the fields where they are.
        const isTrue = ' AND (SELECT count(*) FROM app::few) > 0'
        const run = async (by: typeof ask, more: string) => {
          const { rows } = await by(text(more), { now: testNow, typesOf: () => declared })
          return rows.map((row) => JSON.stringify(row)).sort()
        }
        const often = await run(ask, isTrue)
        expect(await run(ask, '')).toEqual(often)
        expect(await run(askColumns, ''), 'by the columns of fields').toEqual(often)
        expect(await run(askColumns, isTrue), 'by columns, at each use').toEqual(often)
      }),
      { numRuns: 100, examples: [[kept, true]] },
    )
  })

  it('a declared field holds for all purposes what an undeclared one holds, where all values are of its type', async () => {
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    const shape = fc.record(
      {
        t: fc.constantFrom('a', 'b', '', 'x'.repeat(200), null),
        n: fc.constantFrom(0, 1, -1.5, 5, 1e21, null),
        b: fc.constantFrom(true, false, null),
        k: fc.constantFrom(1, 2, 'a', null),
      },
      { requiredKeys: [] },
    )
    const bodies = fc.sample(shape, { numRuns: 80, seed: 5 }).map((each) => JSON.stringify(each))
    await createTestCollection(
      run,
      'app.conforming',
      [...bodies, ...spelt].map((body) => ({ body })),
    )
    const texts = names
      .filter((name) => name !== 'at')
      .flatMap((name) => [
        `SELECT ${name} AS v, count(*) AS c, count(${name}) AS d, min(${name}) AS e, max(${name}) AS f FROM app::conforming GROUP BY ${name} ORDER BY ${name}`,
        `SELECT ${name} AS v, k FROM app::conforming WHERE ${name} IS NULL OR ${name} = ${name} ORDER BY ${name} DESC, k`,
        `SELECT count(*) AS c, count(DISTINCT ${name}) AS d FROM app::conforming`,
        `SELECT x.${name} AS v, count(*) AS c FROM app::conforming AS x JOIN app::few AS y ON x.${name} = y.${name} GROUP BY x.${name} ORDER BY v`,
      ])
    for (const text of texts) {
      const [declared, undeclared] = await Promise.all(
        [types, undefined].map((all) => ask(text, { now: testNow, typesOf: () => all })),
      )
      // As values: a declared number is printed without zeros at its end.
      expect(declared?.rows, text).toEqual(undeclared?.rows)
    }
  })

  it('the statement reads a field of a row once, in the sub-query', async () => {
    const query = await parseSql(
      'SELECT t, count(*) AS c, sum(n) AS s, avg(n) AS a, min(n) AS l, max(n) AS m FROM app::many GROUP BY t',
      { now: testNow, typesOf: () => types },
    )
    const { text } = compileQuery(query, {
      schema: 'app',
      caps: { rows: 100, bytes: 10_000 },
      resolve: () => ({ schema: 'app', table: 'many' }),
    })
    // One test of the type, and one value.
    expect(text.match(/data -> 'n'/g)).toHaveLength(2)
    expect(text.match(/data -> 't'/g)).toHaveLength(1)
  })
})

const kept = {
  sets: '',
  groups: ['x.t', 'lower(x.t)'],
  aggregates: ['sum(x.n)', 'avg(x.n)', 'min(x.k)'],
  having: 'count(*) > 1',
  from: 'app::many AS x LEFT JOIN app::few AS y ON x.t = y.t',
}
