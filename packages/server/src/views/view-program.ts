import { rowText } from '../query/compile/compile-query.ts'
import { type CompiledStatement, quoteName } from '../query/sql-text.ts'
import { type OutputColumn, outputOf, type Query } from '../query/tree/query.ts'
import { sourcesOfQuery } from '../query/tree/query-sources.ts'
import { notFound } from './delta-relation.ts'
import { type Tally, tablesOf, tallyStep, tallyTables } from './group-state.ts'
import { type JoinField, joinFieldsOf } from './join-fields.ts'
import { type Kept, lowerQuery } from './lower-query.ts'
import { normalForm } from './normalize-query.ts'
import { Obstacle } from './not-incremental.ts'
import { groupedRows } from './plan-grouped-rows.ts'
import { topRows } from './plan-top-rows.ts'
import {
  type Mode,
  type Positions,
  type ViewPlace,
  type Writing,
  type Written,
  write,
} from './statement-writing.ts'
import {
  flowLines,
  type Lines,
  rowsIndex,
  rowsName,
  rowsStep,
  rowsTable,
  rowsTables,
} from './view-rows.ts'

export type { JoinField } from './join-fields.ts'
export type { Positions, ViewPlace } from './statement-writing.ts'

/**
 * What makes and keeps a view. Its rows are the table `v_<number>`, of the shape of a collection's table as far as
 * queries read it; tables `s_<number>_...` beside it are read by nobody else. Statements of one call run in order in
 * one transaction, and of a view one transaction at a time.
 */
export type ViewProgram = {
  readonly columns: readonly OutputColumn[]
  /** What stands against keeping the view by changes, in words for the seller ("a window function"). */
  readonly obstacle: string | undefined
  /** The collections that it reads, each once. */
  readonly models: readonly string[]
  /** Fields by which `advance` looks records up; without an index on each of them its cost grows with the collection. */
  readonly joinFields: readonly JoinField[]
  /** Makes the tables, empty. */
  readonly tables: (place: ViewPlace) => readonly CompiledStatement[]
  readonly tableNames: (number: number) => readonly string[]
  /** Of these tables every column but `leaf` follows from definition and position; the others hold the last change. */
  readonly keptTableNames: (number: number) => readonly string[]
  /** Brings the tables from whatever they hold to the definition as of the positions. */
  readonly fill: (place: ViewPlace, to: Positions) => readonly CompiledStatement[]
  /** Brings them on by what changed; only without an obstacle, and from the positions that they are at. */
  readonly advance: (
    place: ViewPlace,
    from: Positions,
    to: Positions,
  ) => readonly CompiledStatement[]
  /** The rows by plain recomputation, as `body`, the JSON text that they have in `v_<number>`. */
  readonly recompute: (place: ViewPlace, at: Positions) => CompiledStatement
  /** One row {source_records, view_records} of what is live now; it counts through the tables. */
  readonly counts: (place: ViewPlace) => CompiledStatement
}

/** The program of a view that a checked query defines. */
export function planView(query: Query): ViewProgram {
  const normal = normalForm(query)
  const models = [...new Set(sourcesOfQuery(query).map(({ model }) => model))]
  const { lines, tallies, obstacle } = planOf(normal)
  const steps = (mode: Mode, place: ViewPlace): readonly Written[] =>
    [
      ...tallies.map((tally) => (writing: Writing) => tallyStep(tally, mode, writing)),
      ...(lines === undefined ? [] : [(writing: Writing) => rowsStep(lines, mode, writing)]),
    ].map((step) => {
      const writing = write(place, normal)
      return writing.statement(step(writing))
    })
  const advances = onceFor((place) => steps('advance', place))
  return {
    columns: outputOf(query).columns,
    obstacle,
    models,
    joinFields: obstacle === undefined ? joinFieldsOf(normal) : [],
    tables: (place) =>
      [
        ...(lines === undefined ? [] : [...rowsTables(place), rowsIndex(place)]),
        ...tallies.flatMap((tally) => tallyTables(tally, place)),
      ].map((text) => ({ text, values: [] })),
    tableNames: (number) => [
      rowsName(number),
      ...tallies.flatMap((tally) => tablesOf(tally, number)),
    ],
    keptTableNames: (number) => [
      rowsName(number),
      ...tallies.flatMap((tally) => tablesOf({ ...tally, handsOn: false }, number)),
    ],
    fill: (place, to) => steps('fill', place).map((step) => step({ from: to, to })),
    advance: (place, from, to) => advances(place, models).map((step) => step({ from, to })),
    recompute: (place, at) => {
      const writing = write(place, normal)
      const rows = writing.printQuery(normal)
      const text = `SELECT ${rowText(normal)} AS body FROM (${rows}) AS item`
      return writing.statement(text)({ from: at, to: at })
    },
    counts: (place) => countsOf(place, models),
  }
}

/** What is made for a place is made once, as long as the place is the same. */
function onceFor(
  make: (place: ViewPlace) => readonly Written[],
): (place: ViewPlace, models: readonly string[]) => readonly Written[] {
  let known: { readonly key: string; readonly made: readonly Written[] } | undefined
  return (place, models) => {
    const tables = models.map((model) => place.resolve(model))
    const key = JSON.stringify([place.schema, place.number, tables])
    if (known?.key !== key) known = { key, made: make(place) }
    return known.made
  }
}

type Plan = {
  /** How rows come and go; undefined where a tally makes them. */
  readonly lines: Lines | undefined
  readonly tallies: readonly Tally[]
  readonly obstacle: string | undefined
}

function planOf(query: Query): Plan {
  let tables = 0
  const kept: Kept = {
    tallies: [],
    nextSuffix: () => {
      tables += 1
      return String(tables)
    },
  }
  try {
    return { lines: linesOf(query, kept), tallies: kept.tallies, obstacle: undefined }
  } catch (error) {
    if (!(error instanceof Obstacle)) throw error
    return { lines: wholeLines(query), tallies: [], obstacle: error.message }
  }
}

function linesOf(query: Query, kept: Kept): Lines | undefined {
  if (query.kind === 'set') return flowLines(query, lowerQuery(query, kept))
  if (query.limit !== undefined || query.offset > 0) return topRows(query, kept)
  return query.grouped ? groupedRows(query, kept) : flowLines(query, lowerQuery(query, kept))
}

/** The lines of a query that is computed as one. */
function wholeLines(query: Query): Lines {
  const rows = (writing: Writing) =>
    `SELECT NULL::int8 AS leaf, whole.* FROM (${writing.printQuery(query)}) AS whole`
  return flowLines(query, { columns: [], found: notFound, rows, change: rows })
}

function countsOf(place: ViewPlace, models: readonly string[]): CompiledStatement {
  const count = (table: string) =>
    `(SELECT count(*) FROM ${table} WHERE superseded_by IS NULL AND NOT deleted)`
  const sources = models.flatMap((model) => {
    const source = place.resolve(model)
    return source === undefined ? [] : [count(quoteName(source.schema, source.table))]
  })
  const text = `SELECT ${['0', ...sources].join(' + ')} AS source_records, ${count(rowsTable(place))} AS view_records`
  return { text, values: [] }
}
