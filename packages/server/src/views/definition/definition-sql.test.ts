import { ViewQuery } from '@tollbase/contract/view-definition'
import fc from 'fast-check'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../base/fault.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { accepted } from '../../query/sql/accepted.test-data.ts'
import { data } from '../../query/sql/orders.test-data.ts'
import { parseSql } from '../../query/sql/parse-sql.ts'
import { refused } from '../../query/sql/refused.test-data.ts'
import { rowStatements } from '../../query/sql/rows.test-data.ts'
import { shapes } from '../../query/sql/shapes.test-data.ts'
import { makeQueryRunner } from '../../query/sql/test-sql.test-support.ts'
import { createTestCollection, createTestSchema } from '../../query/test-collection.test-support.ts'
import { aggregates, windowFunctions } from '../../query/tree/aggregates.ts'
import type { Query } from '../../query/tree/query.ts'
import { parseViewSql } from './parse-view-sql.ts'
import { printDefinition } from './print-definition.ts'
import { readViewDefinition } from './read-view-definition.ts'
import type { Json, ViewDefinition } from './view-definition.ts'
import { listOperatorNames } from './view-operators.ts'

// A view reads a collection, and is the same at any time.
const near = "SELECT id, jsonb_build_array(id, amount) <-> '[1, 2]' AS d FROM app::orders"
const statements = [...accepted, ...shapes, ...rowStatements, near].filter(
  (text) => /app::/.test(text) && !/now\(\)/.test(text),
)
const grammar = Compile(ViewQuery)
const create = (text: string) => `CREATE MATERIALIZED VIEW app::v AS ${text}`

type Kind = 'number' | 'text' | 'boolean'
/** Paths of fields by what they hold. */
type Fields = Readonly<Record<Kind, readonly string[]>>
type Expressions = Readonly<Record<Kind, fc.Arbitrary<Json>>>

const nameOrderFields = (prefix: string): Fields => ({
  number: [`${prefix}id`, `${prefix}amount`],
  text: [`${prefix}customer`, `${prefix}status`],
  boolean: [`${prefix}paid`],
})

