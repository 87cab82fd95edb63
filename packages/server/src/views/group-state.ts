import { quoteName } from '../query/sql-text.ts'
import type { Mode, SqlType, ViewPlace, Writing } from './statement-writing.ts'
import { getRowsName, getRowsTable, printRowsTables } from './view-rows.ts'

/**
 * The stored state of groups: a table with one row for each combination of keys k0, k1 ... that occurs, its number
 * of occurrences (`n`), and sums a0, a1 ... over them. Rows are found by the hash of the keys, so no length of a
 * key can make a write fail.
 */
export type GroupState = {
  /**
   * The suffix of the table `s_<number>_<suffix>`; an empty one stands for the view's own table, whose rows `shown`
   * prints.
   */
  readonly suffix: string
  readonly keys: readonly SqlType[]
  readonly sums: readonly ('int8' | 'numeric')[]
  /** The columns computed from the row as it will be, which is called `fresh`. */
  readonly more: readonly ComputedColumn[]
  /** Keeps the row even before anything occurred: the one group of all rows. */
  readonly always: boolean
  /** Keeps the last change of rows in the table `..d`, for relations computed from it. */
  readonly keepsChange: boolean
  /** The text after ON <table> of each index. */
  readonly indexes: readonly string[]
  /**
   * Prints the occurrences with columns k.., `n` and a..: all of them, or those of the change. `planGroups`
   * (plan-aggregates.ts) makes them from the change of what is grouped.
   */
  readonly occurrences: (mode: Mode, writing: Writing) => readonly string[]
  /** Prints the columns of rows (SQL) with `body` and `deleted` beside them. */
  readonly shown?: (rows: string, columns: readonly string[], writing: Writing) => string
}

export type ComputedColumn = {
  readonly name: string
  readonly type: SqlType | 'bool'
  readonly of: (writing: Writing) => string
  /** True if the column depends on the keys alone. */
  readonly isFixed: boolean
}

/** Ends a sub-query whose columns are used more than once but should be computed once. */
export const computeOnce = 'OFFSET 0'

/** The most bytes of a value in an ordered index, whose entries are bounded; longer values are outside of it. */
export const indexedBytesMax = 1_500

export function getStateTable({ suffix }: Pick<GroupState, 'suffix'>, place: ViewPlace): string {
  return suffix === ''
    ? getRowsTable(place)
    : quoteName(place.schema, formatTableName(suffix, place.number))
}

/** Returns the table with the last change: rows as they were (w = -1) and as they are (w = 1). */
export function getChangeTable({ suffix }: Pick<GroupState, 'suffix'>, place: ViewPlace): string {
  return quoteName(place.schema, formatTableName(`${suffix}d`, place.number))
}

/** Returns the prefix of the names of all of a view's tables but that of its rows. */
export function getStatePrefix(number: number): string {
  return `s_${number}_`
}

function formatTableName(suffix: string, number: number): string {
  return `${getStatePrefix(number)}${suffix}`
}

/** Lists the names of a group state's tables beside the view's own. */
export function listTableNames(
  { suffix, keepsChange }: GroupState,
  number: number,
): readonly string[] {
  const names = suffix === '' ? [] : [formatTableName(suffix, number)]
  return keepsChange ? [...names, formatTableName(`${suffix}d`, number)] : names
}

/** Prints the statements that create the table of the view's rows, where the group state is kept there. */
export function printGroupRowsTables(state: GroupState, place: ViewPlace): readonly string[] {
  if (state.suffix !== '') return []
  const indexes = ['(hash)', ...state.indexes]
  return [
    ...printRowsTables(place, listColumns(state)),
    ...printIndexes(getRowsName(place.number), getRowsTable(place), indexes),
  ]
}

