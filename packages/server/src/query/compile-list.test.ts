import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { type CompileListOptions, compileList } from './compile-list.ts'
import { type ListRequest, parseList } from './list-query.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
  type TestVersion,
} from './test-collection.test-support.ts'

const caps = { rows: 1_000, bytes: 1_000_000 }
const base: CompileListOptions = {
  schema: 'app',
  table: 'records',
  caps,
  total: true,
  primaryColumn: 'id',
}

const versions: readonly TestVersion[] = [
  { key: 'a', body: '{"id":"a","n":1}', supersededBy: 2 },
  { key: 'b', body: '{"id":"b","n":2}' },
  { key: 'a', body: '{"id":"a","n":10}' },
  { key: 'c', body: '{"id":"c","n":3}', supersededBy: 4 },
  { key: 'c', body: '{"id":"c","n":4,"deleted":true}', deleted: true },
  { key: '5', body: '{"id":5,"n":1.50}' },
]

describe('the text of a list statement', () => {
  const text = (request: ListRequest) => compileList(parseList(request), base).text

  it('the text is the same for all values of one shape, so that prepared statements are shared', () => {
    const one = {
      find: {
        a: { is: 'x' },
        b: { between: [1, 2] },
        c: { in: [1, 2] },
        d: { CIDR: '10.0.0.0/8' },
        e: { regExpMatches: 'a' },
      },
      limit: 5,
      offset: 1,
    }
    const other = {
      find: {
        a: { is: "'; DROP" },
        b: { between: [-1, 9] },
        c: { in: [7, 8, 'x'] },
        d: { CIDR: '::/0' },
        e: { regExpMatches: '^b+$' },
      },
      limit: 99,
      offset: 7,
    }
    expect(text(one)).toBe(text(other))
  })

  it('the text holds names of fields as constants only, whatever characters they have', () => {
    const name = `x'; DROP TABLE "t"; -- \\' $1`
    const compiled = compileList(
      parseList({ find: { [name]: { is: 1 } }, sortBy: name, select: { [name]: true } }),
      base,
    )
    const outside = compiled.text.replace(/E?'(?:''|\\\\|[^'])*'/g, '')
    expect(outside).not.toContain('DROP')
  })

  it('the text means the requested field, whatever others were named alike', () => {
    const named = (path: readonly string[]) =>
      text({ find: path.reduceRight<object>((inner, name) => ({ [name]: inner }), { is: 1 }) })
    const alike = [['["a","b"]'], ['a', 'b'], ['["a"]'], ['a'], ['"a"'], ['a,b'], ['__proto__']]
    const first = alike.map(named)
    expect(new Set(first).size).toBe(alike.length)
    expect(alike.map(named)).toEqual(first)
  })

  it('the text leaves nothing in memory about fields that are asked for no more', () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const heapAfter = (from: number, to: number) => {
      for (let at = from; at < to; at += 1) text({ find: { [`field_${at}`]: { is: 1 } } })
      collect()
      return process.memoryUsage().heapUsed
    }
    const before = heapAfter(0, 2_000)
    // Otherwise some 2 KB would be left for each of them.
    expect(heapAfter(2_000, 12_000) - before).toBeLessThan(9_000_000)
  })

  it('the compiler refuses names of tables that PostgreSQL would cut', () => {
    expect(() => compileList(parseList({}), { ...base, table: 'x'.repeat(64) })).toThrow('63 bytes')
  })
})

