import { printRow } from '../query/compile/compile-query.ts'
import { type CompiledStatement, quoteName } from '../query/sql-text.ts'
import type { Query } from '../query/tree/query.ts'
import { type DeltaRelation, printWeightedRows } from './delta-relation.ts'
import type { Mode, ViewPlace, Writing } from './statement-writing.ts'

/**
 * The changes of a view's rows: SQL with the columns `body` (the row as JSON text), `leaf` (the order in which new
 * rows are added) and the weight `w`.
 */
export type RowChanges = (mode: Mode, writing: Writing) => string

/** Makes the row changes of a query's delta relation. */
export function makeRowChanges(query: Query, relation: DeltaRelation): RowChanges {
  return (mode, writing) => {
    const changes = `SELECT ${printRow(query)} AS body, item.leaf, item.w FROM (${printWeightedRows(relation, mode, writing)}) AS item`
    return mode === 'fill' ? `${changes}\nUNION ALL ${printRemovals(writing)}` : changes
  }
}

/** Prints the removal of all rows that the view has. */
export function printRemovals({ place }: Writing): string {
  return `SELECT body, NULL, -1 FROM ${getRowsTable(place)}`
}

/** Returns the name of the table that holds a view's rows, by the view's number. */
export function getRowsName(number: number): string {
  return `v_${number}`
}

/** Returns the same with its schema, quoted for SQL. */
export function getRowsTable({ schema, number }: ViewPlace): string {
  return quoteName(schema, getRowsName(number))
}

/** Prints the statements that create the table of a view's rows, with further columns. */
export function printRowsTables(place: ViewPlace, more: readonly string[] = []): readonly string[] {
  const name = getRowsName(place.number)
  const table = getRowsTable(place)
  const columns = `leaf int8 GENERATED ALWAYS AS IDENTITY, height int8 NOT NULL DEFAULT 0,
 sequence int4 NOT NULL DEFAULT 0, key text NOT NULL DEFAULT '', deleted bool NOT NULL DEFAULT FALSE,
 superseded_by int8, data jsonb NOT NULL, body text NOT NULL`
  const primary = `CONSTRAINT ${quoteName(`${name}_pkey`)} PRIMARY KEY (leaf)`
  return [`CREATE TABLE ${table} (${[columns, ...more, primary].join(', ')})`]
}

/** Makes the statements that create the table of a view's rows alone, empty. */
export function makeRowsTables(place: ViewPlace): readonly CompiledStatement[] {
  return [...printRowsTables(place), printRowsIndex(place)].map((text) => ({ text, values: [] }))
}

/** Prints the index that finds rows by their texts. */
function printRowsIndex(place: ViewPlace): string {
  return `CREATE INDEX ${quoteName(`${getRowsName(place.number)}_key`)} ON ${getRowsTable(place)} (key) WHERE superseded_by IS NULL`
}

/**
 * Prints the statement that adds and removes rows of a view. Rows have no identity but their text: of equal rows
 * any one may go.
 */
export function printRowsStep(changes: RowChanges, mode: Mode, writing: Writing): string {
  const table = getRowsTable(writing.place)
  const net = writing.common(
    {},
    () => `SELECT body, min(leaf) AS leaf, sum(w)::int8 AS w
FROM (${changes(mode, writing)}) AS line GROUP BY body HAVING sum(w) <> 0`,
  )
  writing.common(
    {},
    () => `DELETE FROM ${table} WHERE leaf = ANY (ARRAY(SELECT one.leaf FROM ${net} AS net
 CROSS JOIN LATERAL (SELECT leaf FROM ${table} AS t WHERE t.superseded_by IS NULL
  AND t.key = ${printRowKey('net.body')} AND t.body = net.body LIMIT greatest(-net.w, 0)) AS one
 WHERE net.w < 0))`,
  )
  return `INSERT INTO ${table} (key, data, body) SELECT ${printRowKey('net.body')}, net.body::jsonb, net.body
FROM ${net} AS net CROSS JOIN LATERAL generate_series(1, net.w) WHERE net.w > 0 ORDER BY net.leaf`
}

/** Prints a row's key, which is short whatever the row; rows of one key are distinguished by their texts. */
function printRowKey(body: string): string {
  return `hashtextextended(${body}, 0)::text`
}
