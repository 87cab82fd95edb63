import { readFileSync } from 'node:fs'
import { limits } from '@tollbase/contract/limits'
import { describe, expect, it } from 'vitest'
import type { Fault } from '../../base/fault.ts'
import type { ValueType } from '../../query/tree/query.ts'
import { parseViewSql } from './parse-view-sql.ts'
import { listModels, readViewDefinition } from './read-view-definition.ts'
import type { ViewDefinition } from './view-definition.ts'

type Options = Parameters<typeof readViewDefinition>[1]

async function read(query: unknown, options: Partial<Options> = {}) {
  return readViewDefinition(query, { app: 'app', ...options })
}

async function refusal(query: unknown, options: Partial<Options> = {}): Promise<string> {
  const error: Fault = await read(query, options).then(
    () => expect.unreachable('nothing was refused'),
    (thrown) => thrown,
  )
  expect(error.code).toBe('VALIDATION_FAILED')
  expect(error.details?.field).toBe(error.message.split(' ')[0])
  return error.message
}

const of = (select: unknown, more: object = {}) => ({ select, from: 'orders', ...more })

describe('mistakes in a definition', () => {
  it.each<readonly [string, unknown, string]>([
    [
      'an unknown operator',
      of([{ n: { $sun: 'a' } }]),
      '/query/select/0/n/$sun is not an operator',
    ],
    ['two operators', of([{ n: { $sum: 'a', $avg: 'b' } }]), '/query/select/0/n has two'],
    ['a foreign member', of([{ n: { $round: 'a', digits: 2 } }]), '/query/select/0/n/digits'],
    ['a column without a name', of([{ $sum: 'a' }]), '/query/select/0/$sum is an operator where'],
    ['a name with a dot', of([{ 'a.b': 'c' }]), '/query/select/0/a.b is a name with a dot'],
    ['a field as in Mongo', of([{ n: { $sum: '$a' } }]), '/query/select/0/n/$sum begins with $'],
    ['a text that is no number', of([{ n: { $abs: { $literal: 'x' } } }]), '/query/select/0/n has'],
    ['a misspelt clause', of(['a'], { grup_by: ['a'] }), '/query/grup_by is not a member'],
    ['a clause twice', of(['a'], { where: true, filter: {} }), '/query/filter is another name'],
    ['an ungrouped field', of(['a', 'b'], { group_by: ['a'] }), '/query has b, which is neither'],
    ['an aggregate in where', of(['a'], { where: { $gt: [{ $sum: 'a' }, 1] } }), '/query/where'],
    ['an operator of find', of(['a'], { find: { a: { gtt: 1 } } }), '/query/find/a/gtt is not an'],
    ['a field left out', of({ a: false }), '/query/select/a leaves a field out'],
    ['a number too many', of(['a'], { limit: limits.rowsMax + 1 }), '/query/limit must be a whole'],
    [
      'an order of nothing known',
      of(['a'], { order_by: [{ by: 'a', direction: 'up' }] }),
      '/query/order_by/0/direction',
    ],
    [
      'a source that is none',
      { select: ['a'], from: 'or ders' },
      '/query/from must be a collection',
    ],
    ['a join without on', of(['a'], { joins: [{ join: 'items' }] }), '/query/joins/0 needs on'],
    [
      'whose a field is',
      of(['id'], { joins: [{ join: 'items', on: { $eq: ['orders.id', 'items.order_id'] } }] }),
      '/query/select/0 has the name id without saying whose',
    ],
    [
      'the time',
      of(['a'], { where: { $gt: ['a', { $now: [] }] } }),
      '/query/where/$gt/1/$now is the time',
    ],
    ['the day', of([{ d: { $current_date: [] } }]), '/query/select/0/d/$current_date is the time'],
    ['a data set', of(['a'], { find: { a: { inDataset: 'x' } } }), '/query/find has a data set'],
    [
      'a joined record whole',
      { base: 'orders', join: { items: { on: { order_id: '$data.id' } } }, select: ['items'] },
      '/query/select/0 is a joined record whole',
    ],
    [
      'joins that nothing uses',
      { base: 'orders', join: { items: { on: { order_id: '$data.id' } } } },
      '/query joins records of which it gives nothing',
    ],
    [
      'a join of nothing',
      { base: 'orders', join: { items: { on: {} } }, select: ['id'] },
      '/query/join/items/on must say',
    ],
    ['a direction in a name', of(['a'], { order_by: ['a', 'b desc'] }), '/query/order_by/1 is the'],
    ['a sign before a name', of(['a'], { order_by: ['-b'] }), '/query/order_by/0 is the name of'],
    ['no collection', { select: [{ one: 1 }] }, '/query reads no collection'],
    ['no object', 'SELECT 1', '/query must be an object'],
    ['a short union', { union: [of(['a'])] }, '/query/union must be a list of two'],
    [
      'sides that do not fit',
      { union: [of(['a']), of(['a', 'b'])] },
      '/query has UNION of 1 with 2',
    ],
    [
      'an empty list',
      of(['a'], { where: { $in: ['a', []] } }),
      '/query/where/$in/1 must not be empty',
    ],
    ['a type', of([{ a: { $cast: 'a', to: 'money' } }]), '/query/select/0/a/to must be a type'],
    ['U+0000', of([{ a: { $literal: '\0' } }]), '/query/select/0/a/$literal must not contain'],
    [
      'a long name',
      of([{ ['x'.repeat(64)]: 'a' }]),
      `/query/select/0/${'x'.repeat(64)} has a name of`,
    ],
  ])('a definition with %s is refused, naming the place', async (_, query, message) => {
    expect(await refusal(query)).toContain(message)
  })

  it('a member beside the query is refused, naming the place', async () => {
    const siblings = { group_by: ['a'], aggregate: { n: { $sun: 'b' } } }
    expect(await refusal({}, { sources: ['orders'], siblings })).toContain(
      '/aggregate/n/$sun is not',
    )
    expect(await refusal({ group_by: 'b' }, { sources: ['orders'], siblings })).toContain(
      '/group_by is another name',
    )
    const union = { union: [of(['a']), of(['a'])] }
    expect(await refusal(union, { siblings })).toContain('/group_by cannot stand beside union')
    expect(await refusal({ ...union, limit: 5, where: true })).toContain(
      '/query/where cannot stand',
    )
  })
})