const texts = ['', 'open', "it's", 'a\\b', '$data.id', 'a.b', 'é', '::', '-- x', '/*', '%_', '"']
const literal = fc.constantFrom(...texts).map((text): Json => ({ $literal: text }))
const constant = fc.constantFrom<Json>(0, 1, -3, 2.5, 1e21, { $number: '1.50' }, null)
const call = (names: readonly string[], operands: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.tuple(fc.constantFrom(...names), operands).map(([name, operand]) => ({ [name]: operand }))

function makeExpressions(fields: Fields): Expressions {
  return fc.letrec<Record<Kind, Json>>((tie) => {
    const pair = (kind: Kind) => fc.tuple(tie(kind), tie(kind))
    const items = fc.array(fc.constantFrom(...texts), { minLength: 1, maxLength: 3 })
    const patterns = fc.constantFrom('op%', '_', '%\\%', "'%")
    return {
      number: fc.oneof(
        { maxDepth: 3, depthIdentifier: 'number' },
        fc.constantFrom<Json>(...fields.number),
        constant,
        call(['$add', '$subtract', '$multiply', '$divide', '$mod', '$nullif'], pair('number')),
        call(['$negate', '$abs', '$round', '$coalesce'], tie('number')),
        call(['$length'], tie('text')),
        fc
          .constantFrom(...fields.text)
          .map((each): Json => ({ $cast: each, to: 'numeric(12, 2)' })),
        fc
          .tuple(tie('boolean'), pair('number'))
          .map(([when, [value, other]]): Json => ({ $case: [{ when, value }], else: other })),
      ),
      text: fc.oneof(
        { maxDepth: 2, depthIdentifier: 'text' },
        fc.constantFrom<Json>(...fields.text),
        literal,
        call(['$upper', '$reverse'], tie('text')),
        call(['$append', '$coalesce'], pair('text')),
      ),
      boolean: fc.oneof(
        { maxDepth: 3, depthIdentifier: 'boolean' },
        fc.constantFrom<Json>(...fields.boolean, true),
        call(['$eq', '$ne', '$lt', '$gte', '$distinct_from'], pair('number')),
        call(['$eq', '$gt', '$lte'], pair('text')),
        call(['$between'], fc.tuple(tie('number'), tie('number'), tie('number'))),
        call(['$is_null', '$not', '$is_true', '$is_unknown'], tie('boolean')),
        call(['$and', '$or'], fc.array(tie('boolean'), { minLength: 2, maxLength: 3 })),
        fc.tuple(tie('text'), items).map(
          ([each, list]): Json => ({
            $in: [each, { $literal: list }],
          }),
        ),
        fc.tuple(tie('text'), patterns, fc.boolean()).map(
          ([each, pattern, ignore]): Json => ({
            $like: each,
            pattern,
            ...(ignore ? { ignore_case: true } : {}),
          }),
        ),
      ),
    }
  })
}

const plain = makeExpressions(nameOrderFields(''))
const ofJoined = makeExpressions({
  number: ['o.id', 'o.amount', 'c.score'],
  text: ['o.customer', 'c.name'],
  boolean: ['o.paid'],
})
const optional = (name: string, value: fc.Arbitrary<Json>) =>
  fc.option(value).map((each): ViewDefinition => (each === null ? {} : { [name]: each }))
const aggregate = fc.oneof(
  fc.constant<Json>({ $count: '*' }),
  call(['$sum', '$avg', '$min', '$max', '$count'], plain.number),
  fc
    .tuple(plain.text, plain.boolean)
    .map(([value, filter]): Json => ({ $count: value, distinct: true, filter })),
  call(['$min', '$max'], plain.text),
)

const rows = fc
  .tuple(plain.number, plain.text, plain.boolean, optional('where', plain.boolean))
  .map(
    ([a, b, c, where]): ViewDefinition => ({
      select: ['id', { a }, { b }, { c }],
      from: 'app::orders',
      ...where,
    }),
  )
const groups = fc.tuple(aggregate, aggregate, optional('where', plain.boolean)).map(
  ([a, b, where]): ViewDefinition => ({
    select: ['status', 'paid', { a }, { b }],
    from: 'app::orders',
    ...where,
    group_by: ['status', 'paid'],
    having: { $gt: [{ $count: '*' }, 1] },
  }),
)
const windows = fc.tuple(plain.number, plain.text).map(
  ([value, group]): ViewDefinition => ({
    select: ['id', { a: { $sum: value, over: { partition_by: [group], order_by: ['id'] } } }],
    from: 'app::orders',
  }),
)
const joins = fc
  .tuple(ofJoined.number, ofJoined.text, ofJoined.boolean, fc.constantFrom('inner', 'left'))
  .map(
    ([a, b, test, type]): ViewDefinition => ({
      select: ['o.id', { a }, { b }],
      from: { o: 'app::orders' },
      joins: [
        {
          join: { c: 'app::customers' },
          type,
          on: { $and: [{ $eq: ['o.customer', 'c.id'] }, test] },
        },
      ],
    }),
  )
const unions = fc
  .tuple(
    plain.number,
    plain.number,
    fc.constantFrom('union', 'union_all', 'except', 'intersect_all'),
  )
  .map(
    ([a, b, name]): ViewDefinition => ({
      [name]: [
        { select: [{ a }], from: 'app::orders' },
        { select: [{ a: b }], from: 'app::orders' },
      ],
    }),
  )
const nested = fc.tuple(rows, plain.number).map(
  ([inner, a]): ViewDefinition => ({
    with: [{ t: inner }],
    select: ['t.id', { a: { $query: { select: [{ m: { $max: 'a' } }], from: 't' } } }],
    from: 't',
    where: { $in: ['t.id', { select: [{ n: a }], from: 'app::orders' }] },
  }),
)

/** Queries over the collections of orders.test-data.ts, whose rows differ by nothing but their values. */
const definitions: fc.Arbitrary<ViewDefinition> = fc.oneof(
  rows,
  groups,
  windows,
  joins,
  unions,
  nested,
)

describe('the grammar of views', () => {
  it.each([...aggregates.keys(), ...windowFunctions.keys()])(
    'the grammar knows $%s over a window',
    (name) => {
      const column = { [`$${name}`]: 'a', over: { partition_by: ['b'] } }
      expect(grammar.Check({ select: [{ x: column }], from: 'app::orders' })).toBe(true)
    },
  )

  it('the grammar has no operator that hides a function', () => {
    const names = listOperatorNames()
    expect(new Set(names).size).toBe(names.length)
  })
})

describe('SELECTs in views', () => {
  let test: TestDatabase
  let rowsOf: (query: Query) => Promise<readonly string[]>

  beforeAll(async () => {
    test = await createTestDatabase()
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    for (const [name, list] of Object.entries(data)) {
      const versions = list.map((each) => ({ body: JSON.stringify(each) }))
      await createTestCollection(run, `app.${name}`, versions)
    }
    const { rows } = makeQueryRunner(run)
    rowsOf = async (query) => {
      const list = (await rows(query)).rows.map((row) => JSON.stringify(row))
      return query.orderBy.length > 0 ? list : list.sort()
    }
  })
  afterAll(async () => test?.drop())

  it.each(statements)('a SELECT means the same as JSON: %s', async (text) => {
    const { definition } = await parseViewSql(create(text), 'app')
    const [direct, again] = await Promise.all([
      parseSql(text, { now: undefined }),
      parseSql(printDefinition(definition), { now: undefined, recordCalls: true }),
    ])
    expect(await rowsOf(again)).toEqual(await rowsOf(direct))
    expect(grammar.Errors(definition)).toEqual([])
    const read = await readViewDefinition(definition, { app: 'other' })
    expect(read.definition).toEqual(definition)
  })

  it('a SELECT that a definition is printed as means the same again', async () => {
    const isRefused = (error: unknown) =>
      error instanceof Fault && /without saying whose|two whole numbers/.test(error.message)
    const property = async (sent: ViewDefinition) => {
      const read = await readViewDefinition(sent, { app: 'app' }).catch((error: unknown) => {
        fc.pre(!isRefused(error))
        throw error
      })
      expect(grammar.Errors(read.definition)).toEqual([])
      const { definition } = await parseViewSql(create(printDefinition(read.definition)), 'app')
      const again = await readViewDefinition(definition, { app: 'app' })
      expect(await rowsOf(again.query)).toEqual(await rowsOf(read.query))
    }
    await fc.assert(fc.asyncProperty(definitions, property), { numRuns: 150 })
  })

  it.each(refused)('a SELECT is refused where it is not possible: %s', async (text) => {
    const fault = await parseViewSql(create(text), 'app').catch((error: unknown) => error)
    expect(fault).toBeInstanceOf(Fault)
    expect(fault).toMatchObject({ code: 'VALIDATION_FAILED' })
  })

  it.each(['> ANY', '= ALL', '<> ANY', '< SOME'])(
    'a comparison %s of a sub-query is refused in a view, and never taken for IN',
    async (sign) => {
      const text = `SELECT id FROM app::orders WHERE id ${sign} (SELECT id FROM app::items)`
      const fault = await parseViewSql(create(text), 'app').catch((error: unknown) => error)
      expect(fault).toBeInstanceOf(Fault)
      expect(String(fault)).toContain('compare with its min or max')
    },
  )
})
