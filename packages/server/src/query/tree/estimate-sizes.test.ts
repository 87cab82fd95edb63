import { limits } from '@tollbase/contract/limits'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { parseSql } from '../sql/parse-sql.ts'
import { makeQueryRunner } from '../sql/test-sql.test-support.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
} from '../test-collection.test-support.ts'
import { computeColumnSizes } from './estimate-sizes.ts'

const now = Date.UTC(2024, 5, 1)
const fieldBytes = 200
const number = 131_072 + 16_383 + 2

/** Texts of any nesting over the fields of one record; most make texts longer. */
const { text } = fc.letrec<{ text: string; number: string }>((tie) => ({
  number: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('1', '3', '-2', '40', 'n'),
    tie('text').map((of) => `length(${of})`),
    tie('number').map((of) => `(${of}) * (${of})`),
  ),
  text: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom('a', 'b', 'c', 'list::text', "'ä'", "''", "'x-y'", `'${'\u0001'.repeat(50)}'`),
    fc.array(tie('text'), { minLength: 1, maxLength: 4 }).map((of) => `concat(${of.join(', ')})`),
    fc
      .array(tie('text'), { minLength: 2, maxLength: 4 })
      .map((of) => `concat_ws(${of.join(', ')})`),
    fc.tuple(tie('text'), tie('text')).map(([left, right]) => `(${left} || ${right})`),
    fc.tuple(tie('text'), tie('text'), tie('text')).map((of) => `replace(${of.join(', ')})`),
    fc.tuple(tie('text'), tie('text'), tie('text')).map((of) => `translate(${of.join(', ')})`),
    fc
      .tuple(tie('text'), tie('number'), tie('text'))
      .map((of) => `lpad(${of[0]}, least(400, ${of[1]}), ${of[2]})`),
    fc.tuple(tie('text'), tie('number')).map((of) => `left(${of.join(', ')})`),
    fc.tuple(tie('text'), tie('number'), tie('number')).map((of) => `substr(${of.join(', ')})`),
    fc.tuple(tie('text'), tie('text'), tie('number')).map((of) => `split_part(${of.join(', ')})`),
    fc.tuple(tie('text'), tie('text')).map((of) => `coalesce(${of.join(', ')})`),
    fc
      .tuple(tie('text'), tie('text'))
      .map(([yes, no]) => `CASE WHEN n > 1 THEN ${yes} ELSE ${no} END`),
    tie('text').map((of) => `upper(reverse(${of}))`),
    fc.tuple(tie('text'), tie('text')).map(([a, b]) => `(to_jsonb(${a}) || to_jsonb(${b}))::text`),
    fc
      .tuple(tie('text'), tie('text'))
      .map(([a, b]) => `jsonb_set(jsonb_build_object('k', ${a}), '{m}', to_jsonb(${b}))::text`),
    tie('text').map((of) => `(jsonb_build_array(${of}, 'x') - 'x')::text`),
    tie('text').map((of) => `(jsonb_build_object('k', ${of}, 'l', 1) #- '{l}')::text`),
    fc
      .tuple(tie('text'), tie('text'))
      .map(([a, b]) => `to_jsonb(ARRAY[(${a})::text] || (${b})::text)::text`),
    fc.tuple(tie('text'), tie('text')).map(([a, b]) => `(ARRAY[(${a})::text, (${b})::text])[2]`),
    tie('number').map((of) => `CAST(${of} AS text)`),
    tie('text').map((of) => `(SELECT ${of} FROM app::one LIMIT 1)`),
    tie('text').map((of) => `max(${of}) OVER ()`),
  ),
}))

describe('sizes of texts', () => {
  let base: TestDatabase
  let run: RunSql
  beforeAll(async () => {
    base = await createTestDatabase()
    run = (statement, values = []) => base.database.query(sql.compiled(statement, values))
    await createTestSchema(run, 'app')
    const record = {
      a: 'ä-'.repeat(66),
      b: 'x'.repeat(fieldBytes),
      c: '',
      n: 3,
      list: [1, 'two', { three: 'ö' }],
    }
    expect(Buffer.byteLength(JSON.stringify(record.a))).toBeLessThanOrEqual(fieldBytes)
    await createTestCollection(run, 'app.one', [{ body: JSON.stringify(record) }])
  })
  afterAll(() => base.drop())

  test('a text is never larger than its estimate, however functions are nested', async () => {
    const { rows } = makeQueryRunner(run)
    let answered = 0
    await fc.assert(
      fc.asyncProperty(text, async (expression) => {
        // A name may stand in several queries inside each other: then it is of the innermost.
        const statement = `SELECT x FROM (SELECT ${expression} AS x FROM app::one) AS inner_one`
        const query = await parsed(statement)
        const [most] = query === undefined ? [] : computeSizes(query)
        if (query === undefined || most === undefined) return
        const [row] = (await rows(query)).rows
        answered += 1
        expect(Buffer.byteLength(String(row?.x ?? '')), expression).toBeLessThanOrEqual(most)
      }),
      { numRuns: 400 },
    )
    // Most are of a size that can be asked for.
    expect(answered).toBeGreaterThan(200)
  }, 120_000)
})

type Parsed = Awaited<ReturnType<typeof parseSql>>

/** Undefined where it is refused: windows have no place in each other, and what is too large is none of this test. */
async function parsed(statement: string): Promise<Parsed | undefined> {
  try {
    return await parseSql(statement, { now })
  } catch {
    return undefined
  }
}

