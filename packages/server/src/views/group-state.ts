import { quoteName } from '../query/sql-text.ts'
import type { Mode, SqlType, ViewPlace, Writing } from './statement-writing.ts'
import { rowsTable, rowsTables } from './view-rows.ts'

/**
 * A table with one row for each combination of keys k0, k1 ... that occurs: how often (`n`), and sums a0, a1 ... over
 * the occurrences. Rows are found by the hash of the keys, so no length of a key can make a write fail.
 */
export type Tally = {
  /** Names the table `s_<number>_<suffix>`; without one it is the view's own, whose rows `shown` makes. */
  readonly suffix: string
  readonly keys: readonly SqlType[]
  readonly sums: readonly ('int8' | 'numeric')[]
  /** Columns that are computed from the row as it will be, which is called `fresh`. */
  readonly more: readonly ComputedColumn[]
  /** Whether the row is there before anything occurred: the one group of all. */
  readonly always: boolean
  /** Whether the table `..d` keeps the last change of rows, for what is computed from it. */
  readonly handsOn: boolean
  /** What comes after ON <table>. */
  readonly indexes: readonly string[]
  /** Occurrences with columns k.., `n` and a..: of everything, or of the change. */
  readonly occurrences: (mode: Mode, writing: Writing) => readonly string[]
  /** SQL that gives the columns of rows (SQL) with `body` and `deleted` beside them. */
  readonly shown?: (rows: string, columns: readonly string[], writing: Writing) => string
}

export type ComputedColumn = {
  readonly name: string
  readonly type: SqlType | 'bool'
  readonly of: (writing: Writing) => string
  /** Whether it is made from the keys alone. */
  readonly isFixed: boolean
}

/** Ends a sub-query whose columns are used more than once and should be computed once. */
export const once = 'OFFSET 0'

/** Values of more bytes stand beside an index by order, whose entries are bounded. */
export const indexedBytesMax = 1_500

export function tableOf({ suffix }: Pick<Tally, 'suffix'>, place: ViewPlace): string {
  return suffix === '' ? rowsTable(place) : quoteName(place.schema, nameOf(suffix, place.number))
}

/** The table with the last change: rows as they were (w = -1) and as they are (w = 1). */
export function handedTable({ suffix }: Pick<Tally, 'suffix'>, place: ViewPlace): string {
  return quoteName(place.schema, nameOf(`${suffix}d`, place.number))
}

function nameOf(suffix: string, number: number): string {
  return `s_${number}_${suffix}`
}

/** The names of the tables that a tally has beside the view's own. */
export function tablesOf({ suffix, handsOn }: Tally, number: number): readonly string[] {
  const names = suffix === '' ? [] : [nameOf(suffix, number)]
  return handsOn ? [...names, nameOf(`${suffix}d`, number)] : names
}

/** Statements that make the table of a tally. */
export function tallyTables(tally: Tally, place: ViewPlace): readonly string[] {
  const table = tableOf(tally, place)
  const columns = ownColumns(tally).map(({ name, type }) => `${name} ${type}`)
  const isOwn = tally.suffix !== ''
  const name = isOwn ? nameOf(tally.suffix, place.number) : `v_${place.number}`
  const key = (of: string, column: string) =>
    `CONSTRAINT ${quoteName(`${of}_pkey`)} PRIMARY KEY (${column})`
  const handed = `CREATE TABLE ${handedTable(tally, place)} (id int8 GENERATED ALWAYS AS IDENTITY, w int4, leaf int8, ${columns.join(', ')}, ${key(nameOf(`${tally.suffix}d`, place.number), 'id')})`
  // The hash in front of the key makes one index of two.
  const own = `CREATE TABLE ${table} (leaf int8 GENERATED ALWAYS AS IDENTITY, ${columns.join(', ')}, ${key(name, 'hash, leaf')})`
  const indexes = isOwn ? tally.indexes : ['(hash)', ...tally.indexes]
  return [
    ...(isOwn ? [own] : rowsTables(place, columns)),
    ...indexes.map(
      (index, at) => `CREATE INDEX ${quoteName(`${name}_by${at}`)} ON ${table} ${index}`,
    ),
    ...(tally.handsOn ? [handed] : []),
  ]
}

