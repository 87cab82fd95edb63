import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import type { TestApp, TestService } from '../support/service.ts'
import { type Asked, askByHttp, askUncached } from './uncached.ts'

const words = ['alpha', 'beta', 'gamma']
const wordParameter = { name: 'word', field_path: 'word', required: false }

export type Place = { readonly home: Data; readonly other: Data; readonly grants: string[] }

/**
 * Creates two applications, one of which reads the other's records too: joined, and in a view that it was granted.
 */
export async function openPlace(service: TestService): Promise<Place> {
  const home = await createData(service)
  const other = await createData(service)
  await home.create({ name: 'items', access_policy: 'public' })
  await other.create({ name: 'notes', access_policy: 'public' })
  await home.store(
    'items',
    words.map((word, n) => ({ id: `i${n}`, word, n })),
  )
  await other.store('notes', [{ id: 'n1', item: 'i1', text: 'first' }])
  const set = await home.call('POST', '/datasets', dataSet(0))
  expect(set.status, set.text).toBe(201)
  const place = { home, other, grants: [] }
  await toggleGrant(place)
  const perWord = { select: ['word'], group_by: ['word'], aggregate: { total: { $sum: 'n' } } }
  for (const refresh_mode of ['live', 'lazy'])
    await made(home, '/views', {
      name: refresh_mode,
      source_collections: ['items'],
      query: perWord,
      refresh_mode,
    })
  await made(home, '/views', {
    name: 'granted',
    source_collections: [`${other.appId}::notes`],
    query: { select: ['item', 'text'] },
  })
  await made(other, '/views', {
    name: 'live',
    source_collections: ['notes'],
    query: { select: ['item', 'text'] },
    refresh_mode: 'live',
  })
  const [own, foreign] = [`"${home.appId}"`, `"${other.appId}"`]
  for (const query of [
    { name: 'list', source_collection: 'items', parameters: [wordParameter] },
    {
      name: 'member',
      source_collection: 'items',
      base_query: { find: { word: { inDataset: 'set' } } },
    },
    {
      name: 'joined',
      sql: `SELECT i.id, i.n, o.text FROM ${own}::items i JOIN ${foreign}::notes o ON o.item = i.id ORDER BY i.id, o.text`,
    },
    { name: 'foreign', source_collection: `${other.appId}::notes` },
    { name: 'live', source_collection: 'live', base_query: { sort: ['word'] } },
    { name: 'lazy', source_collection: 'lazy', base_query: { sort: ['word'] } },
    { name: 'granted', source_collection: 'granted', base_query: { sort: ['item'] } },
    {
      name: 'far',
      sql: `SELECT i.id, v.text FROM ${own}::items i JOIN ${foreign}::live v ON v.item = i.id ORDER BY i.id, v.text`,
    },
  ])
    await made(home, '/queries', query)
  return place
}

const queries = ['list', 'member', 'joined', 'foreign', 'live', 'lazy', 'granted', 'far'] as const

async function made(data: Data, path: string, body: object): Promise<void> {
  const reply = await data.call('POST', path, body)
  expect(reply.status, reply.text).toBe(201)
}

function dataSet(draw: number) {
  return { name: 'set', kind: 'values', entries: words.slice(draw % 3) }
}

async function toggleGrant({ home, other, grants }: Place): Promise<void> {
  const last = grants.pop()
  if (last !== undefined) {
    await other.call('POST', `/grants/${last}/revoke`, {})
    return
  }
  const grant = { grantee: home.appId, collection: 'notes' }
  const { status, body } = await other.call('POST', '/grants', grant)
  if (status === 201) grants.push(body.id)
}

type Change = (place: Place, draw: number) => Promise<unknown>