function computeSizes(query: Parsed): readonly number[] {
  return computeColumnSizes(query, { field: fieldBytes, number })
}

describe('texts that would be larger than can be held', () => {
  const nested = (depth: number, around: (inner: string) => string) => {
    let expression = 'a'
    for (let at = 0; at < depth; at++) expression = around(expression)
    return `SELECT ${expression} AS x FROM app::one`
  }
  const times = (count: number, inner: string) =>
    Array.from({ length: count }, () => inner).join(', ')
  const timesJoined = (count: number, inner: string) =>
    Array.from({ length: count }, () => inner).join(' || ')
  test.each([
    ['to_jsonb in to_jsonb', nested(8, (inner) => `to_jsonb(${inner})::text`)],
    ['replace in replace', nested(4, (inner) => `replace(${inner}, '1', '${'1'.repeat(10)}')`)],
    ['replace by a field', "SELECT replace(a, 'x', b) AS x FROM app::one"],
    [
      'replace of what is not known',
      `SELECT replace(a, b, '${'y'.repeat(100)}') AS x FROM app::one`,
    ],
    ['concat in concat', nested(5, (inner) => `concat(${times(3, inner)})`)],
    [
      'concat in sub-queries',
      `SELECT concat(${times(9, 'x')}) AS y FROM (SELECT concat(${times(9, 'a')}) AS x FROM app::one) t`,
    ],
    [
      'concat in WITH',
      `WITH t AS (SELECT concat(${times(9, 'a')}) AS x FROM app::one) SELECT concat(${times(9, 'x')}) AS y FROM t`,
    ],
    [
      'concat in a union',
      `SELECT concat(${times(9, 'x')}) AS y FROM (SELECT 'a' AS x FROM app::one UNION SELECT concat(${times(9, 'a')}) FROM app::one) t`,
    ],
    [
      'the length of what is too large',
      `SELECT length(concat(${times(17, 'a')})) AS n FROM app::one`,
    ],
    ['a condition on it', `SELECT a FROM app::one WHERE concat(${times(17, 'a')}) = b`],
    ['an order by it', `SELECT a FROM app::one ORDER BY concat(${times(17, 'a')})`],
    ['a group by it', `SELECT count(*) AS n FROM app::one GROUP BY concat(${times(17, 'a')})`],
    [
      'what is gathered of it',
      `SELECT string_agg(concat(${times(17, 'a')}), ',') AS n FROM app::one`,
    ],
    [
      'what is gathered, put together',
      `SELECT concat(${times(17, "string_agg(a, ',')")}) AS n FROM app::one`,
    ],
    [
      '|| of JSON in sub-queries',
      `SELECT ${timesJoined(9, 'x')} AS y FROM (SELECT ${timesJoined(9, 'to_jsonb(a)')} AS x FROM app::one) t`,
    ],
    ['|| of JSON, one past', `SELECT ${timesJoined(16, 'to_jsonb(a)')} AS y FROM app::one`],
    ['jsonb_set in jsonb_set', nested(17, (inner) => `jsonb_set(${inner}, '{a}', to_jsonb(b))`)],
    ['ARRAY, one past', `SELECT ARRAY[${times(16, 'a')}] AS y FROM app::one`],
    ['arrays joined', `SELECT ${timesJoined(16, 'ARRAY[a]')} AS y FROM app::one`],
    ['what is appended to an array', `SELECT ARRAY[${times(15, 'a')}] || a AS y FROM app::one`],
    ['separators', `SELECT concat_ws(a, ${times(20, "'x'")}) AS n FROM app::one`],
    ['a length that is not known', 'SELECT lpad(a, n) AS x FROM app::one'],
    ['a length that is too large', 'SELECT length(rpad(a, 20000000)) AS n FROM app::one'],
    [
      'a row',
      `SELECT ${Array.from({ length: 20 }, (_, at) => `concat(${times(15, 'a')}) AS c${at}`).join(', ')} FROM app::one`,
    ],
  ])(
    'a text that would be too large is refused before it is made: %s',
    async (_what, statement) => {
      await expect(parseSql(statement, { now })).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
        details: { field: '/sql', problem: expect.stringMatching(/could give more than \d+ MiB/) },
      })
    },
  )

  test.each([
    ["SELECT replace(left(a, 1000), 'x', left(b, 1000)) AS x FROM app::one"],
    ["SELECT replace(a, ' ', '&nbsp;') AS x FROM app::one"],
    ["SELECT a || ' ' || b || ', ' || lower(list ->> 'city') AS x FROM app::one"],
    [`SELECT concat(${times(16, 'a')}) AS x FROM app::one`],
    [`SELECT ${timesJoined(15, 'to_jsonb(a)')} AS y FROM app::one`],
    [nested(14, (inner) => `jsonb_set(${inner}, '{a}', '"text"')`)],
    [`SELECT ARRAY[${times(15, 'a')}] AS y FROM app::one`],
    [
      `SELECT ${Array.from({ length: limits.sqlColumnsMax }, (_, at) => `f${at}`).join(', ')} FROM app::one`,
    ],
    ['SELECT lpad(a, 1000000, b) || rpad(a, least(n, 5)) AS x FROM app::one'],
  ])('a text that can be held is not refused: %s', async (statement) => {
    await expect(parseSql(statement, { now })).resolves.toBeDefined()
  })
})
