import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compileList } from './compile-list.ts'
import type { VectorSearch } from './compile-nearest.ts'
import { compileIndex } from './index-key.ts'
import { type ListRequest, parseList } from './list-query.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
  type TestVersion,
} from './test-collection.test-support.ts'
import type { Measure } from './vector.ts'

// Debian has no pgvector, so these statements run on PostgreSQL in WebAssembly, which has it.

const measures: readonly Measure[] = ['cosine', 'l2', 'inner_product']
const schema = 'extensions'
const caps = { rows: 1_000, bytes: 1_000_000 }

/** A double of any digits, but none so small that no request may have it. */
const decimal = fc
  .double({ min: -1, max: 1, noNaN: true })
  .map((each) => (Math.abs(each) < 1e-30 ? 0 : each))

let server: PGlite
let run: RunSql
beforeAll(async () => {
  server = await PGlite.create({ extensions: { vector } })
  run = async (text, values = []) =>
    (await server.query<Record<string, unknown>>(text, [...values])).rows
  await run(`CREATE SCHEMA ${schema}`)
  await run(`CREATE EXTENSION vector SCHEMA ${schema}`)
  await run('SET search_path = pg_catalog')
  await createTestSchema(run, 'app')
})
afterAll(() => server?.close())

async function ask(table: string, request: ListRequest, vectorSearch?: VectorSearch) {
  const { text, values } = compileList(parseList(request), {
    schema: 'app',
    table,
    caps,
    total: false,
    vectorSearch,
  })
  const [row] = await run(text, values)
  return { records: row?.records, approximate: row?.approximate }
}

function makeVersions(lists: readonly unknown[]): TestVersion[] {
  return lists.map((v, at) => ({ body: JSON.stringify({ id: at, even: at % 2 === 0, v }) }))
}

/** Values that are no vector of three numbers, or one that single precision does not hold. */
const strangers: readonly string[] = [
  'null',
  '"[1,2,3]"',
  '{"a":1}',
  'true',
  '5',
  '[]',
  '[1,2]',
  '[1,2,3,4]',
  '[1,2,"3"]',
  '[1,2,null]',
  '[[1,2,3]]',
  '[1,[2],3]',
  '[[1],2,3]',
  '[[1,2],3,4]',
  '[1,2,{}]',
  '[1,2,true]',
  '[0,0,0]',
  '[1e38,1,1]',
  '[1e39,1,1]',
  '[1e98,1,1]',
  '[1e120,1,1]',
  '[-1e16,1,1]',
  '[1e-30,1e-30,0]',
  '[1e-60,0,0]',
  '[1e-120,1,0]',
  `[0.${'1'.repeat(120)},1,1]`,
  `[0.${'1'.repeat(40)},1,1]`,
  `[${'9'.repeat(15)},${'9'.repeat(16)},1]`,
]

describe('nearest with pgvector, exactly', () => {
  it('gives the very answers of the scan, ties and values that are no such list included', async () => {
    const random = fc.sample(
      fc.array(
        fc.oneof(
          fc.integer({ min: -3, max: 3 }),
          decimal,
          // These differ from 0.1 in double precision only.
          fc.constantFrom(0.1, 0.1 + 2 ** -50, 0.1 - 2 ** -50, 0.1 + 2 ** -40),
        ),
        { minLength: 3, maxLength: 3 },
      ),
      { numRuns: 300, seed: 7 },
    )
    await createTestCollection(run, 'app.mixed', [
      ...makeVersions(random),
      ...strangers.map((v) => ({ body: `{"even":true,"v":${v}}` })),
      { body: '{"even":true}' },
    ])
    const targets = [...random.slice(0, 5), [0.1, 0.1, 0.1], [1e14, 1, 1], [1e-9, 0, 1e-9]]
    for (const to of targets.filter((list) => list.some((each) => each !== 0)))
      for (const measure of measures)
        for (const page of [{ limit: 1 }, { limit: 7, offset: 3 }, { limit: 400 }, { limit: 0 }]) {
          const request = {
            find: { even: true },
            nearest: { field: 'v', to, measure, as: 'd' },
            ...page,
          }
          expect(await ask('mixed', request, { schema, isIndexed: false })).toEqual(
            await ask('mixed', request),
          )
        }
  })

  it('compares by the scan alone where single precision does not hold the list that is asked about', async () => {
    const place = { schema: 'app', table: 'mixed', caps, total: false }
    for (const to of [
      [1e90, 1, 1],
      [1e-90, 0, 0],
      [0, 0, 0],
    ]) {
      const query = parseList({ nearest: { field: 'v', to, approximate: true }, limit: 3 })
      expect(compileList(query, { ...place, vectorSearch: { schema, isIndexed: true } })).toEqual(
        compileList(query, place),
      )
    }
  })

  it('bounds the errors of single precision: lists that are nearer to each other than these come in the exact order', async () => {
    // All at nearly the same distance; only the last decimals tell them apart.
    const count = 64
    const lists = Array.from({ length: 200 }, (_, at) =>
      Array.from(
        { length: count },
        (_, k) => Math.sin(k + 1) + (k === at % count ? ((at * 7919) % 200) * 3e-9 : 0),
      ),
    )
    await createTestCollection(run, 'app.close', makeVersions(lists))
    const to = Array.from({ length: count }, (_, k) => Math.cos(k + 1))
    for (const measure of measures) {
      const request = { nearest: { field: 'v', to, measure, as: 'd' }, limit: 20 }
      const answer = await ask('close', request, { schema, isIndexed: false })
      expect(answer).toEqual(await ask('close', request))
    }
  })
})