describe.each(listTestEngines())('%s: a list', (engine) => {
  let test: TestDatabase
  let run: RunSql

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    await createTestCollection(run, 'app.records', versions)
    await createTestCollection(
      run,
      'app.many',
      Array.from({ length: 250 }, (_, at) => ({ body: `{"id":"r${at}","n":${at}}` })),
    )
  })
  afterAll(async () => test?.drop())

  async function list(request: ListRequest, options: Partial<CompileListOptions> = {}) {
    const { text, values } = compileList(parseList(request), { ...base, ...options })
    const rows = await run(text, values)
    expect(rows).toHaveLength(1)
    return rows[0]
  }

  it('a list gives the latest versions that are not deleted, as they were sent, and where it was read', async () => {
    expect(await list({})).toEqual({
      height: 7n,
      sequence: 3,
      size: 100n,
      last: null,
      records: '{"id":"b","n":2},{"id":"a","n":10},{"id":5,"n":1.50}',
      count: 3,
      total: 3n,
      bytes: 52n,
      over: false,
    })
  })

  it('a list gives every version, deleted ones too, when history is asked for', async () => {
    const answer = await list({ include_history: true, find: { id: { in: ['a', 'c'] } } })
    expect(answer?.records).toBe([0, 2, 3, 4].map((at) => versions[at]?.body).join(','))
  })

  it('a list gives empty text, not null, when nothing matches', async () => {
    expect(await list({ find: { n: 99 } })).toMatchObject({
      records: '',
      count: 0,
      total: 0n,
      bytes: 0n,
      over: false,
    })
    expect(await list({ find: { or: [] }, limit: 5 })).toMatchObject({
      records: '',
      count: 0,
      total: 0n,
      bytes: 0n,
      over: false,
    })
  })

  it('a list tells numbers and strings of one key apart', async () => {
    expect(await list({ find: { id: 5 } })).toMatchObject({ count: 1 })
    expect(await list({ find: { id: '5' } })).toMatchObject({ count: 0 })
    expect(await list({ find: { id: { in: ['5', 5, 'b'] } } })).toMatchObject({ count: 2 })
  })

  it.each([
    [{ limit: 10 }, 10, 250n],
    [{ limit: 100, offset: 200 }, 50, 250n],
    [{ limit: 10, offset: 300 }, 0, 250n],
    [{ limit: 0 }, 0, 250n],
    [{ limit: 250 }, 250, 250n],
    [{ limit: 500, offset: 1 }, 249, 250n],
    [{ offset: 240 }, 10, 250n],
    [{ offset: 250 }, 0, 250n],
    [{ find: { n: { lt: 30 } }, limit: 20 }, 20, 30n],
  ])('a list counts the page and all matches: %j', async (request, count, total) => {
    expect(await list(request, { table: 'many' })).toMatchObject({ count, total, over: false })
  })

  it('a list counts nothing that was not asked for', async () => {
    expect(await list({ limit: 10 }, { table: 'many', total: false })).toMatchObject({
      count: 10,
      total: null,
    })
  })

  it.each([
    ['a small page', { limit: 50 }],
    ['a large page', { limit: 200 }],
    ['no limit', { find: { n: { lt: 50 } } }],
  ])(
    'a list gives rows and bytes up to the caps and no records past them: %s',
    async (_, request) => {
      const whole = await list(request, { table: 'many' })
      const [rows, bytes] = [Number(whole?.count), Number(whole?.bytes)]
      expect(Buffer.byteLength(String(whole?.records))).toBe(bytes)
      const capped = (change: Partial<typeof caps>) =>
        list(request, { table: 'many', caps: { ...caps, ...change } })
      expect(await capped({ rows, bytes })).toEqual(whole)
      expect(await capped({ rows: rows - 1 })).toMatchObject({ records: null, over: true })
      expect(await capped({ bytes: bytes - 1 })).toMatchObject({ records: null, over: true })
    },
  )

  const body =
    '{"b":{"x":1.10,"y":[1, 2]},"a":1e2,"é\\"":null,"c":{"d":{"e":5,"f":6}},"s":"x","list":[{"x":1}]}'
  it.each([
    [{ a: true }, '{"a":1e2}'],
    [{ b: { x: true }, missing: true }, '{"b":{"x":1.10}}'],
    [{ 'b.y': true, 'é"': true }, '{"b":{"y":[1, 2]},"é\\"":null}'],
    [{ 'c.d.f': true, c: { d: { e: true } } }, '{"c":{"d":{"e":5,"f":6}}}'],
    [{ s: { x: true }, list: { x: true }, a: true }, '{"a":1e2}'],
    [
      { s: { x: false }, b: { x: false } },
      '{"b":{"y":[1, 2]},"a":1e2,"é\\"":null,"c":{"d":{"e":5,"f":6}},"s":"x","list":[{"x":1}]}',
    ],
    [{ s: { x: false }, a: true }, '{"a":1e2,"s":"x"}'],
    [{ b: false, c: false, list: false, 'é"': false }, '{"a":1e2,"s":"x"}'],
    [{ c: { d: { e: false } }, b: true }, '{"b":{"x":1.10,"y":[1, 2]},"c":{"d":{"f":6}}}'],
    [{ c: {} }, '{"c":{"d":{"e":5,"f":6}}}'],
    [{ nothing: true }, '{}'],
  ])(
    'a list gives the selected fields as they were sent, to the digit: %j',
    async (select, expected) => {
      await run('DROP TABLE IF EXISTS app.shaped')
      await createTestCollection(run, 'app.shaped', [{ body }])
      expect(await list({ select }, { table: 'shaped' })).toMatchObject({
        records: expected,
        bytes: BigInt(Buffer.byteLength(expected)),
      })
      expect(await list({ select, limit: 1 }, { table: 'shaped' })).toMatchObject({
        records: expected,
      })
    },
  )
})