/** The changes that may happen between two reads; some are refused at times, and a refused one changes nothing. */
const changes = {
  store: ({ home }, draw) =>
    home.store('items', [{ id: `i${draw % 5}`, word: words[draw % 3], n: draw }]),
  storeElsewhere: ({ other }, draw) =>
    other.store('notes', [{ id: `n${draw % 3}`, item: `i${draw % 5}`, text: words[draw % 3] }]),
  remove: ({ home }, draw) => home.store('items', [{ id: `i${draw % 5}`, deleted: true }]),
  refresh: ({ home }, draw) =>
    home.call('POST', `/views/${draw % 2 === 0 ? 'lazy' : 'granted'}/refresh`, {}),
  grant: (place) => toggleGrant(place),
  replaceDataSet: ({ home }, draw) => home.call('POST', '/datasets', dataSet(draw)),
  open: ({ home }, draw) =>
    home.call('PUT', '/collections/items', {
      access_policy: draw % 2 === 0 ? 'public' : 'private',
    }),
  allowDerive: ({ other }, draw) =>
    other.call('PUT', '/collections/notes', {
      access_policy: { read: 'public', ...(draw % 3 === 0 && { derive: 'deny' }) },
    }),
  price: ({ home }, draw) => home.call('PUT', '/pricing', { rules: makeRules(draw) }),
  priceElsewhere: ({ other }, draw) => other.call('PUT', '/pricing', { rules: makeRules(draw) }),
  newVersion: ({ home, other }, draw) => {
    const [name, source] = versioned(draw, other)
    return home.call('POST', '/queries', {
      name,
      source_collection: source,
      base_query: { limit: 1 + (draw % 4) },
      ...(name === 'list' && { parameters: [wordParameter] }),
      ...(draw % 5 === 0 && { price: { per_row: '5' } }),
    })
  },
  deleteVersion: ({ home, other }, draw) => {
    const [name] = versioned(draw, other)
    return home.call('DELETE', `/queries/${name}?version=${2 + (draw % 3)}`)
  },
  index: ({ home }, draw) =>
    home.call('POST', '/indexes', {
      collection: 'items',
      field_name: draw % 2 === 0 ? 'word' : 'n',
    }),
} as const satisfies Readonly<Record<string, Change>>

export type ChangeName = keyof typeof changes

export const changeNames = Object.keys(changes).filter(
  (name): name is ChangeName => name in changes,
)

export function change(place: Place, name: ChangeName, draw: number): Promise<unknown> {
  return changes[name](place, draw)
}

function versioned(draw: number, other: Data): readonly [name: string, source: string] {
  const sources = [
    ['list', 'items'],
    ['live', 'live'],
    ['foreign', `${other.appId}::notes`],
  ] as const
  return sources[draw % 3] ?? sources[0]
}

function makeRules(draw: number): object[] {
  const rule = { operation: 'read', model: 'per_row', amount: '4' }
  const targets = [
    { query: 'list' },
    { query: 'live' },
    { collection: 'items' },
    { collection: 'notes' },
  ]
  return draw % 3 === 0 ? [{ ...rule, target: targets[draw % 4] }] : []
}

/** Each read is made twice, so that the second may use the cached result of the first. */
export async function compareAll(service: TestService, place: Place, draw: number): Promise<void> {
  for (const [at, name] of queries.entries()) {
    const callers: (TestApp | undefined)[] = [undefined, undefined, place.home, place.other]
    const by = callers[(draw + at) % 4]
    const format = (['json', 'csv', 'ndjson'] as const)[(draw + at) % 3] ?? 'json'
    const word = words[draw % 3] ?? ''
    const asked: Asked = {
      app: place.home.appId,
      name,
      values: { limit: '3', ...(name === 'list' && draw % 2 === 0 && { word }) },
      format,
      ...(draw % 7 === 0 && { version: 1 }),
      ...(by && { by }),
    }
    for (let time = 0; time < 2; time++) await compare(service, asked)
  }
}

/**
 * A view that is refreshed meanwhile may change between two runs, so the answer before and the one after are both
 * good.
 */
async function compare(service: TestService, asked: Asked): Promise<void> {
  const what = JSON.stringify({ ...asked, by: asked.by?.appId })
  const before = await askUncached(service, asked)
  const found = await askByHttp(service, asked)
  if (!isDeepStrictEqual(found, before))
    expect(found, what).toEqual(await askUncached(service, asked))
}
