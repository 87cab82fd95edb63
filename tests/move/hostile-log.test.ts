import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseViewSql } from '../../packages/server/src/views/definition/parse-view-sql.ts'
import { createFundedBuyer, list } from '../support/buyer.ts'
import type { Data } from '../support/data.ts'
import { type Hostile, type HostileScene, openHostileScene, type Written } from './stranger.ts'

// A log that a stranger has forged, entry by entry: what no request would take in must not come in by an import.

const at = '2026-01-31T12:00:00.000Z'

let scene: HostileScene
beforeAll(async () => {
  scene = await openHostileScene({ devnet: true })
})
afterAll(() => scene?.close())

async function exportWith(...definitions: readonly Written[]): Promise<Hostile> {
  return scene.stranger.exportChanged(await scene.stranger.createDefining(...definitions))
}

const view = (more: object): Written => ({
  kind: 'view',
  id: 'view_1',
  body: {
    ...{ id: 'view_1', app: 'any', number: 50, name: 'all', refresh_mode: 'lazy' },
    ...{ query: {}, source_collections: [], sources: [], reads: [], inner: {}, types: {} },
    ...{ positions: {}, variables: null, description: null, access_policy: null, created_at: at },
    ...more,
  },
})

const query = (more: object): Written => ({
  kind: 'query',
  id: 'q@1',
  body: { name: 'q', parameters: [], version: 1, sources: ['notes'], created_at: at, ...more },
})

const collection = (more: object): Written => ({
  kind: 'collection',
  id: 'col_1',
  body: {
    ...{ id: 'col_1', number: 60, name: 'sold', namespace: 'any', primary_column: 'id' },
    ...{ sort_column: null, collection_type: 'document', schema_definition: null },
    ...{ access_policy: { read: 'public', price: { per_access: '1000' } } },
    ...{ created_at: at, updated_at: at, ...more },
  },
})

/** Few words that stand for millions of parts: each has its first operand four times. */
const endless = (operand: string) =>
  Array.from({ length: 9 }).reduce<string>(
    (inner) => `CASE WHEN ${inner} BETWEEN SYMMETRIC 'a' AND 'b' THEN 'x' END`,
    operand,
  )

const listFields = (count: number) => Array.from({ length: count }, (_, at) => `a${at}`)
const sum = (terms: number) => listFields(terms).join(' + ')

/** A view that is read quickly, and of which much is to be written. */
async function writeLongView({ appId: app }: Data): Promise<Written> {
  const sql = `CREATE MATERIALIZED VIEW "${app}"::long AS SELECT b, max(c) AS high FROM "${app}"::notes
    WHERE ${sum(200)} BETWEEN SYMMETRIC ${sum(20)} AND ${sum(200)} GROUP BY b`
  const { definition: query } = await parseViewSql(sql, app)
  return view({ app, name: 'long', query })
}

describe('blocks after the one that the manifest names as the last', () => {
  test('they are not taken in: nobody has judged what they define', async () => {
    const { data } = await scene.away.running.service.tenants.load(scene.victim.appId)
    const id = data.catalog.byName.get('private')?.id ?? ''
    const model = `${scene.victim.appId}::private`
    const mover = await scene.stranger.createMover()
    await scene.stranger.define(
      mover,
      view({
        ...{ app: mover.appId, query: { from: model, select: { word: `${model}.word` } } },
        ...{
          reads: [{ model, app: scene.victim.appId, id }],
          positions: { [scene.victim.appId]: 2 },
        },
      }),
    )
    const exported = await scene.stranger.exportChanged(mover, (manifest) => {
      manifest.height -= 1
    })
    expect(await scene.importInto(exported)).toMatchObject({
      equal: false,
      difference: { what: 'the height', expected: 1, found: 2 },
    })
    expect((await scene.away.request('GET', `/api/apps/${mover.appId}`)).status).toBe(404)
  })
})

