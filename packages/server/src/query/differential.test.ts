import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureExtension } from '../database/extensions.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { compileList } from './compile-list.ts'
import { countrySet, type DataSets } from './data-set.ts'
import { makeFieldColumn, printFieldColumn } from './field-column.ts'
import { parseFieldPath } from './field-path.ts'
import { compileIndex } from './index-key.ts'
import { type ListRequest, parseList } from './list-query.ts'
import {
  addressBlocks,
  compareForSort,
  dataSetValues,
  evaluateFind,
  getValueAt,
} from './reference-evaluator.test-support.ts'
import { createTestCollection, createTestSchema } from './test-collection.test-support.ts'

const long = (length: number, end = '') => 'x'.repeat(length) + end
const texts = [
  '',
  'a',
  'ab',
  'abc',
  'abd',
  'A',
  'AbC',
  'é',
  'É',
  '😀',
  '\ud7ff',
  '\ue000',
  '\u{10ffff}',
  'a\u{10ffff}b',
  'b',
  'quo"te',
  "apo'strophe",
  'back\\slash',
  '%_',
  'line\nbreak',
  ' ',
  'true',
  'null',
  '5',
  '[]',
  '{}',
  '{',
  long(127),
  long(128),
  long(129),
  long(127, '😀y'),
  long(127, '😀z'),
  long(300, 'a'),
  long(300, 'b'),
  long(3000),
  '10.0.0.0/8',
  '256.1.1.1',
  '1.2.3',
  ':::',
  ...Object.keys(addressBlocks),
]
const numbers = [
  0,
  -0,
  1,
  -1,
  5,
  1.5,
  -1.5,
  0.1,
  1e21,
  1e-7,
  5e-324,
  -5e-324,
  1.7976931348623157e308,
  -1.7976931348623157e308,
  2 ** 53,
  2 ** 53 - 1,
  123456789.12345679,
]
const text = fc.constantFrom(...texts)
const scalar = fc.oneof({ weight: 3, arbitrary: text }, fc.constantFrom(...numbers), fc.boolean())
const operandScalar = fc.oneof(
  { weight: 5, arbitrary: scalar },
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)
const list = fc.array(fc.oneof(scalar, fc.constant(null), fc.array(scalar, { maxLength: 2 })), {
  maxLength: 3,
})
const value = fc.oneof(
  { weight: 6, arbitrary: scalar },
  fc.constant(null),
  list,
  fc.dictionary(fc.constantFrom('x', 'y'), fc.oneof(scalar, fc.constant(null)), { maxKeys: 2 }),
)
const fields = ['a', 'b', 'n.x', 'n.y', `we"i'r\\d`]
const record = fc.record(
  {
    a: value,
    b: value,
    n: fc.oneof(fc.record({ x: value, y: value }, { requiredKeys: [] }), value),
    'we"i\'r\\d': value,
  },
  { requiredKeys: [] },
)

const patterns = [
  'a',
  '^a',
  'b$',
  '^a.c$',
  '[a-c]+',
  '^[^a]*$',
  '(ab|x+)',
  '\\d',
  '^\\w+$',
  '\\s',
  'x{127}',
  '^(?:a|b){1,2}',
  '\\.',
  '(?i)abc',
  '.',
  '^$',
  '',
  '\\u00e9',
  '[\\\\"]',
]
const orderable = [
  'greaterThan',
  'gt',
  'greaterThanOrEqual',
  'gte',
  'lessThan',
  'lt',
  'lessThanOrEqual',
  'lte',
]
const textOperators = [
  'startsWith',
  'endsWith',
  'startsWithCaseInsensitive',
  'endsWithCaseInsensitive',
  'includesCaseInsensitive',
]
const named = (names: readonly string[], operand: fc.Arbitrary<unknown>) =>
  fc.tuple(fc.constantFrom(...names), operand).map(([name, each]) => ({ [name]: each }))