describe.each(measures)('an index of vectors by %s', (measure) => {
  const table = `near_${measure}`
  const numbers = 8
  // Parts of sines of large numbers are as good as random ones, and the same in each run.
  const lists = Array.from({ length: 2_000 }, (_, at) =>
    Array.from({ length: numbers }, (_, k) => Math.sin((at * numbers + k) ** 2 + 1)),
  )
  const [first = []] = lists
  const search = { schema, isIndexed: true }
  const request = (more: object = {}, also: object = {}) => ({
    nearest: { field: 'v', to: first, measure, as: 'd', approximate: true, ...also },
    limit: 10,
    ...more,
  })

  beforeAll(async () => {
    await createTestCollection(run, `app.${table}`, makeVersions(lists))
    const { text } = compileIndex({
      schema: 'app',
      table,
      name: `${table}_idx`,
      paths: [['v']],
      method: 'vector',
      vectors: { numbers, measure },
      extensionSchema: schema,
    })
    await run(text)
    // So small a table is read from end to end otherwise.
    await run('SET enable_seqscan = off')
  })

  it('gives the records, with their exact distances in the exact order, and says that it is approximate', async () => {
    const { text, values } = compileList(parseList(request()), {
      schema: 'app',
      table,
      caps,
      total: false,
      vectorSearch: search,
    })
    const plan = JSON.stringify(await run(`EXPLAIN ${text}`, values))
    expect(plan).toContain(`Index Scan using ${table}_idx`)
    const answer = await ask(table, request(), search)
    expect(answer.approximate).toBe(true)
    expect(answer.records).toEqual((await ask(table, request())).records)
  })

  it('is not used by a search that does not ask for it', async () => {
    const { text } = compileList(parseList(request({}, { approximate: false })), {
      schema: 'app',
      table,
      caps,
      total: false,
      vectorSearch: search,
    })
    expect(text).not.toContain('hnsw')
  })

  it('gives as many records as match, however few the conditions leave', async () => {
    const rare = { find: { id: { in: [5, 900, 1_900] } } }
    const few = await ask(table, request(rare), search)
    expect(few).toEqual({ ...(await ask(table, request(rare))), approximate: false })
    const half = await ask(table, request({ find: { even: true }, limit: 50, offset: 100 }), search)
    expect(JSON.parse(`[${half.records}]`)).toHaveLength(50)
  })

  it('lets every value be written and read, and still finds what it cannot hold where the search is exact', async () => {
    const wide = strangers.filter((v) => /^\[.+,/.test(v)).map((v) => v.replace('[', '[9,9,9,9,9,'))
    const strange = [...strangers, ...wide].map((v) => `{"v":${v}}`)
    for (const [at, body] of strange.entries())
      await run(
        `INSERT INTO app.${table} VALUES (${10_000 + at}, 2, ${at}, 'k${at}', false, NULL, $1::jsonb, $1)`,
        [body],
      )
    const exact = { ...request({ limit: 500 }), approximate: false }
    expect((await ask(table, exact, { schema, isIndexed: false })).records).toEqual(
      (await ask(table, exact)).records,
    )
    expect((await ask(table, request(), search)).approximate).toBe(true)
    await run(`REINDEX INDEX app.${table}_idx`)
    expect((await ask(table, request(), search)).approximate).toBe(true)
  })
})
