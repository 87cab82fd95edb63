import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import { compileQuery } from '../compile/compile-query.ts'
import { compareForSort, getValueAt } from '../reference-evaluator.test-support.ts'
import {
  createTestCollection,
  createTestSchema,
  indexTestCollection,
} from '../test-collection.test-support.ts'
import { parseSql } from './parse-sql.ts'
import { testNow } from './test-sql.test-support.ts'

/** An expression with its SQL and its meaning over plain values; NULL is null, and so is what is missing. */
type Value = unknown
type Term = { readonly text: string; readonly of: (record: Value) => Value }

const fields = ['a', 'b', 'n.x']
const longText = 'x'.repeat(128)
const texts = [
  '',
  'a',
  'ab',
  'b',
  "it's",
  'é',
  '5',
  'true',
  '%_',
  longText,
  `${longText}y`,
  `${longText}z`,
]
const numbers = [0, 1, -1, 5, 1.5, 0.1, 2 ** 53, -7.25, 1e21]
const scalar = fc.oneof(fc.constantFrom(...texts), fc.constantFrom(...numbers), fc.boolean())
const value = fc.oneof(
  { weight: 6, arbitrary: scalar },
  fc.constant(null),
  fc.array(scalar, { maxLength: 2 }),
  fc.constant({ x: 1 }),
)
const record = fc.record({ a: value, b: value, n: fc.record({ x: value }) }, { requiredKeys: [] })
const records = fc.sample(record, { numRuns: 250, seed: 7 })

const literal = (each: string | number | boolean) =>
  typeof each === 'string' ? `'${each.replaceAll("'", "''")}'` : String(each)
const field: fc.Arbitrary<Term> = fc.constantFrom(...fields).map((name) => ({
  text: name,
  of: (each) => getValueAt(each, name.split('.')) ?? null,
}))
const constant: fc.Arbitrary<Term> = scalar.map((each) => ({ text: literal(each), of: () => each }))

const isNumber = (each: Value): each is number => typeof each === 'number'
const arithmetic = fc
  .tuple(
    field,
    fc.constantFrom('+', '-', '*'),
    fc.oneof(field, fc.constantFrom(...numbers.slice(0, 5))),
  )
  .map(([left, sign, other]): Term => {
    const right: Term = typeof other === 'number' ? { text: String(other), of: () => other } : other
    return {
      text: `(${left.text} ${sign} ${right.text})`,
      of: (each) => {
        const [a, b] = [left.of(each), right.of(each)]
        if (!isNumber(a) || !isNumber(b)) return null
        return sign === '+' ? a + b : sign === '-' ? a - b : a * b
      },
    }
  })

const compare = (sign: string, a: Value, b: Value): Value => {
  if (a === null || b === null) return null
  const isSame = typeof a === typeof b && JSON.stringify(a) === JSON.stringify(b)
  if (sign === '=') return isSame
  if (sign === '<>') return !isSame
  if (typeof a !== typeof b || typeof a === 'object') return false
  const order = compareForSort(a, b)
  return sign === '<'
    ? order < 0
    : sign === '<='
      ? order <= 0
      : sign === '>'
        ? order > 0
        : order >= 0
}
const signs = fc.constantFrom('=', '<>', '<', '<=', '>', '>=')
const comparison = fc
  .tuple(field, signs, fc.oneof({ weight: 3, arbitrary: constant }, field), fc.boolean())
  .map(([left, sign, right, turned]): Term => {
    const [first, second] = turned ? [right, left] : [left, right]
    return {
      text: `${first.text} ${sign} ${second.text}`,
      of: (each) => compare(sign, first.of(each), second.of(each)),
    }
  })
/** Whole numbers only, as plain numbers are not exact and those of PostgreSQL are. */
const ofNumbers = fc.tuple(arithmetic, signs, fc.constantFrom(0, 1, 5)).map(
  ([left, sign, limit]): Term => ({
    text: `${left.text} ${sign} ${limit}`,
    of: (each) => compare(sign, left.of(each), limit),
  }),
)
const inList = fc.tuple(field, fc.array(fc.option(scalar), { minLength: 1, maxLength: 4 })).map(
  ([left, items]): Term => ({
    text: `${left.text} IN (${items.map((item) => (item === null ? 'NULL' : literal(item))).join(', ')})`,
    of: (each) => {
      const found = items.map((item) => compare('=', left.of(each), item))
      return found.includes(true) ? true : found.includes(null) ? null : false
    },
  }),
)
const between = fc.tuple(field, fc.constantFrom(...numbers), fc.constantFrom(...numbers)).map(
  ([left, from, to]): Term => ({
    text: `${left.text} BETWEEN ${from} AND ${to}`,
    of: (each) => and([compare('>=', left.of(each), from), compare('<=', left.of(each), to)]),
  }),
)
const like = fc
  .tuple(field, fc.constantFrom('a%', '%b', '%', 'a', '_', '\\%\\_', 'é%', 'x%y', `${longText}%`))
  .map(([left, pattern]): Term => {
    const source = pattern.replaceAll(/\\(.)|([%_])|([^%_\\])/gs, (...[, quoted, sign, plain]) =>
      sign === '%' ? '.*' : sign === '_' ? '.' : (quoted ?? plain),
    )
    const expression = new RegExp(`^${source}$`, 'su')
    return {
      text: `${left.text} LIKE '${pattern}'`,
      of: (each) => {
        const text = left.of(each)
        return text === null ? null : typeof text === 'string' && expression.test(text)
      },
    }
  })