describe('documentation of views', () => {
  const file = new URL('../../../../../docs/views.md', import.meta.url)
  const definitions = readFileSync(file, 'utf8')
    .split('\n## ')
    .find((each) => each.startsWith('Definitions'))
  const examples = [...(definitions ?? '').matchAll(/```json\n(.*?)```/gs)].map(
    ([, text = '']) => text,
  )

  it('the documentation has examples of the grammar and of every short form', () => {
    expect(examples.length).toBe(7)
  })

  it.each(examples)('the example of the documentation is right: %s', async (text) => {
    const { query, source_collections: sources, name, ...siblings } = JSON.parse(text)
    const isRequest = name !== undefined
    await (isRequest ? read(query, { sources, siblings }) : read(JSON.parse(text)))
  })
})

describe('source_collections', () => {
  it('the member source_collections must name what the query reads and nothing else', async () => {
    const query = of(['a'], { where: { $in: ['a', { select: ['b'], from: 'other::items' }] } })
    const { models } = await read(query, { sources: ['orders', 'other::items'] })
    expect(models).toEqual(['app::orders', 'other::items'])
    expect(listModels(query, { app: 'app' })).toEqual(models)
    expect(await refusal(query, { sources: ['orders'] })).toBe(
      '/source_collections lacks other::items, which the query reads',
    )
    expect(await refusal(query, { sources: ['orders', 'items', 'other::items'] })).toBe(
      '/source_collections/1 is app::items, which the query does not read; it reads app::orders, other::items',
    )
  })

  it('the first of source_collections is the source of a query that names none', async () => {
    const { definition } = await read({ find: { a: 1 } }, { sources: ['orders'] })
    expect(definition).toEqual({ select: ['*'], from: 'app::orders', find: { a: 1 } })
  })
})

