import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import { compileQuery } from '../compile/compile-query.ts'
import { findPassedBound } from '../run-bound.ts'
import {
  createTestCollection,
  createTestSchema,
  indexTestCollection,
  type RunSql,
} from '../test-collection.test-support.ts'
import { aggregates, windowFunctions } from '../tree/aggregates.ts'
import { functions } from '../tree/functions/all-functions.ts'
import type { ParameterKind } from '../tree/functions/function-definition.ts'
import { listRowFunctions } from '../tree/functions/row.ts'
import { collectQuerySources } from '../tree/query-sources.ts'
import { parseSql } from './parse-sql.ts'
import { castTypes } from './read-cast.ts'
import { makeQueryRunner, testNow } from './test-sql.test-support.ts'

const wild: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  5e-324,
  123456789012,
  '',
  'a',
  'true',
  '5',
  '-1.5e3',
  '1e999',
  'NaN',
  'Infinity',
  '2024-02-29',
  '2023-02-29',
  '2024-02-31T10:00:00Z',
  '9999-12-31T23:59:59.999999999-14:59',
  '1000-01-01T00:00:00+14:00',
  '0000-00-00',
  '10.0.0.1',
  '::1',
  '999.1.1.1',
  '\\',
  '%',
  '(',
  '\u{10ffff}',
  'x'.repeat(3_000),
  [],
  [1, 'a', null],
  {},
  { x: { y: 1 } },
]

const kinds: Readonly<Record<ParameterKind, readonly string[]>> = {
  json: ['a', 'b'],
  number: ['a', 'b', '-3', '1e300'],
  text: ['a', 'b'],
  boolean: ['a'],
  timestamp: ['a', 'b'],
  date: ['a::date'],
  interval: ["interval '1 day'"],
  printable: ['a', 'b', '1'],
  same: ['a', 'b'],
  time: ['a', 'b'],
  unit: ["'month'"],
  amount: ['a', 'b', '1e300'],
  'read json': ['a', 'b', "'[1]'"],
  document: ['a', 'b', `'{"x": [1, null]}'`],
  block: ["'10.0.0.0/8'"],
  'time format': ["'YYYY-MM-DD HH24:MI:SS.US Q J'"],
  'date format': ["'DD.MM.YYYY'", "'YYYYMMDD'"],
  'moment format': ["'YYYY-MM-DD HH24:MI:SS'"],
  'number format': ["'FM$999,990.00'", "'S0G9D99%'", `'999PR" each"'`],
  zone: ["'Europe/Vienna'", "'utc'"],
  pattern: ["'(a|5)+?(.*)'", "'x*'"],
  flags: ["'gi'", "''"],
  'case flag': ["'i'", "''"],
  path: ["'{x,y}'", "'{0}'", "'{}'"],
  template: ["'100 %%'"],
}

/** Lists calls with every kind of argument in every place, and one with fewer arguments where that is allowed. */
function listCalls(
  name: string,
  given: { readonly parameters: readonly ParameterKind[]; readonly optional?: number },
): readonly string[] {
  const { parameters, optional = 0 } = given
  const longest = Math.max(1, ...parameters.map((kind) => kinds[kind].length))
  const full = Array.from({ length: longest }, (_, turn) =>
    parameters.map((kind, at) => kinds[kind][(turn + at) % kinds[kind].length] ?? 'a'),
  )
  const short = optional === 0 ? [] : full.map((args) => args.slice(0, args.length - optional))
  return [...full, ...short].map((args) => `${name}(${args.map(boundedIn(name)).join(', ')})`)
}

