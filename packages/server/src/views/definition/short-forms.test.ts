import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { parseAggregate } from '../../query/aggregate-request.ts'
import { data } from '../../query/sql/orders.test-data.ts'
import { makeQueryRunner } from '../../query/sql/test-sql.test-support.ts'
import { createTestCollection, createTestSchema } from '../../query/test-collection.test-support.ts'
import type { Query } from '../../query/tree/query.ts'
import { readViewDefinition } from './read-view-definition.ts'

type Options = Parameters<typeof readViewDefinition>[1]

async function canonical(query: unknown, options: Partial<Options> = {}) {
  return (await readViewDefinition(query, { app: 'app', ...options })).definition
}

/** The short forms as the client's code sends them (docs/views.md). */
describe('short forms of definitions', () => {
  it('the members select, find, group_by, aggregate and sort_by are short for a definition', async () => {
    const aggregate = {
      avg_price: { $avg: 'price' },
      volume: { $sum: 'volume' },
      trades: { $count: '*' },
      lowest: { $min: 'price' },
      highest: { $max: 'price' },
      open: { $first: 'price' },
      close: { $last: 'price' },
      traders: { $countDistinct: 'trader' },
    }
    const query = {
      select: ['market', 'avg_price'],
      find: { market: { in: ['BTC', 'ETH'] } },
      group_by: ['market'],
      aggregate,
      sort_by: ['market'],
    }
    expect(await canonical(query, { sources: ['trades'] })).toEqual({
      select: [
        'market',
        { avg_price: { $avg: 'price' } },
        { volume: { $coalesce: [{ $sum: 'volume' }, 0] } },
        { trades: { $count: '*' } },
        { lowest: { $min: 'price' } },
        { highest: { $max: 'price' } },
        { open: { $first: 'price' } },
        { close: { $last: 'price' } },
        { traders: { $count: 'trader', distinct: true } },
      ],
      from: 'app::trades',
      find: { market: { in: ['BTC', 'ETH'] } },
      group_by: ['market'],
      order_by: ['market'],
    })
  })

  it.each(['orderBy', 'order_by'])(
    'the members select, where, %s and limit are short for a definition',
    async (order) => {
      const query = { select: ['id', 'amount'], where: { paid: true }, [order]: { amount: 'desc' } }
      expect(await canonical({ ...query, limit: 10 }, { sources: ['app::orders'] })).toEqual({
        select: ['id', 'amount'],
        from: 'app::orders',
        find: { paid: true },
        order_by: [{ by: 'amount', direction: 'desc' }],
        limit: 10,
      })
    },
  )

  it('the members filter, groupBy and aggregate are short for a definition', async () => {
    const query = {
      filter: { status: 'completed' },
      groupBy: 'region',
      aggregate: { totalOrders: { $count: 'orders' } },
    }
    expect(await canonical(query, { sources: ['orders'] })).toEqual({
      select: ['region', { totalOrders: { $count: '*' } }],
      from: 'app::orders',
      find: { status: 'completed' },
      group_by: ['region'],
    })
  })

  const gatherings = (counted: string) => ({
    select: [
      'gatherings.id',
      { current_amount: { $coalesce: [{ $sum: 'contributions.amount' }, 0] } },
      { contributor_count: { $count: counted } },
    ],
    from: 'app::gatherings',
    joins: [
      {
        join: 'app::contributions',
        type: 'left',
        on: { $eq: ['contributions.gathering_id', 'gatherings.id'] },
      },
    ],
    group_by: ['gatherings.id'],
  })
  const sources = ['gatherings', 'contributions']

  it('the members base and join are short for a definition', async () => {
    const query = {
      base: 'gatherings',
      join: { contributions: { on: { gathering_id: '$data.id' }, type: 'left' } },
      aggregate: {
        current_amount: { $sum: 'contributions.amount' },
        contributor_count: { $count: 'contributions.id' },
      },
      group_by: ['id'],
    }
    expect(await canonical(query, { sources })).toEqual(gatherings('contributions.id'))
  })

  it('a join beside find, with group_by and aggregate beside the query, is short for a definition', async () => {
    const query = {
      find: {},
      select: {},
      contributions: {
        resolve: { gathering_id: '$data.id' },
        model: 'contributions',
        many: true,
      },
    }
    const siblings = {
      group_by: ['id'],
      aggregate: {
        current_amount: { $sum: 'contributions.amount' },
        contributor_count: { $count: 'contributions' },
      },
    }
    expect(await canonical(query, { sources, siblings })).toEqual(gatherings('contributions.*'))
  })

  it('Mongo’s names of operators in conditions are short for the plain names', async () => {
    const where = { $or: [{ amount: { $gte: 5 } }, { status: { $nin: ['open'] } }] }
    expect(await canonical({ from: 'orders', where })).toMatchObject({
      select: ['*'],
      find: { or: [{ amount: { greaterThanOrEqual: 5 } }, { status: { notIn: ['open'] } }] },
    })
  })

  it('an expression in where stays one, and find beside it holds too', async () => {
    const where = { $and: ['paid', { $gt: ['amount', 5] }] }
    const find = { status: 'open' }
    expect(await canonical({ from: 'orders', find, where })).toMatchObject({ find, where })
  })
})

