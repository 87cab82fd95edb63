import { collections, fewTotal, placesPerRegion, regionsOf, titleOf } from './engine-data.ts'
import { groupByHand, joinByHand, listStatement } from './engine-statements.ts'
import { httpGet, httpRequest } from './load.ts'
import { app } from './place.ts'

/** What is asked of our service, and what the bare server does for the same answer. */
export type Case = {
  readonly name: string
  readonly target: number
  readonly connections: number
  /** Requests of one round. */
  readonly count: number
  readonly path: '/list' | '/query/sql'
  readonly body: (at: number) => Record<string, unknown>
  /** Where it is not the statement that our service makes. */
  readonly byHand?: { readonly text: string; readonly valuesOf: (at: number) => readonly unknown[] }
  readonly note: string
}

const rootOf = (name: string) => `${app}::${name}`
const items = rootOf(collections.items.name)
/** Visits all of so many, in no order that caches would like. */
const spread = (at: number, total: number) => (at * 7919) % total
const pricesTotal = 10_000

/** One record by a field that tells records apart, indexed but not the key. */
export function lookup(total: number): Case {
  return {
    name: 'point lookup by an indexed field',
    target: 0.7,
    connections: 16,
    count: 8000,
    path: '/list',
    body: (at) => ({
      root: items,
      find: { title: { is: titleOf(spread(at, total), total) } },
      limit: 20,
    }),
    note: 'the same SQL',
  }
}

/** The same in the collection that stays small. */
export function fewLookup(): Case {
  const body = (at: number) => ({
    ...lookup(fewTotal).body(at),
    root: rootOf(collections.few.name),
  })
  return { ...lookup(fewTotal), body }
}

export function casesOf(total: number): readonly Case[] {
  const sorted = (width: number, limit: number) => (at: number) => {
    const from = (spread(at, pricesTotal - width) * 100 + (at % 100)) / 100
    const find = { price: { between: { from, to: from + width } } }
    return { root: items, find, sortBy: 'price', limit }
  }
  // So wide that a page is full of whatever size the collection is.
  const widthOf = (rows: number) => Math.min((pricesTotal * rows * 2) / total, pricesTotal / 2)
  const group = (nested: boolean) => ({ text: groupByHand(nested), valuesOf: () => [] })
  return [
    lookup(total),
    {
      name: 'range, sorted, limit 20',
      target: 0.8,
      connections: 16,
      count: 3000,
      path: '/list',
      body: sorted(widthOf(50), 20),
      note: 'the same SQL; about 100 match and are counted',
    },
    {
      name: 'range, sorted, 1,000 records',
      target: 0.8,
      connections: 4,
      count: 200,
      path: '/list',
      body: sorted(widthOf(1000), 1000),
      note: 'the same SQL; about 2,000 match and are counted',
    },
    {
      name: 'join of 100 parents with 10 children each',
      target: 0.7,
      connections: 4,
      count: 200,
      path: '/list',
      body: (at) => ({
        root: rootOf(collections.places.name),
        find: {
          region: { is: regionOf(at, total) },
          items: { resolve: { find: { city: { is: '$data.city' } } }, model: 'items', many: true },
        },
        limit: placesPerRegion,
      }),
      byHand: {
        text: joinByHand,
        valuesOf: (at) => [JSON.stringify(regionOf(at, total)), placesPerRegion],
      },
      note: 'SQL by hand',
    },
    {
      name: 'group of all records, count and sum, by /list',
      target: 0.9,
      connections: 1,
      count: 3,
      path: '/list',
      body: () => groups,
      byHand: group(true),
      note: 'SQL by hand; 97 groups',
    },
    {
      name: 'group of all records, count and sum, by SQL',
      target: 0.9,
      connections: 1,
      count: 3,
      path: '/query/sql',
      body: () => ({
        sql: `SELECT stock.warehouse AS warehouse, count(*) AS count, sum(price) AS total FROM ${items} GROUP BY stock.warehouse ORDER BY warehouse`,
      }),
      byHand: group(false),
      note: 'SQL by hand; 97 groups',
    },
  ]
}

const groups = {
  root: items,
  group_by: 'stock.warehouse',
  aggregate: { count: { $count: '*' }, total: { $sum: 'price' } },
}

function regionOf(at: number, total: number): string {
  return `region-${spread(at, regionsOf(total))}`
}

/** The heavy query that runs beside others. */
export const groupRequest = httpRequest('/list', JSON.stringify(groups))

export function ourRequest({ path, body }: Case, at: number): Buffer {
  return httpRequest(path, JSON.stringify(body(at)))
}

export function bareStatement({ body, byHand }: Case, at: number) {
  return byHand === undefined
    ? listStatement(body(at))
    : { text: byHand.text, values: byHand.valuesOf(at) }
}

export function bareRequest(one: Case, at: number): Buffer {
  const { values } = bareStatement(one, at)
  return httpRequest('/query', JSON.stringify({ name: one.name, values }))
}

const fields = 'id: rowId city price title tags stock active description'
const operation = `query Items($title: String!) { allItemsList(condition: {title: $title}, first: 20) { ${fields} } }`

/** The lookup as GraphQL. */
export function postgraphileRequest(at: number, total: number): Buffer {
  const variables = { title: titleOf(spread(at, total), total) }
  return httpRequest('/graphql', JSON.stringify({ query: operation, variables }))
}

export function postgraphileRecords(text: string): readonly unknown[] {
  return JSON.parse(text).data.allItemsList
}

/** The lookup as Directus has it. */
export function directusRequest(at: number, total: number): Buffer {
  const title = encodeURIComponent(titleOf(spread(at, total), total))
  return httpGet(`/items/items?filter[title][_eq]=${title}&limit=20`)
}

export function directusRecords(text: string): readonly unknown[] {
  return JSON.parse(text).data
}
