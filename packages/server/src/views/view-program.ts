import { printRow } from '../query/compile/compile-query.ts'
import { type CompiledStatement, quoteName } from '../query/sql-text.ts'
import { getOutput, type OutputColumn, type Query, type SelectQuery } from '../query/tree/query.ts'
import { collectQuerySources } from '../query/tree/query-sources.ts'
import { noLookups } from './delta-relation.ts'
import {
  computeOnce,
  type GroupState,
  listTableNames,
  printGroupRowsTables,
  printStateStep,
  printStateTables,
} from './group-state.ts'
import { type JoinField, listJoinFields } from './join-fields.ts'
import { lowerGroups, lowerQuery, type PlannedTables } from './lower-query.ts'
import { normalizeQuery } from './normalize-query.ts'
import { NotIncremental } from './not-incremental.ts'
import { planTopRows } from './plan-top-rows.ts'
import {
  beginStatement,
  type Mode,
  type PositionedStatement,
  type Positions,
  type ViewPlace,
  type Writing,
} from './statement-writing.ts'
import {
  getRowsName,
  getRowsTable,
  makeRowChanges,
  makeRowsTables,
  printRowsStep,
  type RowChanges,
} from './view-rows.ts'

export type { JoinField } from './join-fields.ts'
export type { Positions, ViewPlace } from './statement-writing.ts'

/**
 * The statements that create and maintain a view. Its rows are in the table `v_<number>`, which queries read like a
 * collection's table; tables `s_<number>_...` beside it are read by nothing else. The statements of one call run in
 * order in one transaction, and only one transaction at a time works on a view.
 */
export type ViewProgram = {
  readonly columns: readonly OutputColumn[]
  /** The reason why the view cannot be maintained incrementally, in words for the seller ("a window function"). */
  readonly notIncrementalReason: string | undefined
  /** The collections that it reads, each once. */
  readonly models: readonly string[]
  /** Fields by which `advance` looks records up; without an index on each of them its cost grows with the collection. */
  readonly joinFields: readonly JoinField[]
  /** Creates the tables, empty. */
  readonly tables: (place: ViewPlace) => readonly CompiledStatement[]
  /** Creates those beside the table of its rows. */
  readonly stateTables: (place: ViewPlace) => readonly CompiledStatement[]
  readonly tableNames: (number: number) => readonly string[]
  /**
   * Every column of these tables but `leaf` follows from definition and position; the other tables hold the last
   * change.
   */
  readonly keptTableNames: (number: number) => readonly string[]
  /** Brings the tables from whatever they hold to the definition as of the positions. */
  readonly fill: (place: ViewPlace, to: Positions) => readonly CompiledStatement[]
  /**
   * Advances the tables by the change; only without a not-incremental reason, and from the positions that they are
   * at.
   */
  readonly advance: (
    place: ViewPlace,
    from: Positions,
    to: Positions,
  ) => readonly CompiledStatement[]
  /** Recomputes the rows from scratch, as `body`, the JSON text that they have in `v_<number>`. */
  readonly recompute: (place: ViewPlace, at: Positions) => CompiledStatement
  /** Returns one row {source_records, view_records} with the number of live rows; it counts through the tables. */
  readonly counts: (place: ViewPlace) => CompiledStatement
}

/** Plans the program of the view that a checked query defines. */
export function planView(query: Query): ViewProgram {
  const normal = normalizeQuery(query)
  const models = [...new Set(collectQuerySources(query).map(({ model }) => model))]
  const { rowChanges, groupStates, notIncrementalReason } = makePlan(normal)
  const steps = (mode: Mode, place: ViewPlace): readonly PositionedStatement[] =>
    [
      ...groupStates.map((state) => (writing: Writing) => printStateStep(state, mode, writing)),
      ...(rowChanges === undefined
        ? []
        : [(writing: Writing) => printRowsStep(rowChanges, mode, writing)]),
    ].map((step) => {
      const writing = beginStatement(place, normal)
      return writing.statement(step(writing))
    })
  const stateTables = (place: ViewPlace) => printAll(groupStates, place, printStateTables)
  const advances = memoizeLast((place) => steps('advance', place))
  return {
    columns: getOutput(query).columns,
    notIncrementalReason,
    models,
    joinFields: notIncrementalReason === undefined ? listJoinFields(normal) : [],
    tables: (place) => [
      ...(rowChanges === undefined ? [] : makeRowsTables(place)),
      ...printAll(groupStates, place, printGroupRowsTables),
      ...stateTables(place),
    ],
    stateTables,
    tableNames: (number) => [
      getRowsName(number),
      ...groupStates.flatMap((state) => listTableNames(state, number)),
    ],
    keptTableNames: (number) => [
      getRowsName(number),
      ...groupStates.flatMap((state) => listTableNames({ ...state, keepsChange: false }, number)),
    ],
    fill: (place, to) => steps('fill', place).map((step) => step({ from: to, to })),
    advance: (place, from, to) => advances(place, models).map((step) => step({ from, to })),
    recompute: (place, at) => {
      const writing = beginStatement(place, normal)
      const rows = writing.printQuery(normal)
      const text = `SELECT ${printRow(normal)} AS body FROM (${rows}) AS item`
      return writing.statement(text)({ from: at, to: at })
    },
    counts: (place) => compileCounts(place, models),
  }
}

