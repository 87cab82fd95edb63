import { collections, countRegions, fewTotal, getTitle, placesPerRegion } from './engine-data.ts'
import { compileListStatement, groupByHand, joinByHand, sumsByHand } from './engine-statements.ts'
import { makeHttpGet, makeHttpRequest } from './load.ts'
import { app } from './place.ts'

/** The request to our service, and the statement with which the bare server gives the same answer. */
export type Case = {
  readonly name: string
  readonly target: number
  readonly connections: number
  /** Requests of one round. */
  readonly count: number
  readonly path: '/list' | '/query/sql'
  readonly body: (at: number) => Record<string, unknown>
  /** The statement of the bare server, where it is not the one that our service makes. */
  readonly byHand?: {
    readonly text: string
    readonly makeValues: (at: number) => readonly unknown[]
  }
  readonly note: string
}

const toRoot = (name: string) => `${app}::${name}`
const items = toRoot(collections.items.name)
/** Visits all of `total` places, in no order that caches would like. */
const spread = (at: number, total: number) => (at * 7919) % total
const pricesTotal = 10_000

/** Looks up one record by a unique field that is indexed but is not the key. */
export function makeLookup(total: number): Case {
  return {
    name: 'point lookup by an indexed field',
    target: 0.7,
    connections: 16,
    count: 8000,
    path: '/list',
    body: (at) => ({
      root: items,
      find: { title: { is: getTitle(spread(at, total), total) } },
      limit: 20,
    }),
    note: 'the same SQL',
  }
}

/** The same lookup in the collection that stays small. */
export function makeFewLookup(): Case {
  const body = (at: number) => ({
    ...makeLookup(fewTotal).body(at),
    root: toRoot(collections.few.name),
  })
  return { ...makeLookup(fewTotal), body }
}

export function makeCases(total: number): readonly Case[] {
  const sorted = (width: number, limit: number) => (at: number) => {
    const from = (spread(at, pricesTotal - width) * 100 + (at % 100)) / 100
    const find = { price: { between: { from, to: from + width } } }
    return { root: items, find, sortBy: 'price', limit }
  }
  // The range is so wide that a page is full, whatever the size of the collection.
  const computeWidth = (rows: number) => Math.min((pricesTotal * rows * 2) / total, pricesTotal / 2)
  const group = (nested: boolean) => ({ text: groupByHand(nested), makeValues: () => [] })
  return [
    makeLookup(total),
    {
      name: 'range, sorted, limit 20',
      target: 0.95,
      connections: 16,
      count: 3000,
      path: '/list',
      body: sorted(computeWidth(50), 20),
      note: 'the same SQL; about 100 match and are counted',
    },
    {
      name: 'range, sorted, 1,000 records',
      target: 0.95,
      connections: 4,
      count: 200,
      path: '/list',
      body: sorted(computeWidth(1000), 1000),
      note: 'the same SQL; about 2,000 match and are counted',
    },
    {
      name: 'join of 100 parents with 10 children each',
      target: 0.9,
      connections: 4,
      count: 200,
      path: '/list',
      body: (at) => ({
        root: toRoot(collections.places.name),
        find: {
          region: { is: getRegion(at, total) },
          items: { resolve: { find: { city: { is: '$data.city' } } }, model: 'items', many: true },
        },
        limit: placesPerRegion,
      }),
      byHand: {
        text: joinByHand,
        makeValues: (at) => [JSON.stringify(getRegion(at, total)), placesPerRegion],
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
    {
      name: 'group by a declared text: count, sum, avg, min, max',
      target: 0.9,
      connections: 1,
      count: 5,
      path: '/query/sql',
      body: () => ({
        sql: `SELECT stock.warehouse AS warehouse, count(*) AS count, sum(price) AS total, avg(price) AS mean, min(price) AS least, max(price) AS most FROM ${items} GROUP BY stock.warehouse ORDER BY warehouse`,
      }),
      byHand: { text: sumsByHand, makeValues: () => [] },
      note: 'SQL by hand with plain casts over a table of key and jsonb, with indexes of both fields; 97 groups',
    },
  ]
}

const groups = {
  root: items,
  group_by: 'stock.warehouse',
  aggregate: { count: { $count: '*' }, total: { $sum: 'price' } },
}

function getRegion(at: number, total: number): string {
  return `region-${spread(at, countRegions(total))}`
}

/** The heavy query that runs beside others. */
export const groupRequest = makeHttpRequest('/list', JSON.stringify(groups))

export function makeOurRequest({ path, body }: Case, at: number): Buffer {
  return makeHttpRequest(path, JSON.stringify(body(at)))
}

export function makeBareStatement({ body, byHand }: Case, at: number) {
  return byHand === undefined
    ? compileListStatement(body(at))
    : { text: byHand.text, values: byHand.makeValues(at) }
}

export function makeBareRequest(one: Case, at: number): Buffer {
  const { values } = makeBareStatement(one, at)
  return makeHttpRequest('/query', JSON.stringify({ name: one.name, values }))
}

const fields = 'id: rowId city price title tags stock active description'
const operation = `query Items($title: String!) { allItemsList(condition: {title: $title}, first: 20) { ${fields} } }`

/** Makes the lookup as a GraphQL request. */
export function makePostgraphileRequest(at: number, total: number): Buffer {
  const variables = { title: getTitle(spread(at, total), total) }
  return makeHttpRequest('/graphql', JSON.stringify({ query: operation, variables }))
}

export function parsePostgraphileRecords(text: string): readonly unknown[] {
  return JSON.parse(text).data.allItemsList
}

/** Makes the lookup as a Directus request. */
export function makeDirectusRequest(at: number, total: number): Buffer {
  const title = encodeURIComponent(getTitle(spread(at, total), total))
  return makeHttpGet(`/items/items?filter[title][_eq]=${title}&limit=20`)
}

export function parseDirectusRecords(text: string): readonly unknown[] {
  return JSON.parse(text).data
}
