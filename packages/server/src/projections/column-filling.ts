import { isRecord } from '../base/is-record.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { FieldPath } from '../query/condition.ts'
import { type FieldColumn, printStoredValue, printWrittenColumn } from '../query/field-column.ts'
import { quoteName } from '../query/sql-text.ts'

// A column of a field that was declared when its table was large is added without values, which takes no time. From
// then on the applier writes it with each new row; the rows from before get their values page by page, beside the
// writes. The comment of the column says how far that is, in the transaction of each page, and goes with the column.

/** The progress of filling a written column. */
export type ColumnFilling = {
  readonly path: FieldPath
  /** Every row below this leaf has its value. */
  readonly filled: number
  /** Rows from this leaf on got theirs when they were written; undefined until that leaf is known. */
  readonly target: number | undefined
  /** True if every row has its value, and that is durable. */
  readonly isWhole: boolean
}

/** A column that whoever writes a row fills. */
export type WrittenColumn = FieldColumn & ColumnFilling

export type ColumnPlace = { readonly schema: string; readonly table: string }

/** A wait for a lock is shorter than PostgreSQL takes to find a deadlock, so the applier is never its victim. */
const lockWaitMs = 100
/** The commonest page of records is read and written in a few dozen milliseconds. */
const pageBytesMax = 1024 * 1024

export function parseFilling(comment: string | null): ColumnFilling | undefined {
  const known = parseObject(comment ?? '')
  const { path, filled, target, whole } = known
  if (!isFieldPath(path)) return undefined
  if (!Number.isSafeInteger(filled)) return undefined
  const leaf = Number.isSafeInteger(target) ? Number(target) : undefined
  return { path, filled: Number(filled), target: leaf, isWhole: whole === true }
}

function isFieldPath(path: unknown): path is FieldPath {
  return Array.isArray(path) && path.length > 0 && path.every((each) => typeof each === 'string')
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(text)
    return isRecord(found) ? found : {}
  } catch {
    return {}
  }
}

/** Adds the columns without values, or begins anew with those that are there. */
export async function addWrittenColumns(
  tx: Queryable,
  place: ColumnPlace,
  columns: readonly FieldColumn[],
): Promise<void> {
  await limitWaits(tx)
  const added = columns.map((column) =>
    sql.compiled(`ADD COLUMN IF NOT EXISTS ${printWrittenColumn(column)}`, []),
  )
  await tx.execute(sql`ALTER TABLE ${sql.id(place.schema, place.table)} ${sql.join(added)}`)
  for (const column of columns)
    await tx.execute(buildNote(place, { ...column, filled: 0, target: undefined, isWhole: false }))
}

/** Notes the leaf from which on the rows of a table get the values of these columns when they are written. */
export async function noteTarget(
  tx: Queryable,
  place: ColumnPlace,
  { columns, target }: { readonly columns: readonly WrittenColumn[]; readonly target: number },
): Promise<void> {
  await limitWaits(tx)
  for (const column of columns) await tx.execute(buildNote(place, { ...column, target }))
}

/** A page of rows got the values of columns that were filled equally far. */
export type FilledPage = {
  /** All columns that were asked for, as the database has them now: what a process remembers is to follow. */
  readonly known: readonly WrittenColumn[]
  /** Those of the page; none where the database has nothing to fill. */
  readonly columns: readonly WrittenColumn[]
  /** Rows that were looked at. */
  readonly rows: number
}

/**
 * Fills the next rows of those columns that lack the fewest; rows that have their value already stay as they are.
 * It begins where the database is: its crash may have lost pages that this process remembers.
 */
