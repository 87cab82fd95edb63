import { limits } from '@tollbase/contract/limits'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../base/fault.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { type AggregateRequest, isAggregate, parseAggregate } from './aggregate-request.ts'
import { compileQuery } from './compile/compile-query.ts'
import { compareForSort, evaluateFind, getValueAt } from './reference-evaluator.test-support.ts'
import { makeQueryRunner } from './sql/test-sql.test-support.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
} from './test-collection.test-support.ts'
import { collectQuerySources } from './tree/query-sources.ts'

type Json = Readonly<Record<string, unknown>>
const root = 'app::orders'
const join = { resolve: { find: { of: '$data.id' } }, model: 'app::parts', many: true }

describe('requests for groups', () => {
  const refusal = (request: AggregateRequest): string => {
    try {
      parseAggregate(request, root)
    } catch (error) {
      if (error instanceof Fault) return error.message
      throw error
    }
    return 'accepted'
  }
  const many = (count: number) => Array.from({ length: count }, (_, at) => `f${at}`)
  const named = (count: number) =>
    Object.fromEntries(many(count).map((name) => [name, { $count: '*' }]))

  it.each<[AggregateRequest, string]>([
    [{ group_by: 'a' }, 'accepted'],
    [{ aggregate: { n: { $count: '*' } } }, 'accepted'],
    [{ distinct: ['a', 'b.c'] }, 'accepted'],
    [{ group_by: [] }, '/group_by names no field'],
    [{ group_by: 5 }, '/group_by must be the name'],
    [{ group_by: ['a', 5] }, '/group_by/1 must be the name'],
    [{ distinct: 'a', aggregate: { n: { $count: '*' } } }, '/distinct stands alone'],
    [{ aggregate: { n: { $median: 'a' } } }, '/aggregate/n/$median is no aggregate'],
    [{ aggregate: { n: {} } }, '/aggregate/n must be one aggregate'],
    [{ aggregate: { n: { $sum: 'a', $avg: 'a' } } }, '/aggregate/n must be one aggregate'],
    [{ aggregate: { n: { $sum: 5 } } }, '/aggregate/n/$sum must be the name'],
    [{ aggregate: { n: { $sum: '*' } } }, '/aggregate/n/$sum must name a field'],
    [{ aggregate: 'n' }, '/aggregate must be an object'],
    [{ group_by: 'a', aggregate: { a: { $count: '*' } } }, 'no place beside'],
    [{ group_by: ['a', 'a.b'] }, 'no place beside'],
    [{ group_by: 'a', select: { a: true } }, '/select is about records'],
    [{ group_by: 'a', sortBy: 'b' }, '/sortBy is neither'],
    [{ group_by: many(limits.groupFieldsMax) }, 'accepted'],
    [{ group_by: many(limits.groupFieldsMax + 1) }, '/group_by has more than'],
    [{ aggregate: named(limits.aggregatesMax) }, 'accepted'],
    [{ aggregate: named(limits.aggregatesMax + 1) }, '/aggregate has more than'],
  ])('a request for groups is read, or refused naming the place: %j', (request, expected) => {
    expect(refusal(request)).toContain(expected)
  })

  it('a request for groups is told from one for records', () => {
    expect(isAggregate({ find: {}, group_by: null })).toBe(false)
    expect(isAggregate({ distinct: 'a' })).toBe(true)
  })

  it('a request for groups reads the records once, for the page and for the count of all groups', () => {
    const query = parseAggregate({ group_by: 'a', limit: 5, offset: 5 }, root)
    const { text } = compileQuery(query, {
      schema: 'app',
      caps: { rows: 100, bytes: 1000 },
      resolve: () => ({ schema: 'app', table: 'orders' }),
      total: true,
    })
    expect(text.split('"orders"')).toHaveLength(2)
  })

  it('a request for groups tells the fields that it uses, in joined collections too', () => {
    const query = parseAggregate(
      {
        find: { a: 1, parts: join },
        group_by: ['b'],
        aggregate: { s: { $sum: 'parts.price' }, n: { $count: 'parts' } },
      },
      root,
    )
    expect(collectQuerySources(query)).toMatchObject([
      {
        model: root,
        kind: 'derived',
        used: { filter: ['a', 'id', 'b'], sort: ['b'], select: ['b'] },
      },
      {
        model: 'app::parts',
        kind: 'derived',
        used: { filter: ['of'], sort: [], select: ['price'] },
      },
    ])
  })
})

const value = fc.constantFrom<unknown>(null, 0, 1, 2.5, 0.1, 0.2, -3, 'a', 'b', true, false, [1], {
  x: 1,
})
const record = fc.record(
  { a: value, b: value, n: fc.record({ x: value }), id: fc.constantFrom(1, 2, 3) },
  { requiredKeys: [] },
)
const orders: readonly Json[] = fc.sample(record, { numRuns: 120, seed: 5 })
const parts: readonly Json[] = [
  { of: 1, price: 0.1 },
  { of: 1, price: 0.2 },
  { of: 2, price: 5 },
  { of: 9, price: 7 },
]
const fields = ['a', 'b', 'n.x']

/** The meaning of each aggregate, stated over the values of one group. */
const meaning: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  $count: (values) => present(values).length,
  $countDistinct: (values) => new Set(present(values).map((each) => JSON.stringify(each))).size,
  $sum: (values) => rounded(sum(values)),
  $avg: (values) =>
    numbers(values).length === 0 ? null : rounded(sum(values) / numbers(values).length),
  $min: (values) => ordered(values)[0] ?? null,
  $max: (values) => ordered(values).at(-1) ?? null,
  $first: (values) => values[0] ?? null,
  $last: (values) => values.at(-1) ?? null,
}
const present = (values: readonly unknown[]) =>
  values.filter((each) => each !== null && each !== undefined)