/** Replacements and lengths must be bounded, or the whole could be too large to be held. */
function boundedIn(name: string): (argument: string, at: number) => string {
  return (argument, at) => {
    if (name === 'replace' && at === 2 && /^\w+$/.test(argument)) return `left(${argument}, 3)`
    if (name === 'array_to_string')
      return at === 0 ? `string_to_array(left(${argument}, 9), 'x')` : `left(${argument}, 3)`
    if (name === 'timezone' && at === 1) return `${argument}::timestamptz`
    if (name === 'regexp_replace' && at === 2) return `left(${argument}, 3)`
    if (name === 'repeat' && at === 0 && /^\w+$/.test(argument)) return `left(${argument}, 9)`
    return /^([lr]pad|repeat)$/.test(name) && at === 1 ? `least(${argument}, 3000)` : argument
  }
}

const people = [
  '{"id":1,"Name":"Ann","age":30,"tags":["x","y"],"address":{"city":"Graz","zip":8010},"price":1.10}',
  '{"id":2,"Name":"Bob","age":"30","tags":[],"address":{"city":"Wien"},"price":2.250}',
  '{"id":3,"Name":null,"age":null,"tags":"x","address":"none","at":"2024-05-31T22:00:00-04:00"}',
  '{"id":4,"age":5,"value":7,"tags":[1],"price":0.1}',
]