/** Prints the statements that create the tables of a group state beside the view's rows. */
export function printStateTables(state: GroupState, place: ViewPlace): readonly string[] {
  const table = getStateTable(state, place)
  const columns = listColumns(state).join(', ')
  const name = formatTableName(state.suffix, place.number)
  const key = (of: string, column: string) =>
    `CONSTRAINT ${quoteName(`${of}_pkey`)} PRIMARY KEY (${column})`
  const changeTable = `CREATE TABLE ${getChangeTable(state, place)} (id int8 GENERATED ALWAYS AS IDENTITY, w int4, leaf int8, ${columns}, ${key(`${name}d`, 'id')})`
  // With the hash in front, the primary key's index serves look-ups too.
  const own = `CREATE TABLE ${table} (leaf int8 GENERATED ALWAYS AS IDENTITY, ${columns}, ${key(name, 'hash, leaf')})`
  return [
    ...(state.suffix === '' ? [] : [own, ...printIndexes(name, table, state.indexes)]),
    ...(state.keepsChange ? [changeTable] : []),
  ]
}

function listColumns(state: GroupState): readonly string[] {
  return ownColumns(state).map(({ name, type }) => `${name} ${type}`)
}

function printIndexes(name: string, table: string, indexes: readonly string[]): readonly string[] {
  return indexes.map(
    (index, at) => `CREATE INDEX ${quoteName(`${name}_by${at}`)} ON ${table} ${index}`,
  )
}

/** Prints one statement that brings the table to the position. */
export function printStateStep(state: GroupState, mode: Mode, writing: Writing): string {
  const table = getStateTable(state, writing.place)
  const fresh = writing.common({}, () => freshRows(state, mode, writing))
  const [set, columns] = [changing(state), storedColumns(state)]
  const [there, gone] = state.always ? ['TRUE', 'FALSE'] : ['fresh.n > 0', 'fresh.n <= 0']
  const names = ['leaf', ...columns.map(({ name }) => name)]
  // The shown columns follow from the others, but a fill corrects them too.
  const telling = mode === 'fill' ? set : set.slice(0, set.length - shownColumns(state).length)
  const isNew = (of: string) =>
    `(${printColumns('t', telling)}) IS DISTINCT FROM (${printColumns(of, telling)})`
  const stored = `SELECT ${prefixed('t', names)} FROM ${table} AS t WHERE t.ctid = fresh.at`
  const isHanded = state.keepsChange && mode === 'advance'
  const given = isHanded ? ` RETURNING ${prefixed('t', names)}` : ''
  // The ctid finds a row whatever the plan is; a join by a column could scan the whole table.
  const changed = writing.common({}, () => {
    const values = set.map(({ name }) => `${name} = fresh.${name}`).join(', ')
    return `UPDATE ${table} AS t SET ${values} FROM ${fresh} AS fresh
 WHERE t.ctid = fresh.at AND ${there} AND ${isNew('fresh')}${given}`
  })
  writing.common(
    {},
    () =>
      `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT fresh.at FROM ${fresh} AS fresh WHERE ${gone}))`,
  )
  const added = `INSERT INTO ${table} AS t (${names.slice(1).join(', ')})
 SELECT ${printColumns('fresh', columns)} FROM ${fresh} AS fresh WHERE fresh.leaf IS NULL AND ${there}`
  if (!isHanded) return added
  const inserted = writing.common({}, () => `${added}${given}`)
  const changeTable = getChangeTable(state, writing.place)
  writing.common({}, () => `DELETE FROM ${changeTable}`)
  return `INSERT INTO ${changeTable} (w, ${names.join(', ')})
 SELECT -1, ${prefixed('t', names)} FROM ${fresh} AS fresh CROSS JOIN LATERAL (${stored} ${computeOnce}) AS t
 WHERE NOT ${there} OR ${isNew('fresh')}
 UNION ALL SELECT 1, ${names.join(', ')} FROM ${changed}
 UNION ALL SELECT 1, ${names.join(', ')} FROM ${inserted}`
}

/** Prints the hash of keys, or of the leading ones alone. */
export function printHash(keys: readonly string[]): string {
  return keys.length === 0 ? '0::int8' : `hash_record_extended(ROW(${keys.join(', ')}), 0)`
}

export function printSameKeys(count: number, a: string, b: string): string {
  return Array.from(
    { length: count },
    (_, at) => ` AND ${a}.k${at} IS NOT DISTINCT FROM ${b}.k${at}`,
  ).join('')
}

