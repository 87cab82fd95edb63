import { rowText } from '../query/compile/compile-query.ts'
import { quoteName } from '../query/sql-text.ts'
import type { Query } from '../query/tree/query.ts'
import { type Flow, weighted } from './delta-relation.ts'
import type { Mode, ViewPlace, Writing } from './statement-writing.ts'

/**
 * The rows of a view as they come and go: SQL with the columns `body` (the row as JSON text), `leaf` (by which rows
 * that come are put in order) and `w`.
 */
export type Lines = (mode: Mode, writing: Writing) => string

/** The lines of the flow of a query. */
export function flowLines(query: Query, flow: Flow): Lines {
  return (mode, writing) => {
    const lines = `SELECT ${rowText(query)} AS body, item.leaf, item.w FROM (${weighted(flow, mode, writing)}) AS item`
    return mode === 'fill' ? `${lines}\nUNION ALL ${rowsAsGone(writing)}` : lines
  }
}

/** The rows that the view has, as lines that go. */
export function rowsAsGone({ place }: Writing): string {
  return `SELECT body, NULL, -1 FROM ${rowsTable(place)}`
}

export function rowsName(number: number): string {
  return `v_${number}`
}

export function rowsTable({ schema, number }: ViewPlace): string {
  return quoteName(schema, rowsName(number))
}

/** Statements that make the table of a view's rows, with columns of its own besides. */
export function rowsTables(place: ViewPlace, more: readonly string[] = []): readonly string[] {
  const name = rowsName(place.number)
  const table = rowsTable(place)
  const columns = `leaf int8 GENERATED ALWAYS AS IDENTITY, height int8 NOT NULL DEFAULT 0,
 sequence int4 NOT NULL DEFAULT 0, key text NOT NULL DEFAULT '', deleted bool NOT NULL DEFAULT FALSE,
 superseded_by int8, data jsonb NOT NULL, body text NOT NULL`
  const primary = `CONSTRAINT ${quoteName(`${name}_pkey`)} PRIMARY KEY (leaf)`
  return [`CREATE TABLE ${table} (${[columns, ...more, primary].join(', ')})`]
}

/** The index by which rows are found by their texts. */
export function rowsIndex(place: ViewPlace): string {
  return `CREATE INDEX ${quoteName(`${rowsName(place.number)}_key`)} ON ${rowsTable(place)} (key) WHERE superseded_by IS NULL`
}

/** Adds and removes rows of a view. Their texts are all there is of them: of equal rows any one may go. */
export function rowsStep(lines: Lines, mode: Mode, writing: Writing): string {
  const table = rowsTable(writing.place)
  const net = writing.common(
    {},
    () => `SELECT body, min(leaf) AS leaf, sum(w)::int8 AS w
FROM (${lines(mode, writing)}) AS line GROUP BY body HAVING sum(w) <> 0`,
  )
  writing.common(
    {},
    () => `DELETE FROM ${table} WHERE leaf = ANY (ARRAY(SELECT one.leaf FROM ${net} AS net
 CROSS JOIN LATERAL (SELECT leaf FROM ${table} AS t WHERE t.superseded_by IS NULL
  AND t.key = ${keyText('net.body')} AND t.body = net.body LIMIT greatest(-net.w, 0)) AS one
 WHERE net.w < 0))`,
  )
  return `INSERT INTO ${table} (key, data, body) SELECT ${keyText('net.body')}, net.body::jsonb, net.body
FROM ${net} AS net CROSS JOIN LATERAL generate_series(1, net.w) WHERE net.w > 0 ORDER BY net.leaf`
}

/** Short whatever the row; rows of one key are told apart by their texts. */
function keyText(body: string): string {
  return `hashtextextended(${body}, 0)::text`
}
