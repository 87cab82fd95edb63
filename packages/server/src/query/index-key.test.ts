import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { compileList } from './compile-list.ts'
import type { FieldPath } from './condition.ts'
import { compileIndex, printKeyExpression } from './index-key.ts'
import { type ListRequest, parseList } from './list-query.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
} from './test-collection.test-support.ts'

const digits = (count: number) =>
  Array.from({ length: count }, (_, at) => ((at * 7 + 3) % 9) + 1).join('')

/** Numbers that no double holds, as JSON spells them. */
const strangeNumbers = [
  `5.${'0'.repeat(500)}`,
  `5.${'0'.repeat(500)}1`,
  `-5.${'0'.repeat(500)}1`,
  `4.${'9'.repeat(600)}`,
  `0.${'0'.repeat(450)}1`,
  `-0.${'0'.repeat(450)}1`,
  '1e400',
  '-1e400',
  '1e401',
  '-1e401',
  '1e5000',
  '-1e5000',
  `${digits(131_000)}`,
  `-${digits(131_000)}`,
  `0.${digits(16_000)}`,
  `-${digits(9_000)}.${digits(9_000)}`,
  `1${'0'.repeat(400)}.5`,
  '9007199254740993',
  '9007199254740992.5',
  '1.7976931348623157e308',
  '1.7976931348623158e308',
  '1.8e308',
  '4e-324',
  '5e-324',
  '2.4703282292062327e-324',
  '0',
  '-0',
  '5',
  '-5',
  '1e1',
]
const doubles = [
  0,
  5,
  -5,
  10,
  5e-324,
  -5e-324,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  2 ** 53,
  4.999999999999999,
  5.000000000000001,
  1e-300,
]