describe('definitions of views', () => {
  it('a definition in canonical form is read as itself', async () => {
    const query = {
      with: [{ t: { select: ['a', 'b'], from: 'app::orders' } }],
      select: ['t.*', { n: { $count: 'i.*' } }, { m: { $last: 'i.price' } }],
      from: 't',
      joins: [
        {
          join: { i: 'app::items' },
          type: 'left',
          on: { $find: { a: '$data.a' }, of: 'i', data: 'o' },
        },
      ],
    }
    const canonical = { ...query, from: { o: 'app::orders' }, select: ['o.a'] }
    expect((await read(canonical)).definition).toEqual(canonical)
  })

  it('a definition keeps the types that its sources declare', async () => {
    const types = new Map<string, ValueType>([['amount', 'number']])
    const { query } = await read(of(['amount', 'status']), { typesOf: () => types })
    const columns = query.kind === 'select' ? query.columns : []
    expect(columns.map((column) => column.expression.type)).toEqual(['number', 'json'])
  })

  it('a definition orders by fields whose names look like directions where they are said to be fields', async () => {
    const order_by = [{ by: 'a desc' }, { by: '-a' }]
    const { definition, query } = await read(of(['a'], { order_by, limit: 1 }))
    expect(definition.order_by).toEqual(order_by)
    expect(query.orderBy).toHaveLength(2)
    const { definition: made } = await parseViewSql(
      'CREATE MATERIALIZED VIEW app::v AS SELECT a FROM app::orders ORDER BY "a desc", "-a" LIMIT 1',
      'app',
    )
    expect(made.order_by).toEqual(order_by)
  })

  it('a definition gives its order to readers, and keeps it only where it chooses rows', async () => {
    const order_by = [{ by: 'n', direction: 'desc' }, 'a']
    const query = of(['a', { n: { $count: '*' } }], { group_by: ['a'], order_by })
    const { query: all, defaultOrder } = await read(query)
    expect(all.orderBy).toEqual([])
    expect(defaultOrder).toEqual([
      { column: 'n', descending: true, nulls: undefined },
      { column: 'a', descending: false, nulls: undefined },
    ])
    const cut = await read({ ...query, limit: 3 })
    expect(cut.query.orderBy).toHaveLength(2)
    expect(cut.defaultOrder).toEqual(defaultOrder)
  })
})

describe('views over views', () => {
  const views: Record<string, ViewDefinition> = {
    'app::totals': {
      select: ['status', { total: { $sum: 'amount' } }],
      from: 'app::orders',
      group_by: ['status'],
    },
    'app::loop': { select: ['*'], from: 'app::back' },
    'app::back': { select: ['*'], from: 'app::loop' },
  }
  const findView = (model: string) => views[model]

  it('a view over views reads the queries of these as they are defined', async () => {
    const { query, models } = await read(
      { from: 'totals', find: { total: { gt: 5 } } },
      { viewOf: findView },
    )
    expect(models).toEqual(['app::totals'])
    expect(query).toMatchObject({ from: [{ kind: 'query', query: { grouped: true } }] })
  })

  it('a view that would read itself is refused by the names on the way', async () => {
    const message = '/query makes a view read itself: app::loop → app::back → app::loop'
    expect(await refusal({ from: 'loop' }, { viewOf: findView })).toBe(message)
    const self = { viewOf: findView, self: 'app::totals' }
    expect(await refusal({ from: 'totals' }, self)).toContain('app::totals → app::totals')
  })

  it(`a view lies over ${limits.viewDepthMax} views at most`, async () => {
    const tower = (model: string): ViewDefinition | undefined => {
      const level = Number(/^app::v(\d+)$/.exec(model)?.[1] ?? 0)
      return level === 0 ? undefined : { select: ['*'], from: `app::v${level - 1}` }
    }
    const over = (level: number) => ({ from: `v${level}` })
    await read(over(limits.viewDepthMax), { viewOf: tower, self: 'app::x' })
    expect(await refusal(over(limits.viewDepthMax + 1), { viewOf: tower })).toContain(
      '/query reads a',
    )
  })

  it('a view over a view is refused where it needs records that the lower view does not have', async () => {
    expect(
      await refusal(of([{ n: { $first: 'total' } }], { from: 'totals' }), { viewOf: findView }),
    ).toContain('/query/select/0/n has an order of storing, which totals has not')
  })
})
