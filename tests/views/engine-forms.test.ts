import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  createTestDatabase,
  type TestDatabase,
} from '../../packages/server/src/database/testing.ts'
import { parseAggregate } from '../../packages/server/src/query/aggregate-request.ts'
import { parseFieldPath } from '../../packages/server/src/query/field-path.ts'
import { compileIndex } from '../../packages/server/src/query/index-key.ts'
import { parseSql } from '../../packages/server/src/query/sql/parse-sql.ts'
import type { Query } from '../../packages/server/src/query/tree/query.ts'
import { planView } from '../../packages/server/src/views/view-program.ts'
import { makeChance } from './engine-chance.ts'
import { begin, bring, checkFill, type EngineView, runQuery, settle } from './engine-check.ts'
import { type EnginePlace, makeEnginePlace, runStatements } from './engine-place.ts'
import { collections, makeBlockSource, toWrites } from './records.ts'

/** The queries that cannot be kept by changes, each with its reason. */
const notIncremental: readonly (readonly [string, string])[] = [
  ['SELECT n, row_number() OVER (ORDER BY n, v) AS r FROM app::a', 'a window function'],
  ['SELECT g FROM app::a INTERSECT SELECT g FROM app::b', 'INTERSECT'],
  ['SELECT g FROM app::a EXCEPT ALL SELECT g FROM app::b', 'EXCEPT'],
  ['SELECT n FROM app::a WHERE g IN (SELECT g FROM app::b)', 'a sub-query in an expression'],
  [
    'SELECT n, (SELECT count(*) FROM app::b b WHERE b.g = a.g) AS c FROM app::a a',
    'a sub-query in an expression',
  ],
  ['SELECT g, stddev(n) AS s FROM app::a GROUP BY g', 'the aggregate stddev'],
  ['SELECT g, sum(DISTINCT n) AS s FROM app::a GROUP BY g', 'sum(DISTINCT …)'],
  [
    'SELECT t.n FROM (SELECT n FROM app::a ORDER BY n LIMIT 3) t',
    'a LIMIT or an OFFSET in a sub-query',
  ],
  ['SELECT n, g FROM app::a ORDER BY n OFFSET 2', 'an OFFSET without a LIMIT'],
  ['SELECT n, g FROM app::a ORDER BY n LIMIT 20000', 'a LIMIT and OFFSET past 10000 rows'],
  ['SELECT 1 AS one', 'a SELECT without FROM'],
]

it('a condition that names a data set keeps a view from following changes', () => {
  const find = { ip: { inDataset: 'hosts' } }
  expect(planView(parseAggregate({ find, group_by: 'g' }, 'app::a')).notIncrementalReason).toBe(
    'a data set in a condition',
  )
})

const requests: readonly object[] = [
  { group_by: 'g', aggregate: { c: { $count: '*' }, s: { $sum: 'n' }, m: { $min: 'v' } } },
  { distinct: ['g', 'h'] },
  {
    find: {
      b: { model: 'app::b', resolve: { find: { g: '$data.g', n: { gt: 0 } } } },
      m: { isNotNull: true },
    },
    group_by: ['b.h'],
    aggregate: { d: { $countDistinct: 'b.v' }, c: { $count: 'b' }, a: { $avg: 'n' } },
  },
  {
    find: {
      b: {
        model: 'app::b',
        resolve: {
          find: { g: '$data.h', c: { model: 'app::c', resolve: { find: { h: '$data.h' } } } },
        },
      },
    },
    group_by: 'g',
    aggregate: { c: { $count: 'b.c' }, m: { $max: 'b.c.n' } },
  },
]

/** Queries whose every lookup of a change uses an index. */
const indexed: readonly string[] = [
  'SELECT * FROM app::a WHERE n > 1',
  'SELECT g, count(*) AS c, min(n) AS l, count(DISTINCT t) AS d FROM app::a GROUP BY g HAVING count(*) > 1',
  'SELECT a.n, b.n AS m FROM app::a a JOIN app::b b ON a.g = b.g',
  'SELECT a.n, b.n AS m, c.n AS o FROM app::a a LEFT JOIN app::b b ON a.g = b.g LEFT JOIN app::c c ON b.h = c.h',
  'SELECT a.n, b.n AS m FROM app::a a FULL JOIN app::b b ON a.g = b.g',
  'SELECT a.n, b.n AS m FROM app::a a, app::b b WHERE a.g = b.g AND b.n > 1',
  'SELECT a.n, s.c FROM app::a a LEFT JOIN (SELECT g, count(*) AS c FROM app::b GROUP BY g) s ON s.g = a.g',
  'SELECT g FROM app::a UNION SELECT h FROM app::b',
]

let test: TestDatabase

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(async () => test?.drop())

describe('a definition', () => {
  it.each(notIncremental)('%s is kept by filling: it has %s', async (text, reason) => {
    const parsed = await parseSql(text, { now: 0 })
    expect(planView(parsed).notIncrementalReason).toBe(reason)
    await follow(parsed, text)
  })

  it.each(requests)(
    'a definition in the form of a request is kept by changes: %j',
    async (request) => {
      const parsed = parseAggregate(request, 'app::a')
      expect(planView(parsed).notIncrementalReason).toBeUndefined()
      await follow(parsed, JSON.stringify(request))
    },
  )

  it('a definition names the fields that joins look records up by, also through a sub-query', async () => {
    const fields = async (text: string) =>
      planView(await parseSql(text, { now: 0 })).joinFields.map(
        ({ model, path }) => `${model}.${path.join('.')}`,
      )
    expect(
      await fields(
        'SELECT a.n FROM app::a a LEFT JOIN (SELECT * FROM app::b WHERE n > 1) s ON s.x.y = a.g AND a.n = 5',
      ),
    ).toEqual(['app::b.x.y', 'app::a.g'])
    expect(await fields('SELECT a.n FROM app::a a, app::b b WHERE a.g = b.h OR a.n = b.n')).toEqual(
      [],
    )
  })
})