/** Each as a request's find, group_by, aggregate. */
const requests: readonly Record<string, unknown>[] = [
  {
    group_by: ['status'],
    aggregate: { n: { $count: '*' }, s: { $sum: 'amount' }, a: { $avg: 'amount' } },
  },
  {
    find: { amount: { gt: 3 }, or: [{ paid: true }, { customer: null }] },
    group_by: 'customer',
    aggregate: {
      least: { $min: 'status' },
      most: { $max: 'amount' },
      d: { $countDistinct: 'paid' },
    },
  },
  {
    group_by: ['paid'],
    aggregate: { first: { $first: 'id' }, last: { $last: 'id' }, none: { $sum: 'missing' } },
  },
  { aggregate: { n: { $count: 'customer' } } },
  {
    find: { buyer: { resolve: { find: { id: '$data.customer' } }, model: 'customers' } },
    group_by: ['buyer.city'],
    aggregate: { n: { $count: '*' }, with_buyer: { $count: 'buyer' }, s: { $sum: 'amount' } },
  },
  {
    find: {
      status: 'open',
      parts: {
        resolve: { find: { order_id: '$data.id', quantity: { gt: 1 } } },
        model: 'items',
      },
    },
    group_by: ['id'],
    aggregate: { s: { $sum: 'parts.price' }, last: { $last: 'parts.sku' } },
  },
]

const totals = {
  select: [
    'status',
    { n: { $count: '*' } },
    { total: { $sum: 'amount' } },
    { first: { $min: { $cast: 'at', to: 'timestamp' } } },
    { last_paid: { $max: 'paid' } },
  ],
  from: 'app::orders',
  group_by: ['status'],
}
const finds: readonly Record<string, unknown>[] = [
  { total: { gt: 240 } },
  { status: { in: ['open', null] }, n: 10 },
  { or: [{ first: { startsWith: '2024-01' } }, { first: null }, { last_paid: false }] },
  { not: { status: { includesCaseInsensitive: 'OPE' } } },
  { total: { between: [1, 500] }, missing: { exists: false } },
  { missing: { exists: true } },
]

describe('definitions over records', () => {
  let test: TestDatabase
  let rowsOf: (query: Query) => Promise<readonly Record<string, unknown>[]>

  beforeAll(async () => {
    test = await createTestDatabase()
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    const create = (name: string, list: readonly object[]) =>
      createTestCollection(
        run,
        `app.${name}`,
        list.map((each) => ({ body: JSON.stringify(each) })),
      )
    await createTestSchema(run, 'app')
    for (const [name, list] of Object.entries(data)) await create(name, list)
    const { rows } = makeQueryRunner(run)
    rowsOf = async (query) => (await rows(query)).rows
    const { query } = await readViewDefinition(totals, { app: 'app' })
    await create('stored', await rowsOf(query))
  })
  afterAll(async () => test?.drop())

  it.each(requests)('the groups of a view are those of the same request: %j', async (request) => {
    const { query } = await readViewDefinition({ from: 'orders', ...request }, { app: 'app' })
    const asked = await rowsOf(parseAggregate(request, 'app::orders'))
    expect(sorted(await rowsOf(query))).toEqual(sorted(asked))
  })

  it.each(finds)('find holds for the same rows of a view as of such records: %j', async (find) => {
    const findView = (model: string) => (model === 'app::totals' ? totals : undefined)
    const { query } = await readViewDefinition(
      { from: 'totals', find },
      { app: 'app', viewOf: findView },
    )
    const stored = await readViewDefinition({ from: 'stored', find }, { app: 'app' })
    const rows = await rowsOf(stored.query)
    expect(sorted(await rowsOf(query))).toEqual(sorted(rows))
  })
})

function sorted(rows: readonly Record<string, unknown>[]): readonly string[] {
  return rows.map((row) => JSON.stringify(Object.values(flat(row)))).sort()
}

/** A request answers `buyer.city` as an object in the row, a view as its column `city`. */
function flat(row: Record<string, unknown>): Record<string, unknown> {
  const { buyer, ...rest } = row
  return typeof buyer === 'object' && buyer !== null ? { ...buyer, ...rest } : row
}