describe.each(listTestEngines())('%s: SQL over records', (engine) => {
  let test: TestDatabase
  let run: RunSql
  let ask: ReturnType<typeof makeQueryRunner>['ask']

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    ask = makeQueryRunner(run).ask
    await createTestSchema(run, 'app')
    await createTestCollection(
      run,
      'app.wild',
      wild.flatMap((a, at) =>
        wild
          .filter((_, other) => (at + other) % 9 === 0)
          .map((b) => ({ body: JSON.stringify({ a, b }) })),
      ),
    )
    await createTestCollection(
      run,
      'app.people',
      people.map((body) => ({ body })),
    )
    await createTestCollection(run, 'app.versions', [
      { body: '{"id":1,"n":1}', key: '1', supersededBy: 1 },
      { body: '{"id":1,"n":2}', key: '1' },
      { body: '{"id":2,"n":3}', key: '2', deleted: true },
    ])
  })
  afterAll(async () => test?.drop())

  it('SQL never fails by what a record holds: every function of any value', async () => {
    const withWords = new Set(['extract', 'position'])
    const calls = [...functions]
      .filter(([name]) => !withWords.has(name))
      .flatMap(([name, definition]) => listCalls(name, definition))
    const columns = calls.map((call, at) => `${call} AS c${at}`)
    const operators = ['+', '-', '*', '/', '%', '||', '->', '->>', '@>', '<@', '?'].map(
      (sign) => `a ${sign} b`,
    )
    const more = [
      ...operators,
      'a ?| ARRAY[b::text, NULL]',
      'a ?& string_to_array(b, NULL)',
      "array_to_string(ARRAY[a::numeric, b::numeric], ', ', 'none')",
      "a SIMILAR TO '(a|5)%'",
      ...['->', '->>'].map((sign) => `a ${sign} 0`),
      ...[...castTypes.keys()].filter((type) => type !== 'interval').map((type) => `a::${type}`),
      "a::timestamp + interval '5 years'",
      "a::timestamp - interval '99999 years 99999 months 99999 weeks'",
      "a::timestamp + interval '1 year' * b",
      "a::timestamp - interval '1000 years' - interval '1000 years' - interval '1000 years' * b",
      "interval '1 month 1 day 1 second' * a",
      "interval '1 month 1 day 1 second' / b",
      "- (interval '1 month' * a) + interval '1 day' * b",
      'a::date - 1000000 - 1000000 - 1000000',
      'a::date + 1000000 + 1000000 + b',
      "date_trunc('millennium', a::timestamp - interval '900 years') - interval '3000 years'",
      "date_bin(interval '1 day' * b, a, b)",
      "format('%s and %1$L%% %s', a, b)",
      '(string_to_array(left(a, 9), b))[2]',
      "a #> '{x,y}'",
      "a #>> '{0}'",
      'age(a, b) * 1e6',
      'a::timestamp - b::timestamp',
      'a::date - b::date',
      'a::date + 5',
      'extract(week FROM a)',
      'position(a IN b)',
      'extract(epoch FROM a::timestamp - b::timestamp)',
      "a LIKE '%'",
      "a ~ 'a|5'",
      'to_jsonb(a) || to_jsonb(b)',
      "a::jsonb || '[1]'",
      "a::jsonb - 'x'",
      'a::jsonb - (b::text)',
      'a::jsonb - 1',
      'a::jsonb - (b::numeric)',
      "a::jsonb #- '{x,y}'",
      "a::jsonb #- '{}'",
      "a #- '{0,x}'",
      "a #- '{y}'",
      "jsonb_set(a, '{x,y,z}', to_jsonb(b))",
      "jsonb_set(a, '{-1}', b, false)",
      "jsonb_set(a, '{3,x}', '1')",
      'ARRAY[a, b]',
      'ARRAY[a::numeric] || b::numeric',
      'ARRAY[a::text, b::text] || ARRAY[b::text]',
      '(ARRAY[a::timestamp, b::timestamp])[2]',
      '(ARRAY[a::date, b::date])[1] + 1',
      'ARRAY[a] @> ARRAY[b]',
      'ARRAY[a] = ARRAY[b]',
      'to_timestamp(a, \'YYYYMMDD"T"HH24MISS\')',
    ].map((expression, at) => `${expression} AS m${at}`)
    const comparisons = ['=', '<>', '<', '<=', '>', '>='].flatMap((sign) => [
      `a ${sign} b`,
      `a ${sign} 5`,
      `a ${sign} 'a'`,
      `a ${sign} true`,
      `a ${sign} now()`,
    ])
    const all = [...columns, ...more, ...comparisons.map((each, at) => `${each} AS k${at}`)]
    for (let at = 0; at < all.length; at += 60) {
      const { rows } = await ask(`SELECT ${all.slice(at, at + 60).join(', ')} FROM app::wild`)
      expect(rows.length).toBeGreaterThan(100)
    }
  })

  it('SQL never fails by what a record holds: every function in FROM', async () => {
    const called: Readonly<Record<string, string>> = {
      generate_series:
        'generate_series(least(greatest(a, 0), 50), greatest(least(b, 90), -9), round(greatest(least(a, 3), -3)))',
    }
    for (const name of listRowFunctions()) {
      const call = called[name] ?? `${name}(a)`
      const { rows } = await ask(
        `SELECT count(*) AS n, count(x) AS m FROM app::wild LEFT JOIN ${call} WITH ORDINALITY AS t (x, y) ON true`,
      )
      expect(rows).toHaveLength(1)
    }
    const times = "generate_series(a::timestamp, b::timestamp, interval '1000 years')"
    expect((await ask(`SELECT count(*) AS n FROM app::wild, ${times} t`)).rows).toHaveLength(1)
  })

  it('a function in FROM that would make too many rows ends the statement, and says what to do', async () => {
    const ways = [
      'SELECT count(*) AS n FROM app::people p, generate_series(1, p.age * 10000) s',
      'SELECT count(*) AS n FROM app::people p, generate_series(p.age, p.age + 1, 0.000001) s',
      "SELECT count(*) AS n FROM app::people p, generate_series(timestamp '2024-01-01', p.at::timestamp, interval '1 second') s",
      "SELECT count(*) AS n FROM generate_series(timestamp '2024-01-01', timestamp '2025-01-01', interval '1 second') s",
    ]
    for (const text of ways) {
      const error = await ask(text).catch((each: unknown) => each)
      expect(findPassedBound(error)).toContain('narrow its bounds')
    }
    const most = 'SELECT count(*) AS n FROM app::people p, generate_series(1, p.age * 3333) s'
    expect((await ask(most)).rows).toEqual([{ n: 99990 + 16665 }])
  })

  it.each([
    ['SELECT 1 AS n UNION ALL SELECT n + 1 FROM t', '1,000 steps'],
    ['SELECT 1 AS n UNION SELECT n + 1 FROM t', '100,000 rows'],
    ['SELECT n FROM generate_series(1, 1000) n UNION ALL SELECT t.n FROM t', '100,000 rows'],
    ["SELECT repeat('x', 500) AS n UNION SELECT n || n FROM t", 'a row of more than 1 MiB'],
    ["SELECT repeat('x', 9) AS n UNION ALL SELECT left(n || n, 900000) || 'x' FROM t", '64 MiB'],
    [
      'SELECT p.id AS n FROM app::people p UNION ALL SELECT p.id FROM app::people p, t',
      '100,000 rows',
    ],
  ])(
    'a recursion without an end ends the statement, and says what to do: %s',
    async (text, words) => {
      const whole = `WITH RECURSIVE t AS (${text}) SELECT count(*) AS c FROM t`
      const error = await ask(whole).catch((each: unknown) => each)
      expect(findPassedBound(error)).toContain(words)
    },
  )

  it('a recursion takes as many steps and rows as it may, never fewer', async () => {
    const count = async (text: string) =>
      (await ask(`WITH RECURSIVE t AS (${text}) SELECT count(*) AS c FROM t`)).rows[0]?.c
    expect(await count('SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 1000')).toBe(1_000)
    expect(await count('SELECT 1 AS n UNION SELECT n + 1 FROM t WHERE n < 100000')).toBe(100_000)
  })

  it('distances of lists of numbers are those of pgvector, and NULL for anything else', async () => {
    const lists = [
      [1, 2, 3],
      [-4.5, 0, 1e3],
      [0, 0, 0],
      [1e90, 1, 1],
      [1e200, 1, 1],
      [1e-120, 1, 1],
      [1e-99, 0, -1e98],
      [0.5, -1, 2],
      [1, 2],
      [],
      [1, 'a', 3],
      'x',
      null,
    ]
    const given = [0.5, -1, 2]
    const run = `SELECT x <-> $1 AS l2, x <=> $1 AS cosine, x <#> $1 AS negative, inner_product(x, $1) AS inner, l2_distance($1, x) AS turned, cosine_distance(x, '[0.5, -1, 2]') AS same
 FROM jsonb_array_elements('${JSON.stringify(lists)}') WITH ORDINALITY AS t (x, n) ORDER BY n`
    const { rows } = await ask(run, { parameters: [JSON.stringify(given)] })
    const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0)
    lists.forEach((list, at) => {
      const row = rows[at]
      const isOutside = [1e200, 1e-120].some((each) => Array.isArray(list) && list[0] === each)
      if (!Array.isArray(list) || list.length !== 3 || list.includes('a') || isOutside) {
        expect(Object.values(row ?? {})).toEqual(Array.from({ length: 6 }, () => null))
        return
      }
      const vector = list.map(Number)
      const dot = sum(vector.map((each, place) => each * (given[place] ?? 0)))
      const size = (of: readonly number[]) => Math.hypot(...of)
      const l2 = size(vector.map((each, place) => each - (given[place] ?? 0)))
      const cosine = size(vector) === 0 ? null : 1 - dot / (size(vector) * size(given))
      const near = (value: unknown, wanted: number) =>
        expect(Math.abs(Number(value) - wanted)).toBeLessThanOrEqual(Math.abs(wanted) * 1e-12)
      near(row?.l2, l2)
      near(row?.turned, l2)
      near(row?.inner, dot)
      near(row?.negative, -dot)
      for (const value of [row?.cosine, row?.same])
        if (cosine === null) expect(value).toBe(null)
        else expect(Number(value)).toBeCloseTo(cosine, 10)
    })
  })

  it('the nearest rows are rows of one collection, priced as such', async () => {
    const near = "SELECT id FROM app::t ORDER BY embedding <-> '[1, 2]' LIMIT 3"
    expect(collectQuerySources(await parseSql(near, { now: testNow }))).toMatchObject([
      { kind: 'rows', used: { filter: [], sort: ['embedding'], select: ['id'] } },
    ])
  })

  it('an element of a list that is null is NULL', async () => {
    const { rows } = await ask(
      "SELECT e IS NULL AS n, e FROM jsonb_array_elements('[null, 1]') e ORDER BY 1",
    )
    expect(rows).toEqual([
      { n: false, e: 1 },
      { n: true, e: null },
    ])
  })

  it('SQL reads the lists of records, row by row', async () => {
    const { rows } = await ask(
      'SELECT p.id, tag FROM app::people p, unnest(p.tags) AS tag ORDER BY p.id, tag',
    )
    expect(rows).toEqual([
      { id: 1, tag: 'x' },
      { id: 1, tag: 'y' },
      { id: 4, tag: 1 },
    ])
    const given = { parameters: { list: ['b', 'a'], none: [] } }
    const texts = 'SELECT x FROM unnest(:list) x UNION ALL SELECT y FROM unnest(:none) y ORDER BY 1'
    expect((await ask(texts, given)).rows).toEqual([{ x: 'a' }, { x: 'b' }])
  })

  it('SQL never fails by what a record holds: every aggregate, alone and over a window', async () => {
    const plain = [...aggregates].filter(
      ([, { ordered, within, windowless }]) => !(ordered || within || windowless),
    )
    const calls = plain.flatMap(([name, definition]) =>
      listCalls(name, definition).filter((call) => !call.includes('1e300')),
    )
    const single = [
      ...calls,
      'first(a ORDER BY b)',
      'approx_count_distinct(a)',
      'median(a)',
      "median(interval '1 day' * b)",
      'mode() WITHIN GROUP (ORDER BY a)',
      'percentile_disc(0.3) WITHIN GROUP (ORDER BY a DESC)',
      'percentile_cont(0.3) WITHIN GROUP (ORDER BY a)',
      'percentile_cont(1) WITHIN GROUP (ORDER BY a * b)',
    ]
    const { rows } = await ask(
      `SELECT ${single.map((call, at) => `${call} AS c${at}`).join(', ')} FROM app::wild`,
    )
    expect(rows).toHaveLength(1)
    const far = "a::timestamp - interval '1500 years'"
    const over = [
      ...calls,
      ...[...windowFunctions].flatMap(([name, definition]) => listCalls(name, definition)),
    ].map((call, at) => `${call} OVER (PARTITION BY b ORDER BY a) AS c${at}`)
    const ranges = [
      'sum(a) OVER (ORDER BY a RANGE BETWEEN 1e300 PRECEDING AND 0.5 FOLLOWING)',
      `count(*) OVER (ORDER BY ${far} RANGE interval '1500 years' PRECEDING)`,
      `count(*) OVER (ORDER BY a RANGE BETWEEN CURRENT ROW AND interval '1500 years' FOLLOWING)`,
    ].map((call, at) => `${call} AS r${at}`)
    const all = [...over, ...ranges].join(', ')
    expect((await ask(`SELECT ${all} FROM app::wild`)).rows.length).toBeGreaterThan(100)
  })

  it('SQL keeps the case of names and the digits of numbers', async () => {
    const { text } = await ask('SELECT id, Name, name, price, o.Name AS "Other" FROM app::people O')
    expect(text.split('},')[0]).toBe('{"id":1,"Name":"Ann","name":null,"price":1.10,"Other":"Ann"')
    expect((await ask('SELECT Value, value FROM app::people WHERE id = 4')).rows).toEqual([
      { Value: null, value: 7 },
    ])
  })

  it('SQL gives whole records as they were stored, with more members put to them', async () => {
    expect((await ask('SELECT * FROM app::people')).text).toBe(people.join(','))
    expect((await ask('SELECT *, age AS price FROM app::people WHERE id = 1')).text).toBe(
      '{"id":1,"Name":"Ann","age":30,"tags":["x","y"],"address":{"city":"Graz","zip":8010},"price":30}',
    )
  })

  it.each([
    ['dotted names go into objects', 'address.city', ['Graz', 'Wien', null, null]],
    ['arrows go into objects and lists', "address -> 'zip'", [8010, null, null, null]],
    ['arrows count in lists', 'tags ->> 0', ['x', null, null, '1']],
    ['a value of another type is unequal, not converted', "age = '30'", [false, true, null, false]],
    ['and neither less nor greater', 'age < 100', [true, false, null, true]],
    ['where a number is needed it counts as NULL', 'age + 1', [31, null, null, 6]],
    ['a cast converts', 'age::int + 1', [31, 31, null, 6]],
    ['an impossible cast is NULL', 'Name::int', [null, null, null, null]],
    ['null and missing are both NULL', 'Name IS NULL', [false, false, true, true]],
    ['division by zero is NULL', 'age / 0', [null, null, null, null]],
    ['membership of a list', "includes(tags, 'x')", [true, false, null, false]],
    ['times are UTC', 'at::timestamp', [null, null, '2024-06-01T02:00:00Z', null]],
    ['now is given', 'now()', Array(4).fill('2024-06-01T00:00:00Z')],
    ['today is given', 'current_date', Array(4).fill('2024-06-01')],
    ['decimals are exact', 'price * 3', [3.3, 6.75, null, 0.3]],
    ['a null among comparisons', 'age IN (5, NULL)', [null, null, null, true]],
    ['a comparison with a JSON null', 'age < NULL::jsonb', Array(4).fill(null)],
    ['and of a number', 'age + 1 <> NULL::json', Array(4).fill(null)],
    ['a comparison with what has no type', 'age + 1 > coalesce(NULL)', Array(4).fill(null)],
    ['no group of rows', 'ntile(0) OVER ()', Array(4).fill(null)],
    ['no width of buckets', 'width_bucket(id, 2, 2, 4)', Array(4).fill(null)],
    ['no number of buckets', 'width_bucket(id, 0, 4, id - 3)', [null, null, null, 2]],
    ['a root of what is negative', '(id - 3) ^ 0.5', [null, null, 0, 1]],
    ['a zero below a line', '(id - 3) ^ -1', [-0.5, -1, null, 1]],
    ['a power beyond all doubles', '10 ^ (id + 305) < 0', [false, false, false, null]],
    ['no row of a window', 'nth_value(id, -1) OVER ()', Array(4).fill(null)],
    ['nor by a fraction', 'nth_value(id, 0.5) OVER ()', Array(4).fill(null)],
    ['a length that is not known', 'substr(Name, 1, age)', ['Ann', null, null, null]],
    ['a date is its midnight', "at > date '2024-06-01'", [null, null, true, null]],
    ['and equals no other time', "at = date '2024-06-01'", [null, null, false, null]],
    [
      'also beside others',
      "coalesce(at, date '2024-06-01')",
      [
        '2024-06-01T00:00:00Z',
        '2024-06-01T00:00:00Z',
        '2024-06-01T02:00:00Z',
        '2024-06-01T00:00:00Z',
      ],
    ],
    [
      'days that are not known',
      "date '2024-06-01' + age",
      ['2024-07-01', null, null, '2024-06-06'],
    ],
  ])('SQL means what is documented: %s', async (_, expression, expected) => {
    const { rows } = await ask(`SELECT ${expression} AS v FROM app::people ORDER BY id`)
    expect(rows.map((row) => row.v)).toEqual(expected)
  })

  it('SQL sums decimals exactly and gives the least in the order of sortBy', async () => {
    const { text } = await ask(
      'SELECT sum(price) AS s, min(age) AS l, max(age) AS m, avg(price) AS a FROM app::people',
    )
    expect(text).toBe('{"s":3.45,"l":"30","m":30,"a":1.15}')
  })

  it('a median is the middle one, or the mean of two; a count of distinct values is exact by both names', async () => {
    const { rows } = await ask(
      'SELECT median(price) AS m, approx_count_distinct(age) AS a, count(DISTINCT age) AS c FROM app::people',
    )
    expect(rows).toEqual([{ m: 1.1, a: 3, c: 3 }])
  })

  it('SQL takes values for parameters, as values only', async () => {
    const byName = { n: 5, text: "x' OR '1' = '1" }
    const named = 'SELECT id, :text AS t FROM app::people WHERE age = :n AND :n < 6'
    expect((await ask(named, { parameters: byName })).rows).toEqual([{ id: 4, t: byName.text }])
    const numbered = 'SELECT $2 AS t FROM app::people WHERE id = $1 LIMIT $3'
    expect((await ask(numbered, { parameters: [2, null, 1] })).rows).toEqual([{ t: null }])
    const values = Array.from({ length: limits.sqlParametersMax }, () => 1)
    expect((await ask('SELECT $1000 AS n', { parameters: values })).rows).toEqual([{ n: 1 }])
    await expect(ask('SELECT 1', { parameters: [...values, 1] })).rejects.toThrow('/params has')
    await expect(ask('SELECT :a', { parameters: {} })).rejects.toThrow('/params/a is missing')
    await expect(ask('SELECT 1', { parameters: { a: 1 } })).rejects.toThrow('/params/a is not')
    await expect(ask('SELECT :a', { parameters: { a: {} } })).rejects.toThrow('/params/a must be')
  })

  it('SQL groups and sorts by what is constant, also by parameters', async () => {
    for (const value of [true, false, null, 1, 'x'])
      for (const clause of ['GROUP BY $1', 'HAVING true ORDER BY $1'])
        expect(
          (await ask(`SELECT count(*) AS n FROM app::people ${clause}`, { parameters: [value] }))
            .rows,
        ).toEqual([{ n: 4 }])
    for (const word of ['NULL', 'true', "'x'"])
      expect((await ask(`SELECT id FROM app::people ORDER BY ${word}`)).rows).toHaveLength(4)
  })

  it('SQL sees the latest versions, or all where history is asked for', async () => {
    expect((await ask('SELECT n FROM app::versions')).rows).toEqual([{ n: 2 }])
    expect((await ask('SELECT n FROM app::versions', { history: true })).rows).toHaveLength(3)
  })

  it('SQL goes by the index of a field where it compares, joins or sorts by it', async () => {
    const many = Array.from({ length: 2_000 }, (_, at) => ({ body: `{"k":${at},"s":"v${at}"}` }))
    await createTestCollection(run, 'app.many', many)
    await indexTestCollection(run, 'app.many', ['k', 's'])
    const plan = async (text: string) => {
      const query = await parseSql(text, { now: testNow })
      const { text: statement, values } = compileQuery(query, {
        schema: 'app',
        caps: { rows: 10, bytes: 1_000 },
        resolve: (model) => ({ schema: 'app', table: model.split('::').at(-1) ?? '' }),
      })
      const lines = await run(`EXPLAIN (COSTS OFF) ${statement}`, values)
      return lines.map((line) => line['QUERY PLAN']).join('\n')
    }
    expect(await plan('SELECT k FROM app::many WHERE k = 5')).toContain('many_0')
    expect(await plan('SELECT k FROM app::many WHERE k BETWEEN 5 AND 9')).toContain('many_0')
    expect(await plan("SELECT k FROM app::many WHERE s IN ('v1', 'v2')")).toContain('many_1')
    expect(await plan("SELECT k FROM app::many WHERE s LIKE 'v19%'")).toContain('many_1')
    expect(await plan('SELECT k FROM app::many ORDER BY k LIMIT 5')).toContain('many_0')
    const join = 'SELECT p.id FROM app::people p JOIN app::many m ON m.k = p.id WHERE p.id = 1'
    expect(await plan(join)).toContain('many_0')
  })
})