function printAll(
  states: readonly GroupState[],
  place: ViewPlace,
  print: (state: GroupState, place: ViewPlace) => readonly string[],
): readonly CompiledStatement[] {
  return states.flatMap((state) => print(state, place)).map((text) => ({ text, values: [] }))
}

/** Calls `make` only when the place differs from that of the last call. */
function memoizeLast(
  make: (place: ViewPlace) => readonly PositionedStatement[],
): (place: ViewPlace, models: readonly string[]) => readonly PositionedStatement[] {
  let known: { readonly key: string; readonly made: readonly PositionedStatement[] } | undefined
  return (place, models) => {
    const tables = models.map((model) => place.resolve(model))
    const key = JSON.stringify([place.schema, place.number, tables])
    if (known?.key !== key) known = { key, made: make(place) }
    return known.made
  }
}

type Plan = {
  /** The rows that come and go; undefined where a group state makes the rows. */
  readonly rowChanges: RowChanges | undefined
  readonly groupStates: readonly GroupState[]
  readonly notIncrementalReason: string | undefined
}

function makePlan(query: Query): Plan {
  let tables = 0
  const planned: PlannedTables = {
    groupStates: [],
    nextSuffix: () => {
      tables += 1
      return String(tables)
    },
  }
  try {
    return {
      rowChanges: planRowChanges(query, planned),
      groupStates: planned.groupStates,
      notIncrementalReason: undefined,
    }
  } catch (error) {
    if (!(error instanceof NotIncremental)) throw error
    return {
      rowChanges: makeWholeChanges(query),
      groupStates: [],
      notIncrementalReason: error.message,
    }
  }
}

function planRowChanges(query: Query, planned: PlannedTables): RowChanges | undefined {
  if (query.kind === 'set') return makeRowChanges(query, lowerQuery(query, planned))
  if (query.limit !== undefined || query.offset > 0) return planTopRows(query, planned)
  if (!query.grouped) return makeRowChanges(query, lowerQuery(query, planned))
  planGroupedRows(query, planned)
  return undefined
}

/**
 * Plans groups as the rows of a view. They are stored in the table of the groups itself, so that a changed group is
 * one changed row; groups that HAVING leaves out are stored as deleted.
 */
function planGroupedRows(query: SelectQuery, planned: PlannedTables): void {
  const { grouped, where, columns } = lowerGroups(query, planned, false)
  const { bags, state, withValues } = grouped
  planned.groupStates.push(...bags, {
    ...state,
    suffix: '',
    keepsChange: false,
    shown: (rows, names, { print }) => {
      const own = names.map((name) => `r${query.id}.${name}`)
      const made = columns.map((each, at) => `${print(each)} AS c${at}`)
      const test = where.length === 0 ? 'TRUE' : where.map(print).join(' AND ')
      const list = [...own, `(${test}) IS NOT TRUE AS deleted`, ...made].join(', ')
      return `SELECT item.*, ${printRow(query)} AS body
FROM (SELECT ${list} FROM (${withValues(rows)}) AS r${query.id}) AS item ${computeOnce}`
    },
  })
}

/** Makes the row changes of a query that is recomputed as a whole. */
function makeWholeChanges(query: Query): RowChanges {
  const rows = (writing: Writing) =>
    `SELECT NULL::int8 AS leaf, whole.* FROM (${writing.printQuery(query)}) AS whole`
  return makeRowChanges(query, { columns: [], lookups: noLookups, rows, change: rows })
}

function compileCounts(place: ViewPlace, models: readonly string[]): CompiledStatement {
  const count = (table: string) =>
    `(SELECT count(*) FROM ${table} WHERE superseded_by IS NULL AND NOT deleted)`
  const sources = models.flatMap((model) => {
    const source = place.resolve(model)
    return source === undefined ? [] : [count(quoteName(source.schema, source.table))]
  })
  const text = `SELECT ${['0', ...sources].join(' + ')} AS source_records, ${count(getRowsTable(place))} AS view_records`
  return { text, values: [] }
}
