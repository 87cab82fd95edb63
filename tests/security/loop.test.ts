import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, test } from 'vitest'
import type { WorkerRequest } from '../support/worker-client.ts'
import {
  bodyChars,
  expectQuick,
  fill,
  type HeldPlace,
  many,
  openHeldPlace,
  plainChars,
  post,
  root,
  toObject,
} from './held-loop.ts'

const sqlChars = limits.sqlCharsMax - 100

/** Statements of the maximum length, in the forms that are costliest to parse; `§` is a collection. */
const statements: Readonly<Record<string, string>> = {
  'a long list of columns': `SELECT ${fill('a', sqlChars, ',')} FROM §`,
  'columns with capitals': `SELECT ${fill('A', sqlChars, ',')} FROM §`,
  'a long condition': `SELECT a FROM § WHERE ${fill('a=1', sqlChars, ' OR ')}`,
  'a long IN list': `SELECT a FROM § WHERE a IN (${fill('1', sqlChars, ',')})`,
  'a long sum': `SELECT 1${fill('+1', sqlChars)} FROM §`,
  brackets: `SELECT ${'('.repeat(sqlChars / 2)}1${')'.repeat(sqlChars / 2)} FROM §`,
  'many tables': `SELECT 1 FROM ${fill('§', sqlChars, ',')}`,
  'many tables behind many columns': `SELECT ${fill('a', sqlChars - 1000, ',')} FROM ${fill('§', 900, ',')}`,
  'texts past ASCII': `SELECT ${fill("'ä'", sqlChars, ',')} FROM §`,
  'names past ASCII': `SELECT ${fill('Ä', sqlChars, ',')} FROM §`,
  'one long text': `SELECT '${'x'.repeat(sqlChars)}' FROM §`,
  'a long union': fill('SELECT 1 FROM §', sqlChars, ' UNION '),
  'many conditions of CASE': `SELECT ${fill('CASE WHEN a THEN 1 END', sqlChars, ',')} FROM §`,
  parameters: `SELECT ${fill(':a', sqlChars, ',')} FROM §`,
  'a mistake at the end': `SELECT ${fill('a', sqlChars, ',')} FROM § WHERE !!`,
}

const nest = (depth: number, around: (inner: string) => string) => {
  let text = 'a'
  for (let at = 0; at < depth; at++) text = around(text)
  return text
}
const list = (count: number, make: (at: number) => string, between = ',') =>
  many(count, make).join(between)

/** Statements whose few words stand for many parts, or are compared with many others. */
const dense: Readonly<Record<string, string>> = {
  'BETWEEN SYMMETRIC in itself': `SELECT ${nest(10, (a) => `CASE WHEN ${a} BETWEEN SYMMETRIC 'a' AND 'b' THEN 'x' END`)} AS x FROM §`,
  'BETWEEN in itself': `SELECT 1 FROM § WHERE ${nest(12, (a) => `(${a}) BETWEEN false AND true`)}`,
  'rows in rows': `SELECT ${nest(10, (a) => `((${a}, 'a') IN (('b', 'c'), ('d', 'e')))::text`)} AS x FROM §`,
  'sub-queries in sub-queries': `SELECT ${nest(20, (a) => `(SELECT max(${a === 'a' ? 't.a' : a}) FROM § AS t)`)} AS x FROM § AS o`,
  '2,000 groups': `SELECT 1 AS x FROM § GROUP BY ${list(2_000, (at) => `a${at}`)}`,
  'DISTINCT ON of 2,000': `SELECT DISTINCT ON (${list(1_900, (at) => `a${at}`)}) a FROM § ORDER BY ${list(1_900, (at) => `a${at}`)}`,
  'a window of 2,000, 200 times': `SELECT ${list(200, (at) => `sum(b) OVER w AS x${at}`)} FROM § WINDOW w AS (PARTITION BY ${list(2_000, (at) => `a${at}`)})`,
  'grouping sets again and again': `SELECT 1 AS x FROM § GROUP BY CUBE(${list(7, (set) => `(${list(60, (at) => `a${set}_${at}`)})`)}), ${list(500, () => 'b')}`,
  'one column, 3,000 times ordered by': `SELECT ${list(250, (at) => `a${at % 10}`, '||')} AS x FROM § ORDER BY ${list(3_000, () => '1')}`,
  'one column, 3,000 times grouped by': `SELECT ${list(250, (at) => `a${at % 10}`, '||')} AS x FROM § GROUP BY ${list(3_000, () => '1')}`,
  'an order of what DISTINCT gives': `SELECT DISTINCT ${list(99, (at) => `a${at}||b||c||d`)}, z||'1' FROM § ORDER BY ${list(500, () => `z||'1'`)}`,
  'a long sum that is one of many': `SELECT 1 AS x FROM § WHERE ${list(300, (at) => `a${at}`, '||')} IN (${list(2_000, () => 'b')})`,
  'a long sum that is like many': `SELECT 1 AS x FROM § WHERE ${list(300, (at) => `a${at}`, '||')} LIKE ANY (ARRAY[${list(4_000, () => "'b'")}])`,
  'a long CASE of a long sum': `SELECT CASE ${list(300, (at) => `a${at}`, '||')} ${list(900, (at) => `WHEN '${at}' THEN 1`, ' ')} END AS x FROM §`,
  'VALUES again and again': `SELECT 1 AS x FROM § WHERE ${list(15, () => `a IN (VALUES ${list(128, (at) => `(${at})`)})`, ' OR ')}`,
  'names of no relation': `SELECT 1 AS x FROM loopy::${'a'.repeat(60)} WHERE ${list(800, (at) => `${'a'.repeat(55)}${1000 + at}.b`, '=1 OR ')}=1`,
  'TABLE of TABLE': `WITH t0 AS (SELECT ${list(120, (at) => `f${at} AS c${at}`)} FROM §)${list(200, (at) => `, t${at + 1} AS (TABLE t${at})`, '')} SELECT c0 FROM t200`,
}