describe('an advance', () => {
  it('an advance scans no table, however little the planner knows', async () => {
    const place = await openPlace('plans')
    for (const [number, text] of indexed.entries()) {
      const view = await makeView(await parseSql(text, { now: 0 }), { number, about: text })
      await place.transaction(async (tx) => {
        await begin(tx, place, view)
        await settle(tx)
        const statements = view.program.advance(
          place.view(number),
          () => 0,
          () => 1,
        )
        for (const { text: statement, values } of statements) {
          await runStatements(tx, [{ text: `PREPARE advance AS ${statement}`, values: [] }])
          const [plan] = await runQuery(tx, {
            text: `EXPLAIN (FORMAT JSON) EXECUTE advance${printArguments(values)}`,
            values: [],
          })
          await runStatements(tx, [{ text: 'DEALLOCATE advance', values: [] }])
          expect(listScans(plan?.['QUERY PLAN']), `${text}\n${statement}`).toEqual([])
        }
      })
    }
  })

  it('an advance does not fail with keys and values of any length', async () => {
    const place = await openPlace('long')
    const texts = [
      'SELECT t, v, count(*) AS c, min(v) AS l, max(t) AS h, count(DISTINCT v) AS d FROM app::a GROUP BY t, v',
      'SELECT t, v FROM app::a ORDER BY v, t DESC LIMIT 3',
      'SELECT DISTINCT v FROM app::a',
      'SELECT x.c FROM (SELECT v, count(*) AS c FROM app::a GROUP BY v) x JOIN app::b b ON b.v = x.v',
    ]
    const views = await Promise.all(
      texts.map(async (text, number) =>
        makeView(await parseSql(text, { now: 0 }), { number, about: text }),
      ),
    )
    const values = [
      JSON.stringify('é'.repeat(20_000)),
      JSON.stringify(`${'é'.repeat(20_000)}!`),
      JSON.stringify(Array.from({ length: 3_000 }, (_, at) => at)),
      '9'.repeat(9_000),
      `0.${'1'.repeat(9_000)}`,
    ]
    await place.transaction(async (tx) => {
      for (const view of views) await begin(tx, place, view)
      for (const [at, value] of [...values, ...values].entries()) {
        const body = at < values.length + 2 ? `{"t":${value},"v":${value}}` : undefined
        const key = String(at % values.length)
        await place.write(tx, [
          { collection: 'a', key, body },
          { collection: 'b', key, body },
        ])
        for (const view of views) await bring(tx, place, { view, to: place.size() })
      }
    })
  })
})

async function follow(parsed: Query, about: string): Promise<void> {
  const block = makeBlockSource(makeChance(7))
  const place = await openPlace('follow')
  const view = await makeView(parsed, { number: 1, about })
  await place.transaction(async (tx) => {
    await begin(tx, place, view)
    for (let step = 0; step < 12; step += 1) {
      await place.write(tx, toWrites(block()))
      await bring(tx, place, { view, to: place.size() })
    }
    await checkFill(tx, place, view)
    await tx.execute(sql`DROP SCHEMA follow CASCADE`)
  })
}

/** Collections with indexes on the fields that are joined by. */
async function openPlace(schema: string): Promise<EnginePlace> {
  const place = await makeEnginePlace(test, schema, { names: collections })
  await place.transaction(async (tx) => {
    for (const table of ['c_1', 'c_2', 'c_3'])
      for (const name of ['g', 'h', 'v'])
        await runStatements(tx, [
          compileIndex({
            schema,
            table,
            name: `i_${table}_${name}`,
            paths: [parseFieldPath(name, '')],
            method: 'btree',
          }),
        ])
  })
  return place
}

async function makeView(
  parsed: Query,
  { number, about }: { number: number; about: string },
): Promise<EngineView> {
  return { program: planView(parsed), number, about, plain: undefined, at: 0 }
}

function printArguments(values: readonly unknown[]): string {
  return values.length === 0 ? '' : `(${values.map(literal).join(', ')})`
}

function literal(value: unknown): string {
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
}

/**
 * Lists the tables that a plan reads from end to end, or up to the position; the tables of the last change have
 * nothing else.
 */
function listScans(plan: unknown): readonly string[] {
  const found: string[] = []
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const fields: Readonly<Record<string, unknown>> = { ...node }
    const type = String(fields['Node Type'])
    const condition = String(fields['Index Cond'] ?? '')
    const name = fields['Relation Name']
    const isWhole = type === 'Seq Scan' || (type.startsWith('Index') && isOpen.test(condition))
    if (isWhole && typeof name === 'string' && !/^s_.*d$/.test(name))
      found.push(`${type} on ${name}`)
    for (const each of Object.values(fields)) visit(each)
  }
  visit(typeof plan === 'string' ? JSON.parse(plan) : plan)
  return found
}

/** Nothing, or no more than the end of what counts. */
const isOpen = /^(\(leaf < \S+\))?$/
