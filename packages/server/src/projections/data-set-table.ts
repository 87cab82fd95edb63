import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { DataSetTable } from '../query/data-set.ts'

type DataSetPlace = Pick<DataSetTable, 'schema' | 'table' | 'kind'>

/** Rows of one statement that fills a table. */
const chunkRows = 5_000

export function getDataSetTableName(set: { readonly number: number }): string {
  return `d_${set.number}`
}

export function buildDataSetTable({ schema, table, kind }: DataSetPlace): SqlStatement {
  const columns =
    kind === 'values'
      ? sql`value jsonb NOT NULL, CONSTRAINT ${sql.id(`${table}_pkey`)} PRIMARY KEY (value)`
      : sql`first inet NOT NULL, last inet NOT NULL, country text,
        CONSTRAINT ${sql.id(`${table}_pkey`)} PRIMARY KEY (first)`
  return sql`CREATE TABLE ${sql.id(schema, table)} (${columns})`
}

export async function fillDataSet(
  tx: Queryable,
  { schema, table, kind }: DataSetPlace,
  entries: readonly unknown[],
): Promise<void> {
  const name = sql.id(schema, table)
  for (let at = 0; at < entries.length; at += chunkRows) {
    const rows = JSON.stringify(entries.slice(at, at + chunkRows))
    await tx.execute(
      kind === 'values'
        ? sql`INSERT INTO ${name} (value) SELECT value FROM jsonb_array_elements(${rows}::jsonb) AS value`
        : sql`INSERT INTO ${name} (first, last, country)
          SELECT (span ->> 0)::inet, (span ->> 1)::inet, span ->> 2 FROM jsonb_array_elements(${rows}::jsonb) AS span`,
    )
  }
}