/** One statement that brings the table to the position. */
export function tallyStep(tally: Tally, mode: Mode, writing: Writing): string {
  const table = tableOf(tally, writing.place)
  const fresh = writing.common({}, () => freshRows(tally, mode, writing))
  const [set, columns] = [changing(tally), storedColumns(tally)]
  const [there, gone] = tally.always ? ['TRUE', 'FALSE'] : ['fresh.n > 0', 'fresh.n <= 0']
  const names = ['leaf', ...columns.map(({ name }) => name)]
  // What is shown follows from the rest, but a fill sets it right too.
  const telling = mode === 'fill' ? set : set.slice(0, set.length - shownColumns(tally).length)
  const isNew = (of: string) =>
    `(${listOf('t', telling)}) IS DISTINCT FROM (${listOf(of, telling)})`
  const stored = `SELECT ${prefixed('t', names)} FROM ${table} AS t WHERE t.ctid = fresh.at`
  const isHanded = tally.handsOn && mode === 'advance'
  const given = isHanded ? ` RETURNING ${prefixed('t', names)}` : ''
  // The place of a row finds it whatever the plan; a join by a column could go through the whole table.
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
 SELECT ${listOf('fresh', columns)} FROM ${fresh} AS fresh WHERE fresh.leaf IS NULL AND ${there}`
  if (!isHanded) return added
  const inserted = writing.common({}, () => `${added}${given}`)
  const handed = handedTable(tally, writing.place)
  writing.common({}, () => `DELETE FROM ${handed}`)
  return `INSERT INTO ${handed} (w, ${names.join(', ')})
 SELECT -1, ${prefixed('t', names)} FROM ${fresh} AS fresh CROSS JOIN LATERAL (${stored} ${once}) AS t
 WHERE NOT ${there} OR ${isNew('fresh')}
 UNION ALL SELECT 1, ${names.join(', ')} FROM ${changed}
 UNION ALL SELECT 1, ${names.join(', ')} FROM ${inserted}`
}

/** SQL of the hash of keys; also of the leading ones alone. */
export function hashOf(keys: readonly string[]): string {
  return keys.length === 0 ? '0::int8' : `hash_record_extended(ROW(${keys.join(', ')}), 0)`
}

export function sameKeys(count: number, a: string, b: string): string {
  return Array.from(
    { length: count },
    (_, at) => ` AND ${a}.k${at} IS NOT DISTINCT FROM ${b}.k${at}`,
  ).join('')
}

type Column = { readonly name: string; readonly type: string }

function keyColumns({ keys }: Tally): readonly Column[] {
  return keys.map((type, at) => ({ name: `k${at}`, type }))
}

function sumColumns({ sums }: Tally): readonly Column[] {
  return [{ name: 'n', type: 'int8' }, ...sums.map((type, at) => ({ name: `a${at}`, type }))]
}

/** The columns that a tally's table has for its own sake, `leaf` aside. */
function ownColumns(tally: Tally): readonly Column[] {
  return [{ name: 'hash', type: 'int8' }, ...keyColumns(tally), ...sumColumns(tally), ...tally.more]
}

/** What the view's own table has besides. */
function shownColumns({ shown }: Tally): readonly Column[] {
  const columns = [
    { name: 'deleted', type: 'bool' },
    { name: 'body', type: 'text' },
    { name: 'data', type: 'jsonb' },
  ]
  return shown === undefined ? [] : columns
}

function storedColumns(tally: Tally): readonly Column[] {
  return [...ownColumns(tally), ...shownColumns(tally)]
}

/** Columns that are not made from the keys alone. */
function changing(tally: Tally): readonly Column[] {
  const more = tally.more.filter(({ isFixed }) => !isFixed)
  return [...sumColumns(tally), ...more, ...shownColumns(tally)]
}

function prefixed(of: string, names: readonly string[]): string {
  return names.map((name) => `${of}.${name}`).join(', ')
}

function listOf(of: string, columns: readonly Column[]): string {
  return prefixed(
    of,
    columns.map(({ name }) => name),
  )
}

/** The rows as they will be; `leaf` is NULL for those that are not there yet. */
function freshRows(tally: Tally, mode: Mode, writing: Writing): string {
  const { more, shown } = tally
  const totals = totalRows(tally, mode, writing)
  const computed = more.map(({ name, of }) => `${of(writing)} AS ${name}`)
  const rows =
    more.length === 0
      ? totals
      : `SELECT fresh.*, ${computed.join(', ')} FROM (${totals}) AS fresh ${once}`
  if (shown === undefined) return rows
  const names = ['leaf', 'at', ...ownColumns(tally).map(({ name }) => name)]
  return `SELECT fresh.*, fresh.body::jsonb AS data FROM (${shown(rows, names, writing)}) AS fresh`
}

/** For the keys that are touched, what the table holds with the occurrences added. */
function totalRows(tally: Tally, mode: Mode, writing: Writing): string {
  const table = tableOf(tally, writing.place)
  const [keys, sums] = [keyColumns(tally).map(({ name }) => name), sumColumns(tally)]
  const have = `SELECT ${[...keys, ...sums.map(({ name }) => `-${name}`)].join(', ')} FROM ${table}`
  const parts = [...tally.occurrences(mode, writing), ...(mode === 'fill' ? [have] : [])]
  const totals = sums.map(({ name, type }) => `coalesce(sum(${name}), 0)::${type} AS ${name}`)
  const groups = keys.length === 0 ? '' : ` GROUP BY ${keys.join(', ')}`
  const delta = `SELECT ${hashOf(keys)} AS hash, part.* FROM (SELECT ${[...keys, ...totals].join(', ')}
 FROM (${parts.join('\nUNION ALL ')}) AS part${groups}) AS part ${once}`
  const added = sums.map(({ name, type }) => {
    const text = `coalesce(t.${name}, 0) + d.${name}`
    return `${type === 'numeric' ? `trim_scale(${text})` : text} AS ${name}`
  })
  return `SELECT ${['t.leaf', 't.at', 'd.hash', ...keys.map((each) => `d.${each}`), ...added].join(', ')}
FROM (${delta}) AS d LEFT JOIN LATERAL (SELECT ${['leaf', 't.ctid AS at', ...sums.map(({ name }) => name)].join(', ')}
 FROM ${table} AS t WHERE t.hash = d.hash${sameKeys(keys.length, 't', 'd')} ${once}) AS t ON TRUE`
}
