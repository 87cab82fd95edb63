import { limits } from '@tollbase/contract/limits'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../base/fault.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { compileList } from './compile-list.ts'
import { collectListSources, parseJoinedList } from './list-query.ts'
import { evaluateFind, getValueAt } from './reference-evaluator.test-support.ts'
import {
  createTestCollection,
  createTestSchema,
  indexTestCollection,
  type RunSql,
} from './test-collection.test-support.ts'

type Json = Readonly<Record<string, unknown>>

const caps = { rows: 10_000, bytes: 10_000_000 }
const join = (find: unknown, more: object = {}) => ({
  resolve: { find, select: {} },
  model: 'children',
  ...more,
})

describe('joins of a request', () => {
  const refusal = (find: unknown): string => {
    try {
      parseJoinedList({ find })
    } catch (error) {
      if (error instanceof Fault) return error.message
      throw error
    }
    return 'accepted'
  }
  const nested = (depth: number): object => join(depth <= 1 ? {} : { below: nested(depth - 1) })

  it.each([
    [{ a: { is: 1 }, x: join({}) }, 'accepted'],
    [{ and: [{ x: join(null) }, { a: 1 }] }, 'accepted'],
    [{ x: { resolve: { parent: '$data.id' }, model: 'children', many: true } }, 'accepted'],
    [{ or: [{ x: join({}) }] }, '/find/or/0/x is a join'],
    [{ not: [{ x: join({}) }] }, '/find/not/0/x is a join'],
    [{ x: { y: join({}) } }, '/find/x/y is a join'],
    [{ x: join({}), and: [{ x: join({}) }] }, '/find/and/0/x is joined twice'],
    [{ x: join({}, { model: 'a::b::c' }) }, '/find/x/model must be'],
    [{ x: join({}, { many: 1 }) }, '/find/x/many must be'],
    [{ x: join({}, { type: 'left' }) }, '/find/x/type is not a part of a join'],
    [{ x: { resolve: { fnd: {} }, model: 'children' } }, '/find/x/resolve/fnd is not a part'],
    [
      { x: join({ p: { regExpMatches: '$data.a' } }) },
      '/find/x/resolve/find/p/regExpMatches cannot',
    ],
    [{ x: join({ p: { in: ['a', '$data.b'] } }) }, '/find/x/resolve/find/p/in/1 is a field'],
    [{ x: join({ p: '$data.' }) }, '/find/x/resolve/find/p names an empty field'],
    [{ x: nested(limits.joinDepthMax) }, 'accepted'],
    [{ x: nested(limits.joinDepthMax + 1) }, 'nested deeper than'],
    [
      Object.fromEntries(Array.from({ length: limits.joinsMax }, (_, at) => [`x${at}`, join({})])),
      'accepted',
    ],
    [
      Object.fromEntries(
        Array.from({ length: limits.joinsMax + 1 }, (_, at) => [`x${at}`, join({})]),
      ),
      'one join too many',
    ],
  ])('joins are read, or refused naming the place: %j', (find, expected) => {
    expect(refusal(find)).toContain(expected)
  })

  it('joins tell every collection that is read, and the fields of it, references included', () => {
    const inner = join({ p: '$parent.q.r' }, { model: 'other::things' })
    const query = parseJoinedList({
      find: { a: 1, x: join({ p: { gt: '$data.b' }, inner }) },
      select: { c: true },
      sortBy: 'd',
    })
    expect(collectListSources(query, 'shop::orders')).toMatchObject([
      {
        model: 'shop::orders',
        kind: 'rows',
        used: { filter: ['a', 'b'], sort: ['d'], select: ['c'] },
      },
      {
        model: 'children',
        kind: 'derived',
        used: { filter: ['p', 'q.r'], sort: [], select: 'all' },
      },
      { model: 'other::things', kind: 'derived', used: { filter: ['p'], sort: [], select: 'all' } },
    ])
  })
})

const scalars = [
  null,
  0,
  1,
  2,
  1.5,
  '',
  '1',
  'a',
  'ab',
  true,
  false,
  'x'.repeat(127),
  'x'.repeat(128),
]
const longer = ['x'.repeat(130), `${'x'.repeat(128)}a`]
const value = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<unknown>(...scalars, ...longer) },
  fc.array(fc.constantFrom<unknown>(...scalars, ...longer), { maxLength: 3 }),
  fc.constant({ x: 1 }),
)
const record = fc.record({ a: value, b: value, n: fc.record({ x: value }) }, { requiredKeys: [] })
const fields = ['a', 'b', 'n.x']
const records = (seed: number, count: number): Json[] =>
  fc.sample(record, { numRuns: count, seed }).map((each, place) => ({ ...each, place }))
const data: Readonly<Record<string, readonly Json[]>> = {
  parents: records(1, 12),
  children: records(2, 16),
  others: records(3, 10),
}

const operators = ['is', 'isNot', 'gt', 'gte', 'lt', 'lte', 'in', 'notIn', 'includes'] as const
type Reference = { readonly field: string; readonly operator: string; readonly to: string }
type TestJoin = {
  readonly references: readonly Reference[]
  readonly plain: Json
  readonly model: string
  readonly many: boolean
  readonly inner: TestJoin | undefined
}
const reference = fc.record({
  field: fc.constantFrom(...fields),
  operator: fc.constantFrom(...operators),
  to: fc.constantFrom(...fields),
})
const testJoin = (depth: number): fc.Arbitrary<TestJoin> =>
  fc.record({
    references: fc.array(reference, { minLength: 1, maxLength: 2 }),
    plain: fc.constantFrom<Json>({}, { a: { isNotNull: true } }, { b: { lt: 5 } }),
    model: fc.constantFrom('children', 'others', 'indexed'),
    many: fc.boolean(),
    inner:
      depth === 0 ? fc.constant(undefined) : fc.option(testJoin(depth - 1), { nil: undefined }),
  })

