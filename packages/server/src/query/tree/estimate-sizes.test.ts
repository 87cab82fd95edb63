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
import { asJson, asText, countTextBytes } from './bytes.ts'
import { drawText } from './draw-text.test-support.ts'
import { computeColumnSizes, computeRowSizes } from './estimate-sizes.ts'

const now = Date.UTC(2024, 5, 1)
/** The bytes of each record, in the first of which a field takes nearly all. */
const recordBytes = 300
const numRuns = 400
const number = 131_072 + 16_383 + 2
const marked = `${'\\'.repeat(30)}${'"'.repeat(30)}${'\u0001'.repeat(14)}`
const records = [
  { a: 'ä-'.repeat(66) },
  { b: 'x'.repeat(200) },
  { c: marked },
  { list: [1, 'two', { '\u0001"\\': `ö${marked.slice(0, 50)}` }] },
  { a: 'ɐ', b: 'k'.repeat(30), c: '\n"', list: ['\\', ['"']] },
  { m: { p: marked.slice(0, 60), q: { r: 'ä"'.repeat(15), s: ['\\'.repeat(10)] } } },
].map((record) => ({ a: '', b: '', c: '', n: 3, list: [], m: {}, ...record }))

describe('sizes of texts', () => {
  let base: TestDatabase
  let run: RunSql
  beforeAll(async () => {
    base = await createTestDatabase()
    run = (statement, values = []) => base.database.query(sql.compiled(statement, values))
    await createTestSchema(run, 'app')
    await createTestCollection(
      run,
      'app.one',
      records.map((record) => ({ body: JSON.stringify(record) })),
    )
    const [longest] = await run('SELECT max(octet_length(data::text)) AS bytes FROM app.one')
    expect(longest?.bytes).toBeLessThanOrEqual(recordBytes)
  })
  afterAll(() => base.drop())

  test('a text is never larger than its estimate, however functions are nested', async () => {
    const { rows } = makeQueryRunner(run)
    let answered = 0
    await fc.assert(
      fc.asyncProperty(drawText(records.length), async (expression) => {
        // A name may stand in several queries inside each other: then it is of the innermost.
        const statement = `SELECT x FROM (SELECT ${expression} AS x FROM app::one) AS inner_one`
        const query = await parsed(statement)
        const [most] = query === undefined ? [] : computeSizes(query)
        if (query === undefined || most === undefined) return
        // The runner gives answers of at most 10 MB.
        if (most.json * records.length > 10_000_000) return
        const answer = await rows(query)
        answered += 1
        for (const row of answer.rows) {
          const text = String(row.x ?? '')
          expect(Buffer.byteLength(text), expression).toBeLessThanOrEqual(most.text)
          expect(Buffer.byteLength(JSON.stringify(text)), expression).toBeLessThanOrEqual(most.json)
        }
      }),
      { numRuns },
    )
    // Most are of a size that can be asked for.
    expect(answered).toBeGreaterThan(numRuns / 2)
  }, 300_000)

  test('a row of a recursion is bounded by its bytes as JSON, as they are what is estimated of it', async () => {
    const { ask } = makeQueryRunner(run)
    const most = Math.floor((limits.sqlRecursionRowBytesMax - 10) / 6)
    const askFor = (count: number) =>
      ask(`WITH RECURSIVE t AS (SELECT repeat(chr(1), ${count}) AS x, 1 AS n
 UNION ALL SELECT x, n + 1 FROM t WHERE n < 2) SELECT n FROM t ORDER BY n`)
    expect((await askFor(most)).rows).toEqual([{ n: 1 }, { n: 2 }])
    await expect(askFor(most + 1)).rejects.toThrow('tollbase_bound_size')
  })

  test('no letter grows by another case by more than a letter of two bytes that becomes one of three', async () => {
    const rows = await run(`SELECT char, other FROM (SELECT chr(code) AS char
 FROM generate_series(1, 1114111) AS code WHERE code NOT BETWEEN 55296 AND 57343) AS one,
 LATERAL (VALUES (lower(char)), (upper(char)), (initcap(char))) AS cases(other) WHERE other <> char`)
    expect(rows.length).toBeGreaterThan(2_000)
    const grown = rows.filter(({ char, other }) =>
      [asText, asJson].some(
        (way) => countTextBytes(String(other), way) > countTextBytes(String(char), way),
      ),
    )
    expect(grown).toEqual([])
  })
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

function computeSizes(query: Parsed): ReturnType<typeof computeColumnSizes> {
  return computeColumnSizes(query, { field: recordBytes, number })
}

describe('texts that would be larger than can be held', () => {
  const nestedIn = (depth: number, around: (inner: string) => string, inner = 'a') => {
    let expression = inner
    for (let at = 0; at < depth; at++) expression = around(expression)
    return expression
  }
  const nested = (depth: number, around: (inner: string) => string, inner = 'a') =>
    `SELECT ${nestedIn(depth, around, inner)} AS x FROM app::one`
  const many = (sign: string, count: number) => `'${sign.repeat(count)}'`
  /** All signs by which JSON writes a control character become control characters again. */
  const again = (inner: string) =>
    ['"', '\\', 'u', '0', '1', '[', ']'].reduce(
      (all, sign) => `replace(${all}, '${sign}', '\u0001')`,
      `jsonb_build_array(${inner})::text`,
    )
  const fields = (count: number, of: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => of(at)).join(', ')
  const fieldsObject = (count: number) =>
    `jsonb_build_object(${fields(count, (at) => `'f${at}', f${at}`)})`
  const gathered = (aggregate: string) => (inner: string) =>
    `(SELECT ${aggregate} FROM (SELECT ${inner} AS x FROM app::one) AS t)`
  const times = (count: number, inner: string) =>
    Array.from({ length: count }, () => inner).join(', ')
  const timesJoined = (count: number, inner: string) =>
    Array.from({ length: count }, () => inner).join(' || ')
  test.each([
    ['a list in a list as a text', nested(8, (inner) => `jsonb_build_array(${inner})::text`)],
    [
      'names of objects',
      nested(11, (inner) => `jsonb_build_object(${inner}, 1)::text`, many('\\', 30_000)),
    ],
    [
      'names of objects in sub-queries',
      nested(
        11,
        (inner) => `(SELECT jsonb_build_object(t.x, 1)::text FROM (SELECT ${inner} AS x) AS t)`,
        many('\\', 30_000),
      ),
    ],
    ['control characters, again and again', nested(6, again, many('\u0001', 1_000))],
    ['lists that are gathered', nested(6, gathered('jsonb_agg(t.x)::text'))],
    ['names that are gathered', nested(6, gathered('jsonb_object_agg(t.x, 1)::text'))],
    ['values that are gathered', nested(6, gathered('jsonb_object_agg(1, t.x)::text'))],
    ['texts that are gathered', nested(2, gathered(`string_agg(concat(${times(8, 't.x')}), '')`))],
    ['separators that are gathered', nested(5, gathered("string_agg('', t.x || t.x)"))],
    ['values of a window that are gathered', nested(6, gathered('jsonb_agg(t.x) OVER ()::text'))],
    ['the last of several', nested(5, gathered(`max(concat(${times(2, 't.x')}))`))],
    [
      'two columns that take turns',
      `SELECT t.x FROM ${nestedIn(6, (inner) => `(SELECT string_agg(t.x || t.y, '') AS x, string_agg(t.y || t.x, '') AS y FROM ${inner} AS t)`, '(SELECT a AS x, b AS y FROM app::one)')} AS t`,
    ],
    [
      'columns of a union of joins',
      `SELECT concat(${times(5, 't.x')}, ${times(6, 't.y')}, ${times(6, 't.z')}) AS x FROM (SELECT o.a AS x, p.a AS y, q.a AS z FROM app::one AS o, app::one AS p, app::one AS q UNION ALL SELECT a, b, c FROM app::two) AS t`,
    ],
    [
      'a table that is read twice',
      `WITH t AS (SELECT a, b FROM app::one) SELECT concat(${times(8, 't.a')}, ${times(9, 'u.b')}) AS x FROM t, t AS u`,
    ],
    [
      'letters that grow by their case',
      nested(25, (inner) => `replace(upper(${inner}), 'ⱯⱯ', 'ɐɐɐ')`, many('ɐ', 10_000)),
    ],
    [
      'numbers of JSON',
      `SELECT concat(${times(4, 'x')}) AS y FROM (SELECT '[${times(5_000, '1e-999')}]'::jsonb::text AS x) AS t`,
    ],
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
    [
      'a list in a list, an element of it as a text',
      nested(
        20,
        (inner) => `(jsonb_build_array(jsonb_build_array(${inner})) ->> 0)`,
        many('"', 30),
      ),
    ],
    [
      'an object in an object, by a path',
      nested(
        20,
        (inner) => `(jsonb_build_object('k', jsonb_build_array(${inner})) #>> '{k}')`,
        many('"', 30),
      ),
    ],
    [
      'elements of a list of lists as texts',
      nested(
        11,
        (inner) =>
          `(SELECT v FROM jsonb_array_elements_text(jsonb_build_array(jsonb_build_array(${inner}))) AS t(v))`,
        many('"', 30_000),
      ),
    ],
    [
      'members of an object as texts',
      nested(
        11,
        (inner) =>
          `(SELECT t.value FROM jsonb_each_text(jsonb_build_object('k', jsonb_build_array(${inner}))) AS t)`,
        many('"', 30_000),
      ),
    ],
    [
      'elements of a list, by numbers',
      `SELECT concat(${times(9, "a #>> '{b,0}'")}, ${times(8, "a #>> '{b,-1}'")}) AS x FROM app::one`,
    ],
    [
      'a field and a part of it',
      `SELECT concat(${times(9, 'a::text')}, ${times(8, "a ->> 'b'")}) AS x FROM app::one`,
    ],
    ['a length that is not known', 'SELECT lpad(a, n) AS x FROM app::one'],
    [
      'a length that is the least of texts',
      "SELECT repeat('a', CAST(least(a::text, '5') AS numeric)) AS x FROM app::one",
    ],
    [
      'a length that is the least of JSON values as a text',
      "SELECT lpad('a', CAST(least(a, 5) AS numeric)) AS x FROM app::one",
    ],
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
    [`SELECT ${fields(limits.sqlColumnsMax, (at) => `f${at}`)} FROM app::one`],
    ['SELECT lpad(a, 1000000, b) || rpad(a, least(n, 5)) AS x FROM app::one'],
    ['SELECT repeat(a, least(length(b), 10)::int) || lpad(a, 5::int) AS x FROM app::one'],
    [`SELECT ${fieldsObject(40)} AS x FROM app::one`],
    [`SELECT jsonb_agg(${fieldsObject(40)}) AS x FROM app::one`],
    [`SELECT concat_ws(' ', ${fields(99, (at) => `f${at}`)}) AS x FROM app::one`],
    [`SELECT concat_ws(' ', ${fields(99, (at) => `list ->> 'f${at}'`)}) AS x FROM app::one`],
    [
      `SELECT jsonb_build_object(${fields(20, (at) => `'f${at}', list -> 'a' ->> 'f${at}', 'g${at}', list #>> '{b,f${at}}'`)}) AS x FROM app::one`,
    ],
    [
      `SELECT jsonb_build_object(${fields(40, (at) => `'f${at}', e.value ->> 'f${at}'`)}) AS x FROM app::one, jsonb_array_elements(list) AS e(value)`,
    ],
    [`SELECT ${fields(limits.sqlColumnsMax, (at) => `f${at}::text AS c${at}`)} FROM app::one`],
    [
      `SELECT jsonb_build_object(${fields(15, (at) => `'t${at}', t.f${at}, 'u${at}', u.f${at}`)}) AS x FROM app::one AS t JOIN app::two AS u ON t.id = u.id`,
    ],
    [
      `WITH t AS (SELECT ${fields(40, (at) => `lower(f${at}) AS f${at}`)} FROM app::one) SELECT ${fieldsObject(40)} AS x FROM t`,
    ],
    [
      `SELECT ${fieldsObject(40)} AS x FROM (SELECT ${fields(40, (at) => `f${at}`)} FROM app::one UNION ALL SELECT ${fields(40, (at) => `g${at}`)} FROM app::two) AS t`,
    ],
    [
      `WITH RECURSIVE t AS (SELECT 1 AS n, ${fields(40, (at) => `f${at}`)} FROM app::one UNION ALL SELECT n + 1, ${fields(40, (at) => `f${at}`)} FROM t WHERE n < 3) SELECT ${fieldsObject(40)} AS x FROM t`,
    ],
    [nested(20, (inner) => `to_jsonb(${inner})::text`)],
    [`SELECT lower(concat(${times(16, 'a')})) AS x FROM app::one`],
    [
      `SELECT jsonb_build_object(${times(2, "'name', t.name, 'items', t.items")}) AS x FROM (SELECT name, jsonb_agg(${fieldsObject(12)}) AS items FROM app::one GROUP BY name) AS t`,
    ],
    [
      `SELECT jsonb_build_object('name', c.name, 'note', c.note::text, 'orders', (SELECT jsonb_agg(${fieldsObject(12)} || jsonb_build_object('items', (SELECT jsonb_agg(${fieldsObject(12)}) FROM app::items AS i))) FROM app::orders AS o)) AS x FROM app::customers AS c`,
    ],
    [
      `SELECT jsonb_agg(to_jsonb(t.line)) AS x FROM (SELECT concat_ws(', ', ${times(6, 'a::text')}) AS line FROM app::one) AS t`,
    ],
    [
      `WITH RECURSIVE t AS (SELECT id, name, parent, 1 AS level FROM app::one UNION ALL SELECT o.id, t.name || o.name, o.parent, t.level + 1 FROM app::one AS o JOIN t ON o.parent = t.id) SELECT jsonb_agg(jsonb_build_object('id', id, 'name', name, 'parent', parent)) AS x FROM t`,
    ],
  ])('a text that can be held is not refused: %s', async (statement) => {
    await expect(parseSql(statement, { now })).resolves.toBeDefined()
  })

  describe('over views, whose rows are larger than records', () => {
    const large = `SELECT id, concat(${times(16, 'a')}) AS x FROM app::one`
    const ask = async (view: string, statement: string) => {
      const sizes = computeRowSizes(await parseSql(view, { now }))
      return parseSql(statement, {
        now,
        sizesOf: (model) => (model === 'app::v' ? sizes : undefined),
        typesOf: () => new Map([['n', 'number']]),
      })
    }

    test.each([
      [large, 'SELECT concat(x, x) AS y FROM app::v'],
      [large, 'SELECT concat(t.x, t.x) AS y FROM (SELECT * FROM app::v) AS t'],
      [large, 'WITH t AS (SELECT * FROM app::v) SELECT concat(t.x, u.x) AS y FROM t, t AS u'],
      [large, 'SELECT concat(t.x, t.x) AS y FROM (TABLE app::one UNION ALL TABLE app::v) AS t'],
      [large, `SELECT ${fields(18, (at) => `x AS c${at}`)} FROM app::v`],
      [
        'SELECT a::numeric * b::numeric AS n FROM app::one',
        `SELECT concat(${times(2, `concat(${times(99, 'n')})`)}) AS y FROM app::v`,
      ],
      [
        `SELECT jsonb_build_object('a', concat(${times(15, 'a')})) AS x FROM app::one`,
        "SELECT concat(x -> 'a', x -> 'a') AS y FROM app::v",
      ],
    ])('a text that would be too large is refused: %s, %s', async (view, statement) => {
      await expect(ask(view, statement)).rejects.toThrow(/could give more than \d+ MiB/)
    })

    test.each([
      [
        `SELECT ${fields(40, (at) => `f${at}`)} FROM app::one`,
        `SELECT ${fieldsObject(40)} AS x FROM app::v`,
      ],
      [large, 'SELECT id, x, lower(x) AS y FROM app::v'],
      [large, 'SELECT * FROM app::v'],
      ['SELECT a::numeric AS n FROM app::one', `SELECT concat(${times(99, 'n')}) AS y FROM app::v`],
      ['SELECT * FROM app::one', `SELECT ${fieldsObject(40)} AS x FROM app::v`],
    ])('a text that can be held is not refused: %s, %s', async (view, statement) => {
      await expect(ask(view, statement)).resolves.toBeDefined()
    })
  })
})