describe.each(listTestEngines())('%s: the key of a field', (engine) => {
  let test: TestDatabase
  let run: RunSql

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
  })
  afterAll(async () => test?.drop())

  it('the key decides a comparison of any number with a double as the number itself does', async () => {
    const key = printKeyExpression(['f'])
    const signs = ['=', '<', '<=', '>', '>=']
    const differ = await run(
      `SELECT left(data::text, 60) AS data, operand, ${signs.map((sign) => `(${key}) ${sign} operand AS "${sign}"`).join(', ')}
       FROM unnest($1::jsonb[]) AS number(data), unnest($2::jsonb[]) AS double(operand)
       WHERE ${signs.map((sign) => `((${key}) ${sign} operand) IS DISTINCT FROM ((data -> 'f') ${sign} operand)`).join(' OR ')}`,
      [
        strangeNumbers.map((number) => `{"f": ${number}}`),
        doubles.map((each) => JSON.stringify(each)),
      ],
    )
    expect(differ).toEqual([])
  })

  it('the key sorts numbers that no double holds by their exact value', async () => {
    const exact = await run(
      `SELECT place::int4 AS place FROM unnest($1::numeric[]) WITH ORDINALITY AS n(value, place) ORDER BY value, place`,
      [strangeNumbers],
    )
    await createTestCollection(
      run,
      'app.strange',
      strangeNumbers.map((number, place) => ({ body: `{"f": ${number}, "place": ${place + 1}}` })),
    )
    const rows = await list({ sortBy: 'f', select: { place: true } }, 'strange')
    expect(rows).toEqual(exact)
  })

  it('the key never makes an insert fail, whatever JSON the indexed fields hold', async () => {
    const paths: FieldPath[] = [['f'], ['g'], ['h'], ['i', 'j']]
    await createTestCollection(run, 'app.wild', [])
    await createIndex({ table: 'wild', name: 'wild_composite', paths, method: 'btree' })
    for (const [at, path] of paths.entries())
      await createIndex({ table: 'wild', name: `wild_${at}`, paths: [path], method: 'hash' })
    // Not compressible, so that no entry fits into an index page by luck.
    const wide = Array.from({ length: 3_000 }, (_, at) =>
      String.fromCodePoint(0x20000 + ((at * 7919) % 40_000)),
    ).join('')
    const values = [
      ...strangeNumbers,
      JSON.stringify(wide),
      '""',
      'null',
      'true',
      '[]',
      '{}',
      `[${JSON.stringify(wide)}]`,
      `{"j":"${wide}"}`,
    ]
    const bodies = values.flatMap((each) => [
      `{"f":${each},"g":${each},"h":${each},"i":{"j":${each}}}`,
      `{"f":${JSON.stringify(wide)},"g":${each},"h":${JSON.stringify(wide)},"i":${each}}`,
    ])
    await run(
      `INSERT INTO app.wild SELECT leaf, 1, 1, leaf::text, false, NULL, body::jsonb, body FROM unnest($1::text[]) WITH ORDINALITY AS v(body, leaf)`,
      [bodies],
    )
    expect(await list({ find: { f: { is: wide } }, limit: 1000 }, 'wild')).toHaveLength(
      values.length + 1,
    )
  })

  it('the key lets the planner use an index for equality, lists, ranges, prefixes and sorting', async () => {
    const cities = ['Lima', 'Oslo', 'Rome', 'Bern', 'Wien']
    const bodies = fc.sample(fc.integer({ min: 0, max: 100_000 }), { numRuns: 10_000, seed: 3 })
    await createTestCollection(
      run,
      'app.big',
      bodies.map((amount, at) => ({
        body: JSON.stringify({
          amount,
          name: `n${amount}`,
          link: `https://example.com/${'p'.repeat(120)}/${amount}`,
          at: { city: cities[at % 5] },
        }),
      })),
    )
    const index = (name: string, method: 'btree' | 'hash', ...paths: FieldPath[]) =>
      createIndex({ table: 'big', name, paths, method })
    await index('big_amount', 'btree', ['amount'])
    await index('big_name', 'btree', ['name'])
    await index('big_link', 'hash', ['link'])
    await index('big_city_amount', 'btree', ['at', 'city'], ['amount'])
    await run('ANALYZE app.big')
    const used: [ListRequest, string][] = [
      [{ find: { amount: { is: 5 } } }, 'big_amount'],
      [{ find: { amount: { in: [5, 7, 'x'] } } }, 'big_amount'],
      [{ find: { amount: { between: [100, 300] } } }, 'big_amount'],
      [{ find: { amount: { greaterThan: 99_900 } } }, 'big_amount'],
      [{ find: { name: { is: 'n17' } } }, 'big_name'],
      [{ find: { name: { startsWith: 'n123' } } }, 'big_name'],
      [{ find: { name: { gte: 'n5', lt: 'n501' } } }, 'big_name'],
      [{ find: { link: { is: `https://example.com/${'p'.repeat(120)}/77` } } }, 'big_link'],
      [{ find: { at: { city: { is: 'Oslo' } }, amount: { lessThan: 500 } } }, 'big_city_amount'],
      [{ sortBy: 'amount', limit: 10 }, 'big_amount'],
      [{ sortBy: 'amount', sortDirection: 'descending', limit: 10 }, 'big_amount'],
      [{ find: { amount: { greaterThan: 50 } }, sortBy: 'amount', limit: 10 }, 'big_amount'],
      [{ find: { 'at.city': 'Oslo' }, limit: 10 }, 'big_city_amount'],
    ]
    for (const [request, name] of used)
      expect(await plan(request, 'big'), JSON.stringify(request)).toContain(name)
  })

  it('the key lets the planner find a record by its primary key through the key column', async () => {
    await createTestCollection(
      run,
      'app.keyed',
      Array.from({ length: 10_000 }, (_, at) => ({ body: `{"id":"k${at}"}`, key: `k${at}` })),
    )
    expect(await plan({ find: { id: { is: 'k77' } }, limit: 1 }, 'keyed', 'id')).toContain(
      'keyed_key',
    )
    expect(await plan({ find: { id: { in: ['k77', 'k78'] } } }, 'keyed', 'id')).toContain(
      'keyed_key',
    )
  })

  const createIndex = (index: {
    table: string
    name: string
    paths: readonly FieldPath[]
    method: 'btree' | 'hash'
  }) => run(compileIndex({ schema: 'app', ...index }).text)

  function compiled(request: ListRequest, table: string, primaryColumn?: string) {
    const caps = { rows: 100_000, bytes: 64 * 1024 * 1024 }
    const options = primaryColumn === undefined ? {} : { primaryColumn }
    return compileList(parseList(request), { schema: 'app', table, caps, total: false, ...options })
  }

  async function list(request: ListRequest, table: string): Promise<unknown[]> {
    const { text, values } = compiled(request, table)
    const [row] = await run(text, values)
    return JSON.parse(`[${row?.records}]`)
  }

  async function plan(
    request: ListRequest,
    table: string,
    primaryColumn?: string,
  ): Promise<string> {
    const { text, values } = compiled(request, table, primaryColumn)
    const lines = await run(`EXPLAIN ${text}`, values)
    return lines.map((line) => line['QUERY PLAN']).join('\n')
  }
})
