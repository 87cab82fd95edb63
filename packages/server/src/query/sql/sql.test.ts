import { readFileSync } from 'node:fs'
import { limits } from '@tollbase/contract/limits'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../base/fault.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import { compileQuery } from '../compile/compile-query.ts'
import { accepted } from './accepted.test-data.ts'
import { analyses } from './analyses.test-data.ts'
import { allStatements } from './draw-rows.test-support.ts'
import { parseSql, type SqlOptions } from './parse-sql.ts'
import { refused } from './refused.test-data.ts'
import { recursiveStatements, rowStatements } from './rows.test-data.ts'
import { declaredShapes, shapes } from './shapes.test-data.ts'
import { makeTypedTables, normalize } from './typed-tables.test-support.ts'
import { ways } from './ways.test-data.ts'

const now = Date.UTC(2024, 5, 1)
const caps = { rows: 10_000, bytes: 10_000_000 }

async function refusal(text: string, options: Partial<SqlOptions> = {}): Promise<Fault> {
  try {
    await parseSql(text, { now, parameters: {}, ...options })
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was refused')
}

function nest(times: number, around: (inner: string) => string): string {
  return Array.from({ length: times }).reduce<string>(around, 'a')
}

function list(count: number, between: string): string {
  return Array.from({ length: count }, (_, at) => `a${at}`).join(between)
}

/** A statement of so many tables, each of which is the one before it, and one more, with 128 columns each. */
const nestTables = (count: number): string => {
  const columns = Array.from({ length: 128 }, (_, at) => `a AS c${at}`).join(', ')
  const tables = Array.from({ length: count }, (_, at) => `, t${at + 1} AS (TABLE t${at})`)
  return `WITH t0 AS (SELECT ${columns} FROM app::c)${tables.join('')} SELECT count(*) AS n FROM t${count}`
}

describe('SQL that is not possible', () => {
  it.each(refused)(
    'a statement that is not possible is refused, naming the construct: %s',
    async (text, construct) => {
      const parameters = text.includes('$1') ? [] : {}
      const fault = await refusal(text, { parameters })
      expect(fault.code).toBe('VALIDATION_FAILED')
      expect(fault.message).toContain(construct)
      // A refusal of the whole has no place.
      if (!/ (is empty|is missing)/.test(fault.message))
        expect(fault.message).toMatch(/\(line \d+, column \d+\)$/)
      expect(fault.message).not.toMatch(/ (expr|func|predicate|constructor)\b|Stmt/)
    },
  )

  it.each(ways)('a refusal names the way: $refused', async ({ refused: text, way }) => {
    expect((await refusal(text)).message).toContain(way)
  })

  it.each([
    [
      'repeat',
      "SELECT id,\n  repeat(concat(title, 'é'), 999) AS x FROM app::c",
      { line: 2, column: 3 },
    ],
    ['replace', "SELECT id, replace(title, 'x', body) AS x FROM app::c", { line: 1, column: 12 }],
    [
      'a row',
      `SELECT ${Array.from({ length: 20 }, (_, at) => `concat(t${', t'.repeat(14)}) AS c${at}`).join(', ')} FROM app::c`,
      { line: 1, column: 8 },
    ],
  ])('%s that could be too large is refused with its place', async (what, text, place) => {
    const fault = await refusal(text)
    expect(fault.message).toContain(`more than could be held: ${what} could give`)
    expect(fault.details).toMatchObject(place)
  })

  it('a function whose last digits depend on the machine is refused in a view, which has no time of its statement', async () => {
    const inView = parseSql('SELECT sin(a) AS s FROM app::c', { now: undefined })
    await expect(inView).rejects.toThrow('sin, whose last digits depend on the machine, in a view')
    await expect(parseSql('SELECT sin(a) AS s FROM app::c', { now })).resolves.toBeDefined()
  })

  it('a statement is refused with its place in the text as it was sent', async () => {
    const fault = await refusal('SELECT Über, id,\n  pg_sleep(1) AS größe FROM app::c')
    expect(fault.details).toMatchObject({ line: 2, column: 3 })
  })

  it.each([
    [
      'characters',
      `SELECT 1${' '.repeat(limits.sqlCharsMax - 8)}`,
      `SELECT 1${' '.repeat(limits.sqlCharsMax - 7)}`,
    ],
    [
      'collections',
      `SELECT 1 AS n FROM ${Array.from({ length: limits.sqlSourcesMax }, (_, at) => `app::c${at}`).join(', ')}`,
      `SELECT 1 AS n FROM ${Array.from({ length: limits.sqlSourcesMax + 1 }, (_, at) => `app::c${at}`).join(', ')}`,
    ],
    [
      'uses of collections',
      Array.from({ length: limits.sqlSourceUsesMax }, () => 'SELECT id FROM app::c').join(
        ' UNION ALL ',
      ),
      Array.from({ length: limits.sqlSourceUsesMax + 1 }, () => 'SELECT id FROM app::c').join(
        ' UNION ALL ',
      ),
    ],
    [
      'operators of a chain',
      `SELECT ${Array.from({ length: limits.sqlLinksMax + 2 }, () => 'a').join(' + ')} AS n FROM app::c`,
      `SELECT ${Array.from({ length: limits.sqlLinksMax + 3 }, () => 'a').join(' + ')} AS n FROM app::c`,
    ],
    [
      'columns',
      `SELECT ${Array.from({ length: limits.sqlColumnsMax }, (_, at) => `1 AS c${at}`).join(', ')}`,
      `SELECT ${Array.from({ length: limits.sqlColumnsMax + 1 }, (_, at) => `1 AS c${at}`).join(', ')}`,
    ],
    [
      'things to group by',
      `SELECT count(*) AS n FROM app::c GROUP BY ${Array.from({ length: limits.sqlColumnsMax }, (_, at) => `a${at}`).join(', ')}`,
      `SELECT count(*) AS n FROM app::c GROUP BY ${Array.from({ length: limits.sqlColumnsMax + 1 }, (_, at) => `a${at}`).join(', ')}`,
    ],
    [
      'columns of all its queries together',
      nestTables(limits.sqlAllColumnsMax / 128 - 2),
      nestTables(limits.sqlAllColumnsMax / 128 - 1),
    ],
    [
      'values of an IN list',
      `SELECT 1 WHERE 1 IN (${Array.from({ length: limits.inListMax }, () => 1).join(',')})`,
      `SELECT 1 WHERE 1 IN (${Array.from({ length: limits.inListMax + 1 }, () => 1).join(',')})`,
    ],
    [
      'words and signs',
      `SELECT 1 WHERE ${Array.from({ length: limits.sqlWordsMax / 2 - 1 }, () => '1=1').join(' OR ')}`,
      `SELECT 1 WHERE ${Array.from({ length: limits.sqlWordsMax / 2 + 1 }, () => '1=1').join(' OR ')}`,
    ],
    [
      'words, signs and values',
      `SELECT 1 WHERE ${Array.from({ length: 2 }, () => `1 IN (${Array.from({ length: 6_138 }, () => 1).join(',')})`).join(' OR ')}`,
      `SELECT 1 WHERE ${Array.from({ length: 2 }, () => `1 IN (${Array.from({ length: 6_145 }, () => 1).join(',')})`).join(' OR ')}`,
    ],
    [
      'levels',
      `SELECT ${'-'.repeat(0)}${'abs('.repeat(60)}1${')'.repeat(60)}`,
      `SELECT ${'abs('.repeat(65)}1${')'.repeat(65)}`,
    ],
  ])('a statement with one more than the most %s is refused', async (_, most, tooMuch) => {
    await expect(parseSql(most, { now })).resolves.toBeDefined()
    expect((await refusal(tooMuch)).code).toBe('VALIDATION_FAILED')
  })

  it.each([
    [
      'operands that stand in several comparisons',
      (times: number) =>
        `SELECT ${nest(times, (inner) => `CASE WHEN ${inner} BETWEEN SYMMETRIC 'a' AND 'b' THEN 'x' END`)} AS x FROM app::c`,
    ],
    [
      'rows that are compared with rows',
      (times: number) =>
        `SELECT ${nest(times, (inner) => `((${inner}, 'a') IN (('b', 'c'), ('d', 'e')))::text`)} AS x FROM app::c`,
    ],
    [
      'a long expression that is compared with many',
      (times: number) =>
        `SELECT 1 FROM app::c WHERE ${list(10 * times, '||')} IN (${list(100 * times, ',')})`,
    ],
    [
      'a window that many columns use',
      (times: number) =>
        `SELECT ${Array.from({ length: 10 * times }, (_, at) => `sum(b) OVER w AS x${at}`).join(', ')} FROM app::c WINDOW w AS (PARTITION BY ${list(50 * times, ', ')})`,
    ],
  ])('few words that stand for very many parts are refused: %s', async (_, write) => {
    await expect(parseSql(write(2), { now })).resolves.toBeDefined()
    expect((await refusal(write(10))).message).toMatch(/too complex/)
  })

  it('a statement that the parser cannot take in is refused, and the next statement is read all the same', async () => {
    const sum = `SELECT ${Array.from({ length: 20_000 }, () => 1).join('+')}`
    const nested = `${'SELECT * FROM ('.repeat(3_000)}SELECT 1${') t'.repeat(3_000)}`
    for (const hostile of [sum, nested]) {
      expect((await refusal(hostile)).code).toBe('VALIDATION_FAILED')
      await expect(parseSql('SELECT 1', { now })).resolves.toBeDefined()
    }
  })

  it.each([
    ['a sum of 100 terms', Array.from({ length: 100 }, (_, at) => `a${at}`).join(' + ')],
    ['a text of 100 parts', Array.from({ length: 100 }, (_, at) => `'${at}'`).join(' || ')],
  ])('%s is possible, as it is one level to people', async (_, text) => {
    await expect(parseSql(`SELECT ${text} AS n FROM app::c`, { now })).resolves.toBeDefined()
  })

  it('a name in a join is of the only collection that can have it, where the schema of the others does not allow it', async () => {
    const has: Readonly<Record<string, readonly string[]>> = { 'app::o': ['id', 'customer'] }
    const lacks = (model: string, name: string) => has[model]?.includes(name) === false
    const join = (name: string) =>
      parseSql(`SELECT ${name} FROM app::o o JOIN app::c c ON o.customer = c.id`, { now, lacks })
    expect(await join('title')).toEqual(await join('c.title'))
    await expect(join('customer')).rejects.toThrow('whose it is; write o.customer')
    const both = { lacks: () => true }
    const neither = await refusal('SELECT x FROM app::o o, app::c c', both)
    expect(neither.message).toContain('whose it is')
  })

  it('a query that would become too long a statement is refused', async () => {
    const query = await parseSql(
      `SELECT ${'nullif(sqrt('.repeat(20)}x${'), 1)'.repeat(20)} AS y FROM app::c`,
      { now },
    )
    const compile = () =>
      compileQuery(query, { schema: 'app', caps, resolve: () => ({ schema: 'app', table: 'c' }) })
    expect(compile).toThrow('too complex')
  })
})

/**
 * Facts that the regression tests of PostgreSQL and DuckDB are about, with statements and values of our own: a statement
 * and its rows on each line.
 */
const facts: readonly {
  readonly sql: string
  readonly rows: readonly Record<string, unknown>[]
}[] = readFileSync(new URL('./facts.test-data.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line))

describe.each(listTestEngines())('%s: SQL', (engine) => {
  let test: TestDatabase
  let tables: Awaited<ReturnType<typeof makeTypedTables>>

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    tables = await makeTypedTables((text, values = []) =>
      test.database.query(sql.compiled(text, values)),
    )
  })
  afterAll(async () => test?.drop())

  it.each([...accepted, ...analyses, ...shapes, ...rowStatements, ...recursiveStatements])(
    'SQL gives what PostgreSQL gives over tables: %s',
    async (text) => {
      const expected = normalize(await tables.askPostgres(text), text)
      expect(normalize(await tables.answer(text, false), text)).toEqual(expected)
      expect(normalize(await tables.answer(text, true), text)).toEqual(expected)
    },
  )

  it.each(facts)('SQL and PostgreSQL give what is known of $sql', async ({ sql: text, rows }) => {
    const known = normalize(rows, text)
    expect(normalize(await tables.askPostgres(text), text)).toEqual(known)
    expect(normalize(await tables.answer(text, false), text)).toEqual(known)
  })

  it.each(ways)('the way that a refusal names is possible: $by', async ({ by }) => {
    const ours = normalize(await tables.answer(by, false), by)
    const theirs = await tables.askPostgres(by).catch(() => undefined)
    if (theirs !== undefined) expect(ours).toEqual(normalize(theirs, by))
  })

  it.each(declaredShapes)(
    'SQL over declared fields gives what PostgreSQL gives: %s',
    async (text) => {
      const expected = normalize(await tables.askPostgres(text), text)
      expect(normalize(await tables.answer(text, true), text)).toEqual(expected)
      await expect(tables.answer(text, false)).rejects.toThrow(/whose|neither|declared/)
    },
  )

  it('SQL gives what PostgreSQL gives for random statements, or refuses them', async () => {
    const outcomes: string[] = []
    await fc.assert(
      fc.asyncProperty(allStatements, fc.boolean(), async (text, isTyped) => {
        const { outcome, about } = await tables.compareWithPostgres(text, isTyped)
        outcomes.push(outcome)
        expect(outcome, about).not.toBe('wrong')
      }),
      // More of them, of any seed, are run by hand; findings are kept among the accepted ones.
      { numRuns: 150, seed: 7 },
    )
    expect(outcomes.filter((each) => each === 'same').length).toBeGreaterThan(75)
  }, 120_000)
})
