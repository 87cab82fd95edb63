import { compileQuery } from '../compile/compile-query.ts'
import type { FieldColumns } from '../field-column.ts'
import type { RunSql } from '../test-collection.test-support.ts'
import type { Query } from '../tree/query.ts'
import { parseSql, type SqlOptions } from './parse-sql.ts'

/** 1 June 2024. */
export const testNow = Date.UTC(2024, 5, 1)

/** Runs queries over the collections `app::name`, which are the tables `app.name`, all with the same field columns. */
export function makeQueryRunner(run: RunSql, fieldColumns?: FieldColumns) {
  const caps = { rows: 100_000, bytes: 10_000_000 }
  const rows = async (
    query: Query,
    more: { history?: boolean; total?: boolean } = {},
  ): Promise<{ rows: readonly Record<string, unknown>[]; text: string; total: unknown }> => {
    const resolve = (model: string) => ({
      ...{ schema: 'app', table: model.split('::').at(-1) ?? '' },
      fieldColumns,
      filterColumns: fieldColumns,
    })
    const statement = compileQuery(query, { schema: 'app', caps, resolve, ...more })
    const [row] = await run(statement.text, statement.values)
    if (row?.over !== false) throw new Error('the answer passed a cap')
    const text = String(row?.records)
    return { rows: JSON.parse(`[${text}]`), text, total: row?.total }
  }
  const ask = async (text: string, options: Partial<SqlOptions> & { history?: boolean } = {}) =>
    rows(await parseSql(text, { now: testNow, ...options }), {
      history: options.history ?? false,
    })
  return { rows, ask }
}