describe('definitions that would harm others', () => {
  test('names that the ledger of the service could not keep are refused', async () => {
    const exports = new Map<string, Hostile>()
    for (const [what, name] of [
      ['a name with U+0000', 'sold\u0000'],
      ['a name that is too long for an index', 's'.repeat(10_000)],
      ['a name with half of a surrogate pair', 'sold\ud800'],
    ] as const) {
      exports.set(`${what}, of a collection`, await exportWith(collection({ name })))
      exports.set(`${what}, of a view`, await exportWith(view({ name })))
      exports.set(`${what}, of a query`, await exportWith(query({ name, source_collection: 'a' })))
    }
    await scene.expectRefusals(exports, /its name is "/)
  })

  test('what takes more steps than a request may take is refused, a view even if it is deleted since', async () => {
    const mover = await scene.stranger.createMover()
    const { appId } = mover
    const sql = `SELECT ${endless('a')} AS word FROM "${appId}"::notes`
    await scene.stranger.define(mover, query({ sql }))
    const exports = new Map([['a query', await scene.stranger.exportChanged(mover)]])
    const seller = await scene.stranger.createMover()
    await scene.stranger.define(seller, await writeLongView(seller))
    exports.set('what is written of a view', await scene.stranger.exportChanged(seller))
    const wide = { $in: [{ $add: listFields(80) }, listFields(300)] }
    const read = view({ query: { from: 'shop::notes', select: ['b'], where: wide } })
    const removal = { ...read, body: undefined }
    exports.set('what is read of a view', await exportWith(read))
    exports.set('what is read of a view that is deleted since', await exportWith(read, removal))
    await scene.expectRefusals(exports, /too complex/)
  })

  test('a rule of prices with two targets is refused: it would stand among the rules of the second', async () => {
    const both = { collection: 'notes', view: 'all' }
    const rule = (target: object, more: object) => ({ target, operation: 'read', ...more })
    const pricing = {
      kind: 'pricing',
      id: 'pricing',
      body: {
        rules: [
          rule(both, { model: 'minimum', amount: '1000000' }),
          rule({ view: 'all' }, { model: 'maximum', amount: '5' }),
        ],
      },
    }
    await scene.expectRefusals(
      new Map([['two targets', await exportWith(pricing)]]),
      /no one target/,
    )
  })

  test('a query that reads another application without saying so is refused', async () => {
    const sql = `SELECT word FROM "${scene.victim.appId}"::private`
    const base = { source_collection: `${scene.victim.appId}::private`, base_query: {} }
    const exports = new Map([
      ['SQL', await exportWith(query({ sql, sources: [] }))],
      ['a base query', await exportWith(query({ ...base, sources: [] }))],
    ])
    await scene.expectRefusals(exports, /reads the application .*, which has granted nothing here/)
  })
})

test('a definition that a request could have made is sold where it goes', async () => {
  const mover = await scene.stranger.createDefining(collection({}))
  await mover.store('sold', [{ id: 'a', word: 'x' }])
  expect(await scene.importInto(await scene.stranger.exportChanged(mover))).toMatchObject({
    equal: true,
  })
  const buyer = await createFundedBuyer(scene.away)
  const asked = list({ root: `${mover.appId}::col_1`, limit: 1 })
  expect((await buyer.buy(scene.away, asked)).body.records).toEqual([{ id: 'a', word: 'x' }])
})

describe('definitions as large as a request may send them move', () => {
  test('a query, whose characters may have several bytes', async () => {
    const mover = await scene.stranger.createMover()
    const empty = { name: 'large', source_collection: 'notes', example_response: '' }
    const chars = limits.queryDefinitionBytesMax - JSON.stringify(empty).length
    const query = { ...empty, example_response: 'ä'.repeat(chars) }
    const made = await mover.call('POST', '/queries', query)
    expect(made.status, made.text).toBe(201)
    expect(await scene.importInto(await scene.stranger.exportChanged(mover))).toMatchObject({
      equal: true,
    })
  })

  test('an API, whose headers are longer once they are sealed', async () => {
    const mover = await scene.stranger.createMover()
    const fill = <T>(count: number, make: (at: number) => T) =>
      Array.from({ length: count }, (_, at) => make(at))
    const value = 'x'.repeat(limits.upstreamHeaderCharsMax)
    const headers = fill(limits.upstreamHeadersMax, (at) => [`x-${at}`, value] as const)
    const upstream = { url: 'https://api.example.com/v1', headers: Object.fromEntries(headers) }
    const values = fill(100, (at) => `${at}${'v'.repeat(190)}`)
    const parameters = fill(2, (at) => ({ name: `p${at}`, values }))
    const made = await mover.call('POST', '/api-collections', { name: 'a', upstream, parameters })
    expect(made.status, made.text).toBe(201)
    expect(await scene.importInto(await scene.stranger.exportChanged(mover))).toMatchObject({
      equal: true,
    })
  })
})
