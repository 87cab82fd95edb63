import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../base/fault.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import { compileQuery } from '../compile/compile-query.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
} from '../test-collection.test-support.ts'
import type { ValueType } from '../tree/query.ts'
import { accepted } from './accepted.test-data.ts'
import { data } from './orders.test-data.ts'
import { parseSql, type SqlOptions } from './parse-sql.ts'
import { refused } from './refused.test-data.ts'

type Json = Readonly<Record<string, unknown>>
const now = Date.UTC(2024, 5, 1)
const caps = { rows: 10_000, bytes: 10_000_000 }

async function refusal(text: string, options: Partial<SqlOptions> = {}): Promise<Fault> {
  try {
    await parseSql(text, { now, parameters: {}, ...options })
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('SQL that is not possible', () => {
  it.each(refused)(
    'a statement that is not possible is refused, naming the construct: %s',
    async (text, construct) => {
      const parameters = text.includes('$1') ? [] : {}
      const fault = await refusal(text, { parameters })
      expect(fault.code).toBe('VALIDATION_FAILED')
      expect(fault.message).toContain(construct)
    },
  )

  it('a statement is refused with its place in the text as it was sent', async () => {
    const fault = await refusal('SELECT Über, id,\n  pg_sleep(1) AS größe FROM app::c')
    expect(fault.details).toMatchObject({ line: 2, column: 3 })
  })

  it.each([
    [
      'characters',
      `SELECT 1${' '.repeat(limits.sqlCharsMax - 8)}`,
      `SELECT 1${' '.repeat(limits.sqlCharsMax - 7)}`,
    ],
    [
      'collections',
      `SELECT 1 AS n FROM ${Array.from({ length: limits.sqlSourcesMax }, (_, at) => `app::c${at}`).join(', ')}`,
      `SELECT 1 AS n FROM ${Array.from({ length: limits.sqlSourcesMax + 1 }, (_, at) => `app::c${at}`).join(', ')}`,
    ],
    [
      'columns',
      `SELECT ${Array.from({ length: limits.sqlColumnsMax }, (_, at) => `1 AS c${at}`).join(', ')}`,
      `SELECT ${Array.from({ length: limits.sqlColumnsMax + 1 }, (_, at) => `1 AS c${at}`).join(', ')}`,
    ],
    [
      'values of an IN list',
      `SELECT 1 WHERE 1 IN (${Array.from({ length: limits.inListMax }, () => 1).join(',')})`,
      `SELECT 1 WHERE 1 IN (${Array.from({ length: limits.inListMax + 1 }, () => 1).join(',')})`,
    ],
    [
      'words and signs',
      `SELECT 1 WHERE ${Array.from({ length: limits.sqlWordsMax / 2 - 1 }, () => '1=1').join(' OR ')}`,
      `SELECT 1 WHERE ${Array.from({ length: limits.sqlWordsMax / 2 + 1 }, () => '1=1').join(' OR ')}`,
    ],
    [
      'words, signs and values',
      `SELECT 1 WHERE ${Array.from({ length: 2 }, () => `1 IN (${Array.from({ length: 6_138 }, () => 1).join(',')})`).join(' OR ')}`,
      `SELECT 1 WHERE ${Array.from({ length: 2 }, () => `1 IN (${Array.from({ length: 6_145 }, () => 1).join(',')})`).join(' OR ')}`,
    ],
    [
      'levels',
      `SELECT ${'-'.repeat(0)}${'abs('.repeat(60)}1${')'.repeat(60)}`,
      `SELECT ${'abs('.repeat(65)}1${')'.repeat(65)}`,
    ],
  ])('a statement with one more than the most %s is refused', async (_, most, tooMuch) => {
    await expect(parseSql(most, { now })).resolves.toBeDefined()
    expect((await refusal(tooMuch)).code).toBe('VALIDATION_FAILED')
  })

  it('a statement that the parser cannot take in is refused, and the next statement is read all the same', async () => {
    const sum = `SELECT ${Array.from({ length: 20_000 }, () => 1).join('+')}`
    const nested = `${'SELECT * FROM ('.repeat(3_000)}SELECT 1${') t'.repeat(3_000)}`
    for (const hostile of [sum, nested]) {
      expect((await refusal(hostile)).code).toBe('VALIDATION_FAILED')
      await expect(parseSql('SELECT 1', { now })).resolves.toBeDefined()
    }
  })

  it('a query that would become too long a statement is refused', async () => {
    const query = await parseSql(
      `SELECT ${'nullif(sqrt('.repeat(20)}x${'), 1)'.repeat(20)} AS y FROM app::c`,
      { now },
    )
    const compile = () =>
      compileQuery(query, { schema: 'app', caps, resolve: () => ({ schema: 'app', table: 'c' }) })
    expect(compile).toThrow('too complex')
  })
})

const columns = {
  customers: 'id text, name text, city text, score numeric',
  orders: 'id numeric, customer text, amount numeric, status text, paid boolean, at timestamp',
  items: 'id numeric, order_id numeric, sku text, quantity numeric, price numeric',
}
const types: Readonly<Record<string, ReadonlyMap<string, ValueType>>> = {
  'app::orders': new Map<string, ValueType>([
    ['id', 'number'],
    ['customer', 'text'],
    ['amount', 'number'],
    ['status', 'text'],
    ['paid', 'boolean'],
    ['at', 'timestamp'],
  ]),
  'app::items': new Map<string, ValueType>([['price', 'number']]),
}

describe.each(listTestEngines())('%s: SQL', (engine) => {
  let test: TestDatabase
  let run: RunSql

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    await run('CREATE SCHEMA typed')
    for (const [name, list] of Object.entries(data)) {
      // A value that is NULL in the table is missing in every other record.
      const bodies = list.map((each, at) => {
        const kept = Object.entries(each).filter(([, value]) => value !== null || at % 2 === 0)
        return { body: JSON.stringify(Object.fromEntries(kept)) }
      })
      await createTestCollection(run, `app.${name}`, bodies)
      await run(`CREATE TABLE typed.${name} (${columns[name as keyof typeof columns]})`)
      await run(
        `INSERT INTO typed.${name} SELECT * FROM json_populate_recordset(NULL::typed.${name}, $1::json)`,
        [JSON.stringify(list)],
      )
    }
  })
  afterAll(async () => test?.drop())

  async function answer(text: string, options: Partial<SqlOptions> = {}): Promise<readonly Json[]> {
    const query = await parseSql(text, { now, ...options })
    const statement = compileQuery(query, {
      schema: 'app',
      caps,
      resolve: (model) => ({ schema: 'app', table: model.split('::')[1] ?? '' }),
    })
    const [row] = await run(statement.text, statement.values)
    expect(row).toMatchObject({ height: 7n, sequence: 3, over: false })
    const rows: readonly Json[] = JSON.parse(`[${row?.records}]`)
    expect(row?.count).toBe(rows.length)
    expect(row?.bytes).toBe(BigInt(Buffer.byteLength(String(row?.records))))
    return rows
  }

  /** The answer of PostgreSQL itself over the tables. */
  async function oracle(text: string): Promise<readonly Json[]> {
    const native = text
      .replace(/;\s*$/, '')
      .replaceAll(/"?app"?::"?(\w+)"?/g, 'typed.$1')
      // A table's own name, not its schema, may stand before a column once more.
      .replaceAll(/typed\.(\w+)\.("?[\w*]+"?)/g, '$1.$2')
    const [row] = await run(
      `SELECT coalesce(json_agg(row_to_json(q)), '[]')::text AS rows FROM (${native}\n) AS q`,
    )
    return JSON.parse(String(row?.rows))
  }

  /** Times are written with a Z here; numbers as short as they can be; a missing field is null. */
  function normal(rows: readonly Json[], text: string): readonly string[] {
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].sort()
    const plain = rows.map((row) =>
      JSON.stringify(
        names.flatMap((name) => {
          const value = row[name] ?? null
          if (typeof value === 'string') return [[name, value.replace(/(:\d\d)Z$/, '$1')]]
          if (typeof value === 'number') return [[name, Number(value.toPrecision(12))]]
          return value === null ? [] : [[name, value]]
        }),
      ),
    )
    return /ORDER BY/i.test(text.replaceAll(/\([^()]*\)/g, '')) ? plain : plain.sort()
  }

  it.each(accepted)('SQL gives what PostgreSQL gives over tables: %s', async (text) => {
    const expected = normal(await oracle(text), text)
    expect(normal(await answer(text), text)).toEqual(expected)
    const findTypes = (model: string) => types[model]
    expect(normal(await answer(text, { typesOf: findTypes }), text)).toEqual(expected)
  })
})
