import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

const long = 'x'.repeat(200)
/** Values that are alike in some way, and texts that would have a meaning if they were not values. */
const values = [
  'a',
  'A',
  'ab',
  'abc',
  'b',
  'ä',
  '%',
  'a%',
  '_',
  '\\',
  "'",
  "' OR 1=1 --",
  '";DROP TABLE x',
  '$1',
  ':v',
  '5',
  'true',
  'null',
  '{"$gte":1}',
  '[1]',
  '€',
  '😀',
  ' ',
  long,
  `${long}y`,
  `${long}z`,
] as const
const numbers = [0, 1, -1, 5, 0.1, 1e-7, 123456789.125, 9007199254740991, 1e20]

const textOperators = [
  'is',
  'isNot',
  'greaterThan',
  'greaterThanOrEqual',
  'lessThan',
  'lessThanOrEqual',
  'endsWith',
  'endsWithCaseInsensitive',
  'startsWithCaseInsensitive',
  'includes',
  'includesCaseInsensitive',
]
const numberOperators = [
  'is',
  'isNot',
  'greaterThan',
  'greaterThanOrEqual',
  'lessThan',
  'lessThanOrEqual',
  'includes',
]

describe('parameters of predefined queries', () =>
  withService((service) => {
    let data: Data
    beforeAll(async () => {
      data = await createData(service())
      await data.create({ name: 'c', access_policy: 'public' })
      const mixed = [...values, ...numbers, true, false, null, ['a', 5, 'b'], { a: 1 }]
      await data.store('c', [
        ...mixed.map((f, at) => ({ id: `r${at}`, f })),
        { id: 'without' },
        ...['a', '%', "'"].map((id) => ({ id, f: id })),
      ])
    })
    const define = async (name: string, parameter: object, more: object = {}) => {
      const { status, text } = await data.call('POST', '/queries', {
        name,
        source_collection: 'c',
        base_query: { select: ['id'], ...more },
        parameters: [{ name: 'v', maxLength: 1000, ...parameter }],
      })
      expect(status, text).toBe(201)
    }
    const ask = (name: string, query: string) =>
      service().request('GET', `/api/queries/${data.appId}/${name}/data?${query}`)
    const readIds = async (name: string, given: readonly unknown[]) => {
      const query = new URLSearchParams(
        given.map((one): [string, string] => ['v', String(one)]),
      ).toString()
      const { status, body, text } = await ask(name, query)
      expect(status, text).toBe(200)
      return body.data.map(({ id }: { id: string }) => id)
    }
    const listed = async (find: object) =>
      (await data.list('c', { find, select: { id: true } })).body.records.map(
        ({ id }: { id: string }) => id,
      )

    test.each([
      ...textOperators.map((operator) => [operator, 'string', values] as const),
      ...numberOperators.map((operator) => [operator, 'number', numbers] as const),
      ['is', 'boolean', [true, false]] as const,
    ])(
      'a parameter compares by %s of a %s as the same find of POST /list does',
      async (operator, type, all) => {
        const name = `${operator}-${type}`
        await define(name, { field_path: `f.$${operator}`, type })
        for (const value of all)
          expect(await readIds(name, [value]), String(value)).toEqual(
            await listed({ f: { [operator]: value } }),
          )
      },
    )

    test('a parameter of a prefix, a list, or a list that excludes finds what the same find does', async () => {
      await define('prefix', { field_path: 'f.$startsWith', maxLength: 100 })
      await define('some', { field_path: 'f.$in', type: 'list' })
      await define('none', { field_path: 'f.$nin', type: 'list', items: 'number' })
      for (const value of values.filter((each) => each.length < 100))
        expect(await readIds('prefix', [value]), value).toEqual(
          await listed({ f: { startsWith: value } }),
        )
      const several = ['a', '%', long, 'nobody']
      expect(await readIds('some', several)).toEqual(await listed({ f: { in: several } }))
      expect(await readIds('none', [1, 5])).toEqual(await listed({ f: { notIn: [1, 5] } }))
    })

    test('a parameter of the primary key finds the record, whatever characters its key has', async () => {
      await define('one', { field_path: 'id' })
      for (const id of ['a', '%', "'", 'r3', 'without'])
        expect(await readIds('one', [id])).toEqual([id])
      expect(await readIds('one', ['nobody'])).toEqual([])
    })

    test('a number parameter compares as a number, and a text that is none is refused with 400 that names it', async () => {
      const sql = `SELECT id FROM "${data.appId}"::c WHERE f >= :v::numeric`
      await data.call('POST', '/queries', { name: 'cast', sql, parameters: [{ name: 'v' }] })
      expect(await readIds('cast', [5])).toEqual(await listed({ f: { gte: 5 } }))
      expect(await ask('cast', 'v=five')).toMatchObject({
        status: 400,
        body: { details: { field: '/query/v' } },
      })
    })

    test('no text of a parameter changes the statement', async () => {
      await define('fixed', { field_path: 'f' })
      const sql = `SELECT id FROM "${data.appId}"::c WHERE f = :v OR starts_with(f, :v) OR length(:v) > 900`
      const made = await data.call('POST', '/queries', {
        name: 'fixed-sql',
        sql,
        parameters: [{ name: 'v', maxLength: 1000 }],
      })
      expect(made.status, made.text).toBe(201)
      const seen = { fixed: new Set<string>(), 'fixed-sql': new Set<string>() }
      let current: keyof typeof seen = 'fixed'
      const stop = service().running.service.queryRunner.database.observe((text) => {
        if (text.includes('page_row')) seen[current].add(text)
      })
      const malicious = fc.oneof(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
        fc.constantFrom<string>(
          ...values,
          '%%',
          '{}',
          '__proto__',
          '1; SELECT 1',
          '$$x$$',
          '\u{10ffff}',
        ),
      )
      await fc.assert(
        fc.asyncProperty(malicious, async (text) => {
          for (const name of ['fixed', 'fixed-sql'] as const) {
            current = name
            const query = new URLSearchParams({ v: text }).toString()
            const reply = await ask(name, query)
            const isKept = text.isWellFormed() && !text.includes('\0')
            expect(reply.status, reply.text).toBe(isKept ? 200 : 400)
          }
        }),
        { numRuns: 80 },
      )
      stop()
      expect(seen.fixed.size).toBe(1)
      expect(seen['fixed-sql'].size).toBe(1)
    })

    test('a missing parameter leaves out its own condition alone, and only where the owner allows it', async () => {
      await define('bound', { field_path: 'f' }, { find: { id: { startsWith: 'r' } } })
      expect(await ask('bound', '')).toMatchObject({
        status: 400,
        body: { details: { field: '/query/v' } },
      })
      await define(
        'open',
        { field_path: 'f', required: false },
        { find: { id: { startsWith: 'r' } } },
      )
      const all = await readIds('open', [])
      expect(all).toEqual(await listed({ id: { startsWith: 'r' } }))
      expect(await readIds('open', ['a'])).toEqual(
        await listed({ and: [{ id: { startsWith: 'r' } }, { f: 'a' }] }),
      )
    })

    test('a parameter takes the place of a value of the base query, which is its default', async () => {
      await define('placed', { field_path: 'f.$gte' }, { find: { f: { $gte: 5, $lte: 1000 } } })
      expect(await readIds('placed', [])).toEqual(await listed({ f: { gte: 5, lte: 1000 } }))
      expect(await readIds('placed', [0])).toEqual(await listed({ f: { gte: 0, lte: 1000 } }))
      await define('equal', { field_path: 'f' }, { find: { f: 'a' } })
      expect(await readIds('equal', [])).toEqual(await listed({ f: 'a' }))
      expect(await readIds('equal', ['b'])).toEqual(await listed({ f: 'b' }))
    })

    test('a parameter of the order chooses among the orders that the owner lists, and nothing else', async () => {
      await define('sorted', {
        field_path: 'sort',
        type: 'enum',
        values: ['id', '-id'],
        default: 'id',
      })
      const up = await readIds('sorted', [])
      expect(up).toEqual([...up].sort())
      expect(await readIds('sorted', ['-id'])).toEqual([...up].reverse())
      expect((await ask('sorted', 'v=f')).status).toBe(400)
    })

    test('a parameter of the page has the bounds of the plain names, and paging does not pass a fixed limit', async () => {
      await define('paged', { name: 'size', field_path: 'limit', default: 2, max: 4 })
      expect((await ask('paged', '')).body.count).toBe(2)
      expect((await ask('paged', 'limit=3')).body.count).toBe(3)
      for (const query of ['size=5', 'limit=5', 'size=1&limit=1', 'size=-1', 'size=1.5'])
        expect((await ask('paged', query)).status, query).toBe(400)
      expect((await ask('paged', 'offset=3&limit=4')).body.count).toBe(4)
      await define('top', { field_path: 'id.$gte', default: '0' }, { limit: 3, sort: 'id' })
      const top = await readIds('top', [])
      expect(top).toHaveLength(3)
      expect((await ask('top', 'limit=100')).body.count).toBe(3)
      expect((await ask('top', 'offset=2')).body.data).toEqual([{ id: top[2] }])
      expect((await ask('top', 'offset=3')).body.count).toBe(0)
    })
  }))