type Column = { readonly name: string; readonly type: string }

function keyColumns({ keys }: GroupState): readonly Column[] {
  return keys.map((type, at) => ({ name: `k${at}`, type }))
}

function sumColumns({ sums }: GroupState): readonly Column[] {
  return [{ name: 'n', type: 'int8' }, ...sums.map((type, at) => ({ name: `a${at}`, type }))]
}

/** Lists the columns that a group state's table needs for itself, `leaf` aside. */
function ownColumns(state: GroupState): readonly Column[] {
  return [{ name: 'hash', type: 'int8' }, ...keyColumns(state), ...sumColumns(state), ...state.more]
}

/** The further columns of the view's own table. */
function shownColumns({ shown }: GroupState): readonly Column[] {
  const columns = [
    { name: 'deleted', type: 'bool' },
    { name: 'body', type: 'text' },
    { name: 'data', type: 'jsonb' },
  ]
  return shown === undefined ? [] : columns
}

function storedColumns(state: GroupState): readonly Column[] {
  return [...ownColumns(state), ...shownColumns(state)]
}

/** Lists the columns that do not follow from the keys alone. */
function changing(state: GroupState): readonly Column[] {
  const more = state.more.filter(({ isFixed }) => !isFixed)
  return [...sumColumns(state), ...more, ...shownColumns(state)]
}

function prefixed(of: string, names: readonly string[]): string {
  return names.map((name) => `${of}.${name}`).join(', ')
}

function printColumns(of: string, columns: readonly Column[]): string {
  return prefixed(
    of,
    columns.map(({ name }) => name),
  )
}

/** Prints the rows as they will be; `leaf` is NULL for new ones. */
function freshRows(state: GroupState, mode: Mode, writing: Writing): string {
  const { more, shown } = state
  const totals = totalRows(state, mode, writing)
  const computed = more.map(({ name, of }) => `${of(writing)} AS ${name}`)
  const rows =
    more.length === 0
      ? totals
      : `SELECT fresh.*, ${computed.join(', ')} FROM (${totals}) AS fresh ${computeOnce}`
  if (shown === undefined) return rows
  const names = ['leaf', 'at', ...ownColumns(state).map(({ name }) => name)]
  return `SELECT fresh.*, fresh.body::jsonb AS data FROM (${shown(rows, names, writing)}) AS fresh`
}

/** Prints, for the keys that the occurrences touch, the table's values with the occurrences added. */
function totalRows(state: GroupState, mode: Mode, writing: Writing): string {
  const table = getStateTable(state, writing.place)
  const [keys, sums] = [keyColumns(state).map(({ name }) => name), sumColumns(state)]
  const have = `SELECT ${[...keys, ...sums.map(({ name }) => `-${name}`)].join(', ')} FROM ${table}`
  const parts = [...state.occurrences(mode, writing), ...(mode === 'fill' ? [have] : [])]
  const totals = sums.map(({ name, type }) => `coalesce(sum(${name}), 0)::${type} AS ${name}`)
  const groups = keys.length === 0 ? '' : ` GROUP BY ${keys.join(', ')}`
  const delta = `SELECT ${printHash(keys)} AS hash, part.* FROM (SELECT ${[...keys, ...totals].join(', ')}
 FROM (${parts.join('\nUNION ALL ')}) AS part${groups}) AS part ${computeOnce}`
  const added = sums.map(({ name, type }) => {
    const text = `coalesce(t.${name}, 0) + d.${name}`
    return `${type === 'numeric' ? `trim_scale(${text})` : text} AS ${name}`
  })
  return `SELECT ${['t.leaf', 't.at', 'd.hash', ...keys.map((each) => `d.${each}`), ...added].join(', ')}
FROM (${delta}) AS d LEFT JOIN LATERAL (SELECT ${['leaf', 't.ctid AS at', ...sums.map(({ name }) => name)].join(', ')}
 FROM ${table} AS t WHERE t.hash = d.hash${printSameKeys(keys.length, 't', 'd')} ${computeOnce}) AS t ON TRUE`
}