function toRequest(each: TestJoin): Json {
  const tests = each.references.map(({ field, operator, to }) => ({
    [field]: { [operator]: `$data.${to}` },
  }))
  const inner = each.inner === undefined ? {} : { inner: toRequest(each.inner) }
  return {
    resolve: { find: { and: tests, ...each.plain, ...inner }, select: { place: true } },
    model: each.model,
    many: each.many,
  }
}

/** The meaning of a join, stated over plain values. */
function evaluateJoin(each: TestJoin, parent: Json): unknown {
  const found = (data[each.model === 'indexed' ? 'children' : each.model] ?? [])
    .filter((child) => evaluateFind(each.plain, child))
    .filter((child) => each.references.every((one) => holds(one, child, parent)))
    .map((child) => ({
      place: child.place,
      ...(each.inner === undefined ? {} : { inner: evaluateJoin(each.inner, child) }),
    }))
  return each.many ? found : (found[0] ?? null)
}

function holds({ field, operator, to }: Reference, child: Json, parent: Json): boolean {
  const own = getValueAt(child, field.split('.'))
  const other = getValueAt(parent, to.split('.'))
  if (operator === 'isNot') return !holds({ field, operator: 'is', to }, child, parent)
  if (operator === 'notIn') return !holds({ field, operator: 'in', to }, child, parent)
  if (own === undefined || own === null || other === undefined || other === null) return false
  if (operator === 'is') return JSON.stringify(own) === JSON.stringify(other)
  if (operator === 'in')
    return Array.isArray(other) && typeof own !== 'object' && other.includes(own)
  if (typeof other === 'object') return false
  return evaluateFind({ [field]: { [operator]: other } }, child)
}

describe.each(listTestEngines())('%s: joins', (engine) => {
  let test: TestDatabase
  let run: RunSql
  const bodies = (list: readonly Json[]) => list.map((each) => ({ body: JSON.stringify(each) }))

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    for (const [name, list] of Object.entries(data)) {
      await createTestCollection(run, `app.${name}`, bodies(list))
    }
    await createTestCollection(run, 'app.indexed', bodies(data.children ?? []))
    await indexTestCollection(run, 'app.indexed', fields)
  })
  afterAll(async () => test?.drop())

  async function list(request: Json, table = 'parents') {
    const { text, values } = compileList(parseJoinedList(request), {
      schema: 'app',
      table,
      caps,
      total: false,
      resolve: (model) => ({ schema: 'app', table: model }),
    })
    const [row] = await run(text, values)
    return row
  }
  const parsed = (row: Json | undefined): unknown => JSON.parse(`[${row?.records}]`)

  it('joins give each record what their meaning says, nested or not, with and without indexes', async () => {
    await fc.assert(
      fc.asyncProperty(testJoin(2), fc.boolean(), async (each, limited) => {
        const row = await list({
          find: { joined: toRequest(each) },
          select: { place: true },
          ...(limited ? { limit: 7 } : {}),
        })
        const parents = (data.parents ?? []).slice(0, limited ? 7 : undefined)
        expect(parsed(row)).toEqual(
          parents.map((parent) => ({ place: parent.place, joined: evaluateJoin(each, parent) })),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('joins keep the bytes of both records and take the place of a field of the same name', async () => {
    const versions = (...texts: string[]) => texts.map((body) => ({ body }))
    await createTestCollection(run, 'app.left', versions('{ "id":1.0, "x" : 5}', '{}', '{"id":2}'))
    await createTestCollection(run, 'app.right', versions('{"of":1,"v":1.50}', '{"of":1,"v":1e2}'))
    const x = { resolve: { find: { of: '$data.id' } }, model: 'right' }
    expect((await list({ find: { x } }, 'left'))?.records).toBe(
      '{"id":1.0,"x":[{"of":1,"v":1.50},{"of":1,"v":1e2}]},{"x":[]},{"id":2,"x":[]}',
    )
    const first = { ...x, many: false }
    expect((await list({ find: { y: first, z: x, id: 1 } }, 'left'))?.records).toBe(
      '{ "id":1.0, "x" : 5,"y":{"of":1,"v":1.50},"z":[{"of":1,"v":1.50},{"of":1,"v":1e2}]}',
    )
  })

  it('joins show live versions only', async () => {
    await createTestCollection(run, 'app.versions', [
      { body: '{"of":0,"n":1}', key: 'a', supersededBy: 1 },
      { body: '{"of":0,"n":2}', key: 'a' },
      { body: '{"of":0,"n":3}', key: 'b', deleted: true },
    ])
    const x = { resolve: { find: { of: '$data.place' } }, model: 'versions' }
    const row = await list({ find: { x, place: 0 }, select: { place: true } })
    expect(row?.records).toBe('{"place":0,"x":[{"of":0,"n":2}]}')
  })

  it('joins that fetch more than an answer may have say so and give nothing', async () => {
    const many = Array.from({ length: 450 }, (_, at) => ({ body: `{"n":${at}}` }))
    await createTestCollection(run, 'app.many', many)
    const x = { resolve: { find: {} }, model: 'many' }
    expect(await list({ find: { x }, limit: 440 }, 'many')).toMatchObject({ fan_out: false })
    const over = await list({ find: { x } }, 'many')
    expect(over).toMatchObject({ fan_out: true, over: true, records: null })
  })
})
