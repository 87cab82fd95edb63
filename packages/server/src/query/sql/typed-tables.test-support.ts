import { Fault } from '../../base/fault.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
} from '../test-collection.test-support.ts'
import type { ValueType } from '../tree/query.ts'
import { data } from './orders.test-data.ts'
import { makeQueryRunner, testNow } from './test-sql.test-support.ts'

export type Row = Readonly<Record<string, unknown>>

const columns: Readonly<Record<keyof typeof data, string>> = {
  customers: 'id text PRIMARY KEY, name text, city text, score numeric',
  orders:
    'id numeric PRIMARY KEY, customer text, amount numeric, status text, paid boolean, at timestamp',
  items: 'id numeric PRIMARY KEY, order_id numeric, sku text, quantity numeric, price numeric',
}

/** The types that collections may declare for these columns. */
const declared: Readonly<Record<string, ReadonlyMap<string, ValueType>>> = {
  'app::orders': new Map<string, ValueType>([
    ['id', 'number'],
    ['customer', 'text'],
    ['amount', 'number'],
    ['status', 'text'],
    ['paid', 'boolean'],
    ['at', 'timestamp'],
  ]),
  'app::items': new Map<string, ValueType>([
    ['id', 'number'],
    ['order_id', 'number'],
    ['sku', 'text'],
    ['quantity', 'number'],
    ['price', 'number'],
  ]),
  'app::customers': new Map<string, ValueType>([
    ['id', 'text'],
    ['name', 'text'],
    ['city', 'text'],
    ['score', 'number'],
  ]),
}

/** `skipped`: PostgreSQL refuses it. */
type Comparison = {
  readonly outcome: 'same' | 'refused' | 'skipped' | 'wrong'
  readonly about: string
}

/** Makes collections and, beside them, tables with the same values in typed columns, for PostgreSQL itself. */
export async function makeTypedTables(run: RunSql) {
  await createTestSchema(run, 'app')
  for (const [name, list] of Object.entries(data)) {
    // A value that is NULL in the table is missing in every other record.
    const bodies = list.map((each, at) => {
      const kept = Object.entries(each).filter(([, value]) => value !== null || at % 2 === 0)
      return { body: JSON.stringify(Object.fromEntries(kept)) }
    })
    await createTestCollection(run, `app.${name}`, bodies)
  }
  const askPostgres = await makeNativeTables(run)
  const { ask } = makeQueryRunner(run)

  const answer = async (text: string, isTyped: boolean): Promise<readonly Row[]> => {
    const typesOf = isTyped ? (model: string) => declared[model] : () => undefined
    const primaryOf = isTyped ? () => 'id' : () => undefined
    return (await ask(text, { now: testNow, typesOf, primaryOf })).rows
  }

  /** Compares the answers, over declared fields or undeclared ones; our own errors are thrown, but for refusals. */
  const compareWithPostgres = async (text: string, isTyped: boolean): Promise<Comparison> => {
    const expected = await askPostgres(text).catch((error: unknown) => String(error))
    if (typeof expected === 'string') return { outcome: 'skipped', about: expected }
    try {
      const [ours, theirs] = [
        normalize(await answer(text, isTyped), text),
        normalize(expected, text),
      ]
      if (JSON.stringify(ours) === JSON.stringify(theirs)) return { outcome: 'same', about: '' }
      const at = ours.findIndex((row, index) => row !== theirs[index])
      return {
        outcome: 'wrong',
        about: `${ours.length} rows of ${theirs.length}; ${ours[at]} is not ${theirs[at]}`,
      }
    } catch (error) {
      if (error instanceof Fault) return { outcome: 'refused', about: error.message }
      return { outcome: 'wrong', about: String(error) }
    }
  }

  return { answer, askPostgres, compareWithPostgres }
}

/** Makes the tables in typed columns alone, and asks PostgreSQL itself about them. */
export async function makeNativeTables(run: RunSql) {
  await run('CREATE SCHEMA typed')
  for (const [name, list] of Object.entries(data)) {
    await run(`CREATE TABLE typed.${name} (${columns[name as keyof typeof data]})`)
    await run(
      `INSERT INTO typed.${name} SELECT * FROM json_populate_recordset(NULL::typed.${name}, $1::json)`,
      [JSON.stringify(list)],
    )
  }
  return async (text: string): Promise<readonly Row[]> => {
    const native = text
      .replace(/;\s*$/, '')
      .replaceAll(/"?app"?::"?(\w+)"?/g, 'typed.$1')
      // A table's own name, not its schema, may stand before a column once more.
      .replaceAll(/typed\.(\w+)\.("?[\w*]+"?)/g, '$1.$2')
    const [row] = await run(
      `SELECT coalesce(json_agg(row_to_json(native_answer)), '[]')::text AS rows FROM (${native}\n) AS native_answer`,
    )
    return JSON.parse(String(row?.rows))
  }
}

/** Times are written with a Z here; numbers as short as they can be; a missing field is null. */
export function normalize(rows: readonly Row[], text: string): readonly string[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].sort()
  const plain = rows.map((row) =>
    JSON.stringify(
      names.flatMap((name) => {
        const value = normalizeValue(row[name] ?? null)
        return value === null ? [] : [[name, value]]
      }),
    ),
  )
  return /ORDER BY/i.test(removeInner(text)) ? plain : plain.sort()
}

function normalizeValue(value: unknown): unknown {
  if (typeof value === 'string')
    return value.replaceAll(/(:\d\d(?:\.\d+)?)(?:Z|\+00:00)(?=$|")/g, '$1')
  if (typeof value === 'number') return Number(value.toPrecision(12))
  if (Array.isArray(value)) return value.map(normalizeValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, normalizeValue(each)]),
  )
}

/** Removes texts and all that stands in parentheses. */
function removeInner(text: string): string {
  const shorter = text.replaceAll(/'[^']*'/g, '').replaceAll(/\([^()]*\)/g, '')
  return shorter === text ? text : removeInner(shorter)
}