describe('the sources of a query', () => {
  const sources = async (text: string) =>
    collectQuerySources(await parseSql(text, { now: testNow }))
  const used = (filter: string[], sort: string[], select: string[] | 'all') => ({
    filter,
    sort,
    select,
  })

  it('the sources of a query tell the fields that a row query uses, and for what', async () => {
    expect(
      await sources(
        "SELECT a, lower(b.c) AS x FROM app::t WHERE d > 1 AND e LIKE 'x%' ORDER BY f, a",
      ),
    ).toMatchObject([
      { model: 'app::t', kind: 'rows', used: used(['d', 'e'], ['f', 'a'], ['a', 'b.c']) },
    ])
    expect(await sources('SELECT * FROM app::t WHERE d = 1')).toMatchObject([
      { model: 'app::t', kind: 'rows', used: used(['d'], [], 'all') },
    ])
  })

  it.each([
    'SELECT count(*) AS n FROM app::t',
    'SELECT DISTINCT a FROM app::t',
    'SELECT a FROM app::t GROUP BY a',
    'SELECT a, row_number() OVER () AS n FROM app::t',
    'SELECT a FROM (SELECT a FROM app::t) x',
    'SELECT a FROM app::t UNION ALL SELECT a FROM app::t',
    'WITH x AS (SELECT a FROM app::t) SELECT a FROM x',
    'SELECT a FROM app::t WHERE EXISTS (SELECT 1 FROM app::t u)',
    'SELECT x.a FROM app::t x JOIN app::t y ON x.a = y.a',
    'SELECT 1 AS n FROM app::t, app::t u',
  ])('the sources of a query say that everything else is derived: %s', async (text) => {
    expect((await sources(text)).map((source) => source.kind)).toContain('derived')
    expect((await sources(text)).map((source) => source.kind)).not.toContain('rows')
  })

  it('the sources of a query find a field through sub-queries and common tables, under whatever name', async () => {
    const inner = used(['a', 'secret'], ['a'], 'all')
    expect(
      await sources('SELECT a AS x FROM (SELECT * FROM app::t) q WHERE q.secret = 1'),
    ).toMatchObject([
      { model: 'app::t', kind: 'derived', used: { ...inner, filter: ['secret'], sort: [] } },
    ])
    expect(
      await sources('WITH w AS (SELECT * FROM app::t) SELECT a FROM w ORDER BY a'),
    ).toMatchObject([{ model: 'app::t', kind: 'derived', used: used([], ['a'], 'all') }])
    expect(
      await sources('SELECT x FROM (SELECT secret AS x FROM app::t) q WHERE x = 1'),
    ).toMatchObject([
      { model: 'app::t', kind: 'derived', used: used(['secret'], ['secret'], ['secret']) },
    ])
    expect(await sources('SELECT tag FROM app::t, unnest(tags) AS tag')).toMatchObject([
      { model: 'app::t', kind: 'derived', used: used(['tags'], ['tags'], ['tags']) },
    ])
    expect(
      await sources('SELECT q.n FROM app::t, LATERAL (SELECT t.secret AS n) q ORDER BY n'),
    ).toMatchObject([
      { model: 'app::t', kind: 'derived', used: used(['secret'], ['secret'], ['secret']) },
    ])
    const recursive =
      'WITH RECURSIVE w AS (SELECT a FROM app::t WHERE b = 1 UNION ALL SELECT u.c FROM w JOIN other::u u ON u.d = w.a) SELECT count(*) AS n FROM w'
    expect(await sources(recursive)).toMatchObject([
      { model: 'app::t', kind: 'derived', used: used(['b', 'a'], ['a'], ['a']) },
      { model: 'other::u', kind: 'derived', used: used(['d', 'c'], ['c'], ['c']) },
    ])
    expect(
      await sources('SELECT 1 AS n FROM app::t WHERE a IN (SELECT b FROM other::u WHERE c > 1)'),
    ).toMatchObject([
      { model: 'app::t', kind: 'derived', used: used(['a'], [], []) },
      { model: 'other::u', kind: 'derived', used: used(['c', 'b'], ['b'], ['b']) },
    ])
  })
})