const ends = fc.oneof(
  fc.tuple(text, text),
  fc.tuple(fc.constantFrom(...numbers), fc.constantFrom(...numbers)),
)
const operator = fc.oneof(
  named(['is', 'eq', 'isNot', 'ne'], fc.oneof(operandScalar, fc.constant(null))),
  named(['in', 'notIn'], fc.array(fc.oneof(operandScalar, fc.constant(null)), { maxLength: 4 })),
  named(['isNull', 'isNotNull', 'exists', 'isLocalIp', 'isExternalIp'], fc.boolean()),
  named(orderable, operandScalar),
  named(['between'], ends),
  named(
    ['betweenOp'],
    ends.map(([from, to]) => ({ from, to })),
  ),
  named(textOperators, text),
  named(['includes', 'contains'], operandScalar),
  named(['regExpMatches'], fc.constantFrom(...patterns)),
  named(
    ['CIDR', 'cidr'],
    fc.constantFrom(
      '10.0.0.0/8',
      '192.168.0.0/16',
      '0.0.0.0/0',
      '::/0',
      '2001:db8::/32',
      '10.0.0.1',
    ),
  ),
  named(['inDataset'], fc.constantFrom('some', 'networks')),
  named(['inCountry'], fc.constantFrom('AT', 'us', 'DE')),
  named(
    ['b64'],
    text.map((each) => Buffer.from(each).toString('base64')),
  ),
)
const operatorObject = fc
  .array(operator, { minLength: 1, maxLength: 2 })
  .map((each) => Object.assign({}, ...each))
const condition = fc
  .tuple(fc.constantFrom(...fields), operatorObject, fc.boolean())
  .map(([name, test, dotted]) => {
    const [first = '', second] = name.split('.')
    return second === undefined || dotted ? { [name]: test } : { [first]: { [second]: test } }
  })
const { find } = fc.letrec<{ find: Record<string, unknown> }>((tie) => ({
  find: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'find' },
    { weight: 4, arbitrary: condition },
    fc
      .tuple(
        fc.constantFrom('and', 'or', 'not'),
        fc.array(tie('find'), { maxLength: 3, depthIdentifier: 'find' }),
      )
      .map(([word, items]) => ({ [word]: items })),
    fc.tuple(condition, tie('find')).map(([one, other]) => ({ ...one, ...other })),
  ),
}))

const records = fc.sample(record, { numRuns: 400, seed: 11 })
const tables: DataSets = new Map([
  ['some', { schema: 'app', table: 'some', kind: 'values' }],
  ['networks', { schema: 'app', table: 'spans', kind: 'cidr' }],
  [countrySet, { schema: 'app', table: 'countries', kind: 'ip_country' }],
])
const columnTypes = ['text', 'number', 'boolean', 'text', 'number'] as const
const filterColumns = new Map(
  fields.flatMap((name, at) => {
    const column = makeFieldColumn(parseFieldPath(name, ''), columnTypes[at] ?? 'text')
    return column === undefined ? [] : [[name, column] as const]
  }),
)
const caps = { rows: 100_000, bytes: 64 * 1024 * 1024 }