const numbers = (values: readonly unknown[]) => values.filter((each) => typeof each === 'number')
const sum = (values: readonly unknown[]) => numbers(values).reduce((a, b) => a + b, 0)
const rounded = (each: unknown) => (typeof each === 'number' ? Number(each.toFixed(9)) : each)
const ordered = (values: readonly unknown[]) =>
  present(values)
    .filter((each) => typeof each !== 'object')
    .toSorted(compareForSort)

describe.each(listTestEngines())('%s: groups', (engine) => {
  let test: TestDatabase
  let run: RunSql
  let rowsOf: ReturnType<typeof makeQueryRunner>['rows']

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    rowsOf = makeQueryRunner(run).rows
    await createTestSchema(run, 'app')
    const bodies = (list: readonly Json[]) => list.map((each) => ({ body: JSON.stringify(each) }))
    await createTestCollection(run, 'app.orders', bodies(orders))
    await createTestCollection(run, 'app.parts', bodies(parts))
  })
  afterAll(async () => test?.drop())

  const ask = (request: AggregateRequest) => rowsOf(parseAggregate(request, root), { total: true })

  it('groups have the values that their meaning says', async () => {
    const request = fc.record({
      group: fc.option(fc.constantFrom(...fields), { nil: undefined }),
      calls: fc.array(
        fc.tuple(fc.constantFrom(...Object.keys(meaning)), fc.constantFrom(...fields)),
        {
          minLength: 1,
          maxLength: 4,
        },
      ),
      find: fc.constantFrom<Json>({}, { a: { isNotNull: true } }, { b: { gt: 0 } }, { or: [] }),
    })
    await fc.assert(
      fc.asyncProperty(request, async ({ group, calls, find }) => {
        const aggregate = Object.fromEntries(
          calls.map(([name, of], at) => [`v${at}`, { [name]: of }]),
        )
        const found = orders.filter((each) => evaluateFind(find, each))
        const getKey = (each: Json) =>
          JSON.stringify(group === undefined ? null : (getValueAt(each, group.split('.')) ?? null))
        const groups = new Map<string, Json[]>()
        for (const each of found)
          groups.set(getKey(each), [...(groups.get(getKey(each)) ?? []), each])
        if (group === undefined && groups.size === 0) groups.set('null', [])
        const expected = [...groups].map(([key, list]) => [
          key,
          ...calls.map(([name, of]) =>
            rounded(meaning[name]?.(list.map((each) => getValueAt(each, of.split('.'))))),
          ),
        ])
        const { rows, total } = await ask({
          find,
          aggregate,
          ...(group ? { group_by: group } : {}),
        })
        const given = rows.map((row) => [
          JSON.stringify(group === undefined ? null : getValueAt(row, group.split('.'))),
          ...calls.map((_, at) => rounded(row[`v${at}`])),
        ])
        const sorted = (list: readonly unknown[][]) =>
          list.map((each) => JSON.stringify(each)).sort()
        expect(sorted(given)).toEqual(sorted(expected))
        expect(total).toBe(BigInt(rows.length))
      }),
      { numRuns: 100 },
    )
  })

  it('groups sum decimals exactly', async () => {
    const { text } = await ask({
      find: { parts: join, id: 1 },
      distinct: ['id'],
    })
    expect(text).toBe('{"id":1}')
    const sums = await rowsOf(
      parseAggregate({ aggregate: { s: { $sum: 'price' }, a: { $avg: 'price' } } }, 'app::parts'),
    )
    expect(sums.text).toBe('{"s":12.3,"a":3.075}')
  })

  it('groups count every pair of a record and a joined one, and a record without any once', async () => {
    const { rows } = await ask({
      find: { parts: join },
      group_by: 'id',
      aggregate: { n: { $count: '*' }, parts: { $count: 'parts' }, s: { $sum: 'parts.price' } },
    })
    const of = (id: number) => orders.filter((each) => each.id === id).length
    expect(rows).toEqual([
      { id: 1, n: of(1) * 2, parts: of(1) * 2, s: rounded(of(1) * 0.3) },
      { id: 2, n: of(2), parts: of(2), s: of(2) * 5 },
      { id: 3, n: of(3), parts: 0, s: 0 },
      { id: null, n: orders.filter((each) => each.id === undefined).length, parts: 0, s: 0 },
    ])
  })

  it('groups come sorted by their fields, or by the requested order, in pages', async () => {
    const { rows } = await ask({ distinct: 'n.x' })
    const names = rows.map((row) => getValueAt(row, ['n', 'x']))
    expect(names).toEqual(names.toSorted(compareForSort))
    const request = { group_by: 'a', aggregate: { n: { $count: '*' } }, sortBy: 'n' }
    const all = await ask({ ...request, sortDirection: 'desc' })
    const counts = all.rows.map((row) => Number(row.n))
    expect(counts).toEqual(counts.toSorted((x, y) => y - x))
    const page = await ask({ ...request, sortDirection: 'desc', limit: 2, offset: 1 })
    expect(page.rows).toEqual(all.rows.slice(1, 3))
    expect(page.total).toBe(BigInt(all.rows.length))
  })
})