export async function fillPage(
  tx: Queryable,
  place: ColumnPlace,
  { columns, rowsMax }: { readonly columns: readonly WrittenColumn[]; readonly rowsMax: number },
): Promise<FilledPage> {
  const known = await lockColumns(tx, place, columns)
  const group = chooseGroup(known)
  if (group === undefined) return { known, columns: [], rows: 0 }
  const { from, to } = group
  const table = sql.id(place.schema, place.table)
  const [page] = await tx.query<{ rows: bigint; last: bigint | null }>(sql`
    SELECT count(*) AS rows, max(leaf) AS last FROM (
      SELECT leaf, sum(bytes) OVER (ORDER BY leaf) - bytes AS before FROM (
        SELECT leaf, pg_column_size(data) + pg_column_size(body) AS bytes FROM ${table}
        WHERE leaf >= ${from} AND leaf < ${to} ORDER BY leaf LIMIT ${rowsMax}) AS next) AS sized
    WHERE before < ${pageBytesMax}`)
  const rows = Number(page?.rows ?? 0n)
  if (rows === 0) return { known, columns: group.columns, rows }
  const last = Number(page?.last)
  const values = group.columns.map((column) => ({
    name: quoteName(column.name),
    value: printStoredValue(column, 'data'),
  }))
  const set = values.map(({ name, value }) => `${name} = ${value}`).join(', ')
  const differ = values.map(({ name, value }) => `${name} IS DISTINCT FROM ${value}`).join(' OR ')
  await tx.execute(sql`
    UPDATE ${table} SET ${sql.compiled(set, [])}
    WHERE leaf >= ${from} AND leaf <= ${last} AND (${sql.compiled(differ, [])})`)
  const filled = group.columns.map((column) => ({ ...column, filled: last + 1 }))
  for (const column of filled) await tx.execute(buildNote(place, column))
  const others = known.filter((column) => !group.columns.includes(column))
  return { known: [...others, ...filled], columns: filled, rows }
}

/**
 * Notes that nothing is left to fill of columns whose last page was empty; the commit must be durable. Where a crash
 * of the database has lost pages since, nothing is noted. Returns the columns as the database has them.
 */
export async function markWhole(
  tx: Queryable,
  place: ColumnPlace,
  columns: readonly WrittenColumn[],
): Promise<readonly WrittenColumn[]> {
  const known = await lockColumns(tx, place, columns)
  const isAsKnown = columns.every(({ name, filled, target }) =>
    known.some((one) => one.name === name && one.filled === filled && one.target === target),
  )
  if (!isAsKnown) return known
  const whole = columns.map((column) => ({ ...column, isWhole: true }))
  for (const column of whole) await tx.execute(buildNote(place, column))
  return whole
}

/** Locks the table, and reads from the comments how far its columns are. */
async function lockColumns(
  tx: Queryable,
  { schema, table }: ColumnPlace,
  columns: readonly WrittenColumn[],
): Promise<readonly WrittenColumn[]> {
  await limitWaits(tx)
  // The comments need it at the end: an index build or a vacuum would undo the page then.
  await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN SHARE UPDATE EXCLUSIVE MODE`)
  const rows = await tx.query<{ name: string; comment: string | null }>(sql`
    SELECT attribute.attname::text AS name,
      pg_catalog.col_description(class.oid, attribute.attnum) AS comment
    FROM pg_catalog.pg_attribute AS attribute
    JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND class.relname = ${table}
      AND NOT attribute.attisdropped AND attribute.attgenerated = ''`)
  const comments = new Map(rows.map(({ name, comment }) => [name, comment]))
  return columns.map((column) => {
    const filling = parseFilling(comments.get(column.name) ?? null)
    // Another table has this name now, so nothing that is remembered of the column holds.
    if (filling === undefined) throw new Error(`column ${column.name} of ${table} says no progress`)
    return { ...column, ...filling }
  })
}

/**
 * Columns that are filled equally far, the furthest first, so that each page is written once for all of them; undefined
 * where each is whole, or its target unknown.
 */
function chooseGroup(known: readonly WrittenColumn[]) {
  const open = known.filter(({ isWhole, target }) => !isWhole && target !== undefined)
  if (open.length === 0) return undefined
  const from = Math.max(...open.map(({ filled }) => filled))
  const columns = open.filter(({ filled }) => filled === from)
  return { from, to: Math.max(...columns.map(({ target }) => target ?? 0)), columns }
}

async function limitWaits(tx: Queryable): Promise<void> {
  await tx.query(sql`SELECT set_config('lock_timeout', ${String(lockWaitMs)}, true)`)
}

function buildNote({ schema, table }: ColumnPlace, column: WrittenColumn): SqlStatement {
  const { name, path, filled, target, isWhole } = column
  const note = JSON.stringify({ path, filled, target, whole: isWhole })
  return sql`COMMENT ON COLUMN ${sql.id(schema, table, name)} IS ${sql.literal(note)}`
}