describe.each(listTestEngines())('%s: a find', (engine) => {
  let test: TestDatabase
  const indexed = { schema: 'app', table: 'indexed' }
  const plain = { schema: 'app', table: 'plain' }
  /** Each field has a column, of one type or of another, that conditions read. */
  const columns = { schema: 'app', table: 'columns', filterColumns }

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    // The place in the list is a field, so that an answer says which records it has.
    const versions = records.map((each, place) => ({ body: JSON.stringify({ ...each, place }) }))
    await createTestCollection(run, 'app.plain', versions)
    await createTestCollection(run, 'app.indexed', versions)
    await createTestCollection(run, 'app.columns', versions)
    for (const column of filterColumns.values())
      await run(`ALTER TABLE app.columns ADD COLUMN ${printFieldColumn(column)}`)
    const extensionSchema = await ensureExtension(test.database, 'pg_trgm')
    for (const [number, name] of fields.entries()) {
      const paths = [parseFieldPath(name, '')]
      for (const method of ['btree', 'hash', 'trigram'] as const) {
        const { text, values } = compileIndex({
          ...indexed,
          name: `${method}_${number}`,
          paths,
          method,
          extensionSchema,
        })
        await run(text, values)
      }
    }
    await run('ANALYZE app.indexed')
    await run(
      'CREATE TABLE app.some AS SELECT value FROM jsonb_array_elements($1::jsonb) AS value',
      [JSON.stringify(dataSetValues)],
    )
    await run('CREATE TABLE app.spans (first inet, last inet, country text)')
    await run(`INSERT INTO app.spans VALUES ('10.0.0.0', '10.255.255.255'),
      ('2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff')`)
    await run('CREATE TABLE app.countries (first inet, last inet, country text)')
    await run(`INSERT INTO app.countries VALUES ('8.0.0.0', '8.255.255.255', 'US'),
      ('192.168.0.0', '192.168.255.255', 'AT'), ('fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'AT')`)
  })
  afterAll(async () => test?.drop())

  /** The places of the records that the request gives, in order. */
  async function places(
    request: ListRequest,
    where: { schema: string; table: string },
  ): Promise<number[]> {
    const { text, values } = compileList(parseList(request), {
      ...where,
      caps,
      total: true,
      dataSets: tables,
    })
    const [row] = await test.database.transaction(async (tx) => {
      if (where === indexed) await tx.execute(sql.compiled('SET LOCAL enable_seqscan = off', []))
      return tx.query(sql.compiled(text, values))
    })
    const found = JSON.parse(`[${row?.records}]`) as { place: number }[]
    expect(row).toMatchObject({ height: 7n, sequence: 3, over: false, count: found.length })
    expect(row?.bytes).toBe(BigInt(Buffer.byteLength(String(row?.records))))
    if (request.limit === undefined && !request.offset)
      expect(row?.total).toBe(BigInt(found.length))
    return found.map((each) => each.place)
  }

  it('a find gives exactly the records that its meaning says, with and without indexes', async () => {
    await fc.assert(
      fc.asyncProperty(find, async (each) => {
        const expected = records.flatMap((one, place) => (evaluateFind(each, one) ? [place] : []))
        expect(await places({ find: each }, plain)).toEqual(expected)
        expect(await places({ find: each }, indexed)).toEqual(expected)
        expect(await places({ find: each }, columns)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  it('a find and its negation part the records: each is in one of both', async () => {
    await fc.assert(
      fc.asyncProperty(find, async (each) => {
        const yes = await places({ find: each }, indexed)
        const no = await places({ find: { not: [each] } }, indexed)
        expect([...yes, ...no].sort((a, b) => a - b)).toEqual(records.map((_, place) => place))
      }),
      { numRuns: 80 },
    )
  })

  it('a list sorts by the documented order, ties by the order of storing, and its pages join without a gap', async () => {
    const request = fc.record({
      find,
      sortBy: fc.constantFrom(...fields),
      descending: fc.boolean(),
      size: fc.integer({ min: 1, max: 150 }),
    })
    await fc.assert(
      fc.asyncProperty(request, async ({ find: each, sortBy, descending, size }) => {
        const matching = records.flatMap((one, place) => (evaluateFind(each, one) ? [place] : []))
        const at = (place: number) => getValueAt(records[place], sortBy.split('.'))
        const expected = matching.toSorted((a, b) => {
          return (descending ? compareForSort(at(b), at(a)) : compareForSort(at(a), at(b))) || a - b
        })
        const pages = [Math.max(0, size - 1), size, size + size].map((offset) => ({
          offset,
          limit: size,
        }))
        for (const where of [plain, indexed]) {
          const sorted = {
            find: each,
            sortBy,
            sortDirection: descending ? 'descending' : 'ascending',
          }
          expect(await places(sorted, where)).toEqual(expected)
          for (const { offset, limit } of pages) {
            expect(await places({ ...sorted, offset, limit }, where)).toEqual(
              expected.slice(offset, offset + limit),
            )
          }
        }
      }),
      { numRuns: 60 },
    )
  })
})
