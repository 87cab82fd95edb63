import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureExtension } from '../database/extensions.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { compileQuery } from './compile/compile-query.ts'
import { compileList } from './compile-list.ts'
import { compileIndex } from './index-key.ts'
import { parseList } from './list-query.ts'
import { parseSql } from './sql/parse-sql.ts'
import { testNow } from './sql/test-sql.test-support.ts'
import { createTestCollection, createTestSchema } from './test-collection.test-support.ts'
import { listLikeParts, makePartsPattern, makeWordPatterns } from './text-parts.ts'

const pieces = [
  ...[
    'abc',
    'ABC',
    'aBcd',
    'bcd',
    'a',
    'ab',
    'Müll',
    'MÜLL',
    'größe',
    'Straße',
    'é',
    'É',
    'İ',
    'ı',
  ],
  ...[
    'ΟΔΟΣ',
    'οδος',
    'Σ',
    'σας',
    '100%',
    '50_',
    '%',
    '_',
    '\\',
    '"',
    '\n',
    '\t',
    ' ',
    '  ',
    '-',
    '.',
  ],
  ...[
    'a.b@c.de',
    'http://x.yz/abc',
    '<b>',
    '&amp;',
    '12abc',
    '1e5',
    'K',
    '日本語',
    '😀abc',
    'don’t',
  ],
]
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 4 }).map((list) => list.join(''))
const value = fc.oneof(
  { weight: 8, arbitrary: text },
  fc.array(fc.oneof(text, fc.constant(7), fc.constant(null)), { maxLength: 3 }),
  fc.constantFrom(null, 7, 123456, true, { x: 'abc' }),
)
const records = [
  ...fc.sample(value, { numRuns: 600, seed: 3 }),
  `${'lorem ipsum '.repeat(20_000)}needle`,
].map((t, place) => ({ t, place }))
const caps = { rows: 100_000, bytes: 64 * 1024 * 1024 }

/** An operator of `find`, and what it means for the value `v` and the wanted text `$1`. */
const string = (test: string) => `jsonb_typeof(v) = 'string' AND ${test}`
const element = (test: string) =>
  `jsonb_typeof(v) = 'array' AND EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(v) WHEN 'array' THEN v END) AS e WHERE jsonb_typeof(e) = 'string' AND ${test})`
const operators = {
  includes: `${string('strpos(s, $1) > 0')} OR ${element("e #>> '{}' = $1")}`,
  includesCaseInsensitive: `${string('strpos(lower(s), lower($1)) > 0')} OR ${element("lower(e #>> '{}') = lower($1)")}`,
  startsWithCaseInsensitive: string('starts_with(lower(s), lower($1))'),
  endsWith: string('right(s, length($1)) = $1'),
  endsWithCaseInsensitive: string('right(lower(s), length(lower($1))) = lower($1)'),
  search: string(
    `to_tsvector('pg_catalog.simple', left(s, 65536)) @@ plainto_tsquery('pg_catalog.simple', $1)`,
  ),
}
const forms = {
  "t LIKE '$1'": string('s LIKE $1'),
  "t ILIKE '$1'": string('lower(s) LIKE lower($1)'),
  "lower(t) LIKE '$1'": string('lower(s) LIKE $1'),
  "t LIKE '$1' OR place = 3": `place = 3 OR ${string('s LIKE $1')}`,
  "NOT (t ILIKE '$1')": `NOT (CASE jsonb_typeof(v) WHEN 'string' THEN lower(s) LIKE lower($1) WHEN 'null' THEN NULL ELSE FALSE END)`,
}
const pattern = fc
  .array(fc.oneof(text, fc.constantFrom('%', '%', '_', '\\%', '\\_', '\\\\')), { maxLength: 5 })
  .map((list) => list.join(''))
  .filter((each) => !/(?:^|[^\\])(?:\\\\)*\\$/.test(each))

describe.each(listTestEngines())('%s: a trigram index', (engine) => {
  let test: TestDatabase
  const run = (text: string, values: readonly unknown[] = []) =>
    test.database.query(sql.compiled(text, values))

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    await createTestSchema(run, 'app')
    await createTestCollection(
      run,
      'app.c',
      records.map((each) => ({ body: JSON.stringify(each) })),
    )
    const extensionSchema = await ensureExtension(test.database, 'pg_trgm')
    const place = { schema: 'app', table: 'c', name: 'c_t', extensionSchema }
    await run(compileIndex({ ...place, paths: [['t']], method: 'trigram' }).text)
    await run(
      'CREATE VIEW app.plain AS SELECT *, data -> $$t$$ AS v, data ->> $$t$$ AS s, (data ->> $$place$$)::int AS place FROM app.c',
    )
  })
  afterAll(async () => test?.drop())

  const byIndex = async ({ text, values }: { text: string; values: readonly unknown[] }) => {
    const [row] = await test.database.transaction(async (tx) => {
      await tx.execute(sql.compiled('SET LOCAL enable_seqscan = off', []))
      return tx.query(sql.compiled(text, values))
    })
    return JSON.parse(`[${row?.records}]`).map((each: { place: number }) => each.place)
  }
  const byMeaning = async (meaning: string, wanted: string) => {
    const rows = await run(
      `SELECT place FROM app.plain WHERE ($1::text IS NOT NULL) AND (${meaning}) ORDER BY place`,
      [wanted],
    )
    return rows.map(({ place }) => place)
  }

  it('an operator of find finds the same by it as without it', async () => {
    const operator = fc.constantFrom(...Object.entries(operators))
    await fc.assert(
      fc.asyncProperty(
        operator,
        fc.oneof(text, fc.constant('needle')),
        async ([name, meaning], wanted) => {
          const query = parseList({ find: { t: { [name]: wanted } }, select: { place: true } })
          const statement = compileList(query, { schema: 'app', table: 'c', caps, total: true })
          expect(await byIndex(statement)).toEqual(await byMeaning(meaning, wanted))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('LIKE and ILIKE find the same by it as without it', async () => {
    const form = fc.constantFrom(...Object.entries(forms))
    await fc.assert(
      fc.asyncProperty(
        form,
        fc.oneof(pattern, fc.constant('%needle')),
        async ([where, meaning], wanted) => {
          const written = where.replace('$1', () => wanted.replaceAll("'", "''"))
          const query = await parseSql(`SELECT place FROM app::c WHERE ${written}`, {
            now: testNow,
          })
          const resolve = () => ({ schema: 'app', table: 'c' })
          const statement = compileQuery(query, { schema: 'app', caps, resolve })
          expect(await byIndex(statement)).toEqual(await byMeaning(meaning, wanted))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('the plan uses it for three letters, and not for two', async () => {
    const plan = async (includes: string) => {
      const query = parseList({ find: { t: { includes } }, limit: 5 })
      const { text, values } = compileList(query, { schema: 'app', table: 'c', caps, total: false })
      return JSON.stringify(await run(`EXPLAIN ${text}`, values))
    }
    expect(await plan('needle')).toContain('c_t')
    expect(await plan('ne')).not.toContain('c_t')
  })
})

describe('parts of texts', () => {
  it('a pattern is made of the parts that a text must have, if one of them has three letters', () => {
    expect(makePartsPattern(['abc', 'd%'])).toBe('%abc%d\\%%')
    expect(makePartsPattern(['ab', 'c"d'])).toBeUndefined()
    expect(listLikeParts('a\\%b%c_\\\\d')).toEqual(['a%b', 'c', '\\d'])
    expect(makeWordPatterns('Größe der Straßen x2')).toEqual(['%Stra%', '%der%'])
    expect(makeWordPatterns('a <tag>')).toEqual([])
  })
})