const finds: Readonly<Record<string, unknown>> = {
  '4,000 patterns': {
    or: many(4000, (at) => ({ a: { regExpMatches: `^(a|b){1,${at % 200}}[a-z]+x` } })),
  },
  '256 patterns': {
    or: many(limits.conditionsMax, (at) => ({
      a: { regExpMatches: `^(a|b){1,${at % 100}}[a-z]{1,200}x` },
    })),
  },
  '500,000 values of IN': { a: { in: many(500_000, (at) => at) } },
  '10,000 values of IN': { a: { in: many(limits.inListMax, (at) => `value ${at}`) } },
  '10,000 values of IN, many times': {
    and: many(30, (of) => ({ a: { in: many(limits.inListMax, (at) => at + of) } })),
  },
  '10,000 negated values of IN, many times': {
    and: many(30, (of) => ({ a: { notIn: many(limits.inListMax, (at) => `v${at + of}`) } })),
  },
  'keys without end': Object.fromEntries(
    many(300_000, (at) => [`k${at}`, { is: 1 }]) as [string, unknown][],
  ),
  'operators without end': {
    a: Object.fromEntries(many(300_000, (at) => [`k${at}`, 1]) as [string, unknown][]),
  },
  'lists without end': { or: many(1_000_000, () => ({})) },
  'lists in lists': nested(60, (inner) => ({
    and: [inner, inner.a === undefined ? { a: 1 } : { b: 1 }],
  })),
  'one long text': { a: { is: 'x'.repeat(plainChars - 1000) } },
  'one long text to be part of': { a: { contains: 'ä'.repeat(plainChars / 2 - 1000) } },
  base64: { a: { b64: Buffer.from('x'.repeat(plainChars / 2)).toString('base64') } },
  'empty objects': { or: many(150_000, () => ({})) },
  '120,000 values of IN': { and: many(12, () => ({ a: { in: many(10_000, (at) => at % 10) } })) },
  joins: Object.fromEntries(
    many(20_000, (at) => [`j${at}`, { resolve: {}, model: 'open', many: true }]) as [
      string,
      unknown,
    ][],
  ),
}

function nested(
  depth: number,
  around: (inner: Record<string, unknown>) => Record<string, unknown>,
) {
  let value: Record<string, unknown> = { a: 1 }
  for (let at = 0; at < depth; at++) value = around(value)
  return value
}

const lists: Readonly<Record<string, object>> = {
  'a long select': {
    select: Object.fromEntries(many(300_000, (at) => [`f${at}`, true]) as [string, unknown][]),
  },
  'a long select list': { select: many(500_000, (at) => `f${at}`) },
  aggregates: {
    aggregate: Object.fromEntries(
      many(100_000, (at) => [`s${at}`, { $sum: 'a' }]) as [string, unknown][],
    ),
  },
  groups: { group_by: many(500_000, (at) => `f${at}`) },
  'members that there are not': Object.fromEntries(
    many(300_000, (at) => [`k${at}`, 1]) as [string, unknown][],
  ),
  'a long cursor': { cursor: 'x'.repeat(bodyChars - 1000) },
}

/** Bodies that are costly to parse, for any endpoint. */
const makeTexts = (chars: number): Readonly<Record<string, string>> => ({
  'keys without end': `{${Array.from({ length: Math.floor(chars / 12) }, (_, at) => `"${String(at).padStart(6, 'k')}":1`).join(',')}}`,
  'brackets only': '['.repeat(chars),
  'flat brackets': `[${fill('[]', chars, ',')}]`,
  'nested to the limit': `[${fill(`${'['.repeat(100)}${']'.repeat(100)}`, chars, ',')}]`,
  numbers: `[${fill('1e10', chars, ',')}]`,
  'one text': `"${'x'.repeat(chars)}"`,
  escapes: `"${'\\u00e4'.repeat(chars / 6)}"`,
  'a mistake at the end': `[${fill('1', chars - 10, ',')},]`,
  blanks: ' '.repeat(chars),
  'texts past ASCII': `"${'ä'.repeat(chars / 2)}"`,
})