const isNull = field.map(
  (one): Term => ({ text: `${one.text} IS NULL`, of: (each) => one.of(each) === null }),
)
const distinctFrom = fc.tuple(field, fc.oneof(field, constant)).map(
  ([left, right]): Term => ({
    text: `${left.text} IS DISTINCT FROM ${right.text}`,
    of: (each) => JSON.stringify(left.of(each)) !== JSON.stringify(right.of(each)),
  }),
)
const withDefault = fc.tuple(field, constant, signs, constant).map(
  ([one, otherwise, sign, limit]): Term => ({
    text: `coalesce(${one.text}, ${otherwise.text}) ${sign} ${limit.text}`,
    of: (each) => compare(sign, one.of(each) ?? otherwise.of(each), limit.of(each)),
  }),
)

const not = (each: Value) => (each === null ? null : !each)
const and = (list: readonly Value[]) =>
  list.includes(false) ? false : list.includes(null) ? null : true
const or = (list: readonly Value[]) =>
  list.includes(true) ? true : list.includes(null) ? null : false

const { predicate } = fc.letrec<{ predicate: Term }>((tie) => ({
  predicate: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'predicate' },
    comparison,
    inList,
    between,
    like,
    isNull,
    distinctFrom,
    ofNumbers,
    withDefault,
    tie('predicate').map(
      (one): Term => ({
        text: `NOT (${one.text})`,
        of: (each) => not(one.of(each)),
      }),
    ),
    fc.tuple(fc.constantFrom('AND', 'OR'), tie('predicate'), tie('predicate')).map(
      ([word, one, other]): Term => ({
        text: `(${one.text} ${word} ${other.text})`,
        of: (each) => (word === 'AND' ? and : or)([one.of(each), other.of(each)]),
      }),
    ),
    tie('predicate').map(
      (one): Term => ({
        text: `CASE WHEN ${one.text} THEN false ELSE true END`,
        of: (each) => one.of(each) !== true,
      }),
    ),
  ),
}))

/** Found by these tests; kept. */
const kept: readonly string[] = [
  `a <> '${longText}y'`,
  `NOT (a IN ('${longText}y', NULL))`,
  'a BETWEEN 5 AND 1',
  'NOT (a < b)',
  `NOT (a LIKE 'a%')`,
]

describe.each(listTestEngines())('%s: a predicate', (engine) => {
  let test: TestDatabase

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    const run = (text: string, values: readonly unknown[] = []) =>
      test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    const versions = records.map((each, place) => ({ body: JSON.stringify({ ...each, place }) }))
    await createTestCollection(run, 'app.plain', versions)
    await createTestCollection(run, 'app.indexed', versions)
    await indexTestCollection(run, 'app.indexed', fields)
  })
  afterAll(async () => test?.drop())

  async function places(where: string, table = 'plain'): Promise<number[]> {
    const query = await parseSql(`SELECT place FROM app::${table} WHERE ${where}`, { now: testNow })
    const { text, values } = compileQuery(query, {
      schema: 'app',
      caps: { rows: 1_000, bytes: 1_000_000 },
      resolve: (model) => ({ schema: 'app', table: model.split('::').at(-1) ?? '' }),
    })
    const [row] = await test.database.transaction(async (tx) => {
      if (table === 'indexed') await tx.execute(sql.compiled('SET LOCAL enable_seqscan = off', []))
      return tx.query(sql.compiled(text, values))
    })
    return JSON.parse(`[${row?.records}]`).map((each: { place: number }) => each.place)
  }

  it('a predicate holds for exactly the records that its meaning says, with and without indexes', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, async (each) => {
        const expected = records.flatMap((one, place) => (each.of(one) === true ? [place] : []))
        expect(await places(each.text)).toEqual(expected)
        expect(await places(each.text, 'indexed')).toEqual(expected)
      }),
      { numRuns: 200 },
    )
  })

  it('a predicate, its contrary and its being unknown part the records', async () => {
    const part = async (text: string) => {
      const yes = await places(text, 'indexed')
      const no = await places(`NOT (${text})`, 'indexed')
      const unknown = await places(`(${text}) IS NULL`)
      expect([...yes, ...no, ...unknown].sort((a, b) => a - b)).toEqual([...records.keys()])
    }
    for (const text of kept) await part(text)
    await fc.assert(
      fc.asyncProperty(predicate, (each) => part(each.text)),
      { numRuns: 50 },
    )
  })

  it('a predicate is the same with a conjunct more that says nothing new, and in any order', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, predicate, async (one, other) => {
        const expected = await places(`${one.text} AND ${other.text}`)
        expect(await places(`${other.text} AND ${one.text}`)).toEqual(expected)
        expect(await places(`${one.text} AND ${other.text} AND (${one.text})`)).toEqual(expected)
        expect(await places(`NOT (NOT (${one.text}) OR NOT (${other.text}))`)).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  })
})