let place: HeldPlace
beforeAll(async () => {
  place = await openHeldPlace()
}, 120_000)
afterAll(() => place?.close())

const check = (request: WorkerRequest) => expectQuick(place.client, request)

describe('work that nobody has paid for', () => {
  describe.each(['nobody::knows', 'loopy::open', 'loopy::sold'])('a statement over %s', (name) => {
    test.each(Object.entries(statements))(
      'a statement with %s does not hold the event loop',
      async (_name, text) => {
        await check(
          post('/query/sql', { sql: text.replaceAll('§', name).slice(0, limits.sqlCharsMax) }),
        )
      },
    )
  })
  test.each(Object.entries(dense))(
    'a statement with %s does not hold the event loop',
    async (_name, text) => {
      await check(post('/query/sql', { sql: text.replaceAll('§', root) }))
    },
  )
  test.each(Object.entries(dense))(
    'a view with %s does not hold the event loop',
    async (_name, text) => {
      const { app } = place
      const sql = `CREATE MATERIALIZED VIEW loopy::dense AS ${text.replaceAll('§', root)}`
      await check(post('/api/apps/loopy/views/sql', { sql }, app.headers))
    },
  )
  test.each(Object.entries(finds))(
    'a find with %s does not hold the event loop',
    async (_name, find) => {
      await check(post('/list', { root, find }))
    },
  )
  test.each(Object.entries(lists))(
    'a list with %s does not hold the event loop',
    async (_name, parts) => {
      await check(post('/list', { root, ...parts }))
    },
  )
  test.each(Object.entries(finds))(
    'a quote for a find with %s does not hold the event loop',
    async (_name, find) => {
      await check(
        post('/api/pricing/quote', {
          app_id: 'loopy',
          collection: 'sold',
          operation_type: 'read',
          query: { find },
        }),
      )
    },
  )
  describe.each([
    ['/list', plainChars],
    ['/store', bodyChars],
    ['/api/pricing/quote', plainChars],
    ['/api/apps/loopy/batch', bodyChars],
    ['/api/apps/loopy/retention', bodyChars],
  ])('a body to %s of %i characters', (path, chars) => {
    test.each(Object.entries(makeTexts(chars)))(
      'a body of %s does not hold the event loop',
      async (_name, text) => {
        await check(post(path, text))
      },
    )
  })
  test('an access policy of many names that are none of ours does not hold the event loop', async () => {
    const policy = toObject(9_900, (at) => [`${'a'.repeat(35)}${at}`, 1])
    const body = { name: 'policed', access_policy: policy }
    await check(post('/api/apps/loopy/collections', body, place.app.headers))
  })
  test('a predefined query with a long find and many orders does not hold the event loop', async () => {
    const find = {
      and: [{ a: { in: many(10_000, (at) => at) } }, { b: { in: many(9_000, (at) => at) } }],
    }
    const base_query = {
      find,
      group_by: many(16, (at) => `f${at}`),
      aggregate: { n: { $count: '*' } },
    }
    const values = many(200, (at) => `f${at % 16}`)
    const parameters = [{ name: 's', field_path: 'sort', type: 'enum', values, default: 'f0' }]
    const query = { name: 'sorted', source_collection: 'open', base_query, parameters }
    await check(post('/api/apps/loopy/queries', query, place.app.headers))
  })
  test('arguments that all match a costly pattern do not hold the event loop', async () => {
    const pattern = '(a?a?a?a?a?a?){50}'
    const of = { type: 'list', items: 'string', maxItems: 1_000, maxLength: 2_000 }
    const parameters = [{ name: 'p', pattern, ...of }]
    const texts = many(1_000, () => 'a'.repeat(80))
    const sql = 'SELECT a FROM loopy::open WHERE b IN (:p)'
    const define = { name: 'patterns', sql, parameters }
    await place.ask('POST', '/api/apps/loopy/queries', define)
    const named = { app_id: 'loopy', query: 'patterns', parameters: { p: texts } }
    await check(post('/api/pricing/quote', named))
    await check(
      post(
        '/api/apps/loopy/queries/patterns/dry-run',
        { parameters: { p: texts } },
        place.app.headers,
      ),
    )
    const given = [{ ...parameters[0], default: texts }]
    await check(
      post('/api/apps/loopy/queries', { ...define, parameters: given }, place.app.headers),
    )
  })
  test.each(['nobody::knows', 'loopy::open'])(
    'a store of thousands of records to %s does not hold the event loop',
    async (name) => {
      const data = many(9_000, (at) => ({ id: `r${at}`, text: 'x'.repeat(500), n: at }))
      await check(post('/store', { root: name, data }))
    },
  )
})
