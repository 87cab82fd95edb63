import { limits } from '@tollbase/contract/limits'
import { Fault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { getDeclaredTypes } from '../model/declared-types.ts'
import type { CollectionDefinition } from '../model/definitions.ts'
import type { FieldPath } from '../query/condition.ts'
import {
  type FieldColumn,
  type FieldColumns,
  fieldColumnPrefix,
  makeFieldColumn,
  parseFieldColumn,
  printFieldColumn,
} from '../query/field-column.ts'
import { parseFieldPath } from '../query/field-path.ts'
import { parseFilling, type WrittenColumn } from './column-filling.ts'

/** The part of a definition that decides which fields have columns. */
export type FieldDeclarations = Pick<CollectionDefinition, 'schema_definition' | 'encrypted'>

/**
 * Lists the columns that the declared fields of a collection have, in the order of the schema. Sealed records show the
 * database no field.
 */
export function listFieldColumns(declared: FieldDeclarations): readonly FieldColumn[] {
  const { encrypted, schema_definition: schema } = declared
  if (encrypted === true || !isRecord(schema)) return []
  const known = listed.get(schema)
  if (known !== undefined) return known
  const columns = [...getDeclaredTypes(schema)].flatMap(([name, type]) => {
    const path = findFieldPath(name)
    return path === undefined ? [] : (makeFieldColumn(path, type) ?? [])
  })
  const first = columns.slice(0, limits.fieldColumnsMax)
  listed.set(schema, first)
  return first
}

/** The columns of schemas; each read of a collection asks for them. */
const listed = new WeakMap<object, readonly FieldColumn[]>()

/** A schema may declare names that queries cannot say. */
function findFieldPath(name: string): FieldPath | undefined {
  try {
    return parseFieldPath(name, '')
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** Builds the statement that adds columns to a table. PostgreSQL writes the whole table anew for it. */
export function buildAddFieldColumns(
  place: { readonly schema: string; readonly table: string },
  columns: readonly FieldColumn[],
): SqlStatement {
  const added = columns.map((column) =>
    sql.compiled(`ADD COLUMN IF NOT EXISTS ${printFieldColumn(column)}`, []),
  )
  return sql`ALTER TABLE ${sql.id(place.schema, place.table)} ${sql.join(added)}`
}

/** The most columns of fields that a table ever has, however often its schema changes. */
const columnsEverMax = 2 * limits.fieldColumnsMax

/** Lists the columns that a table lacks of those that its fields are to have; none where it has had too many. */
export function listMissingColumns(
  declared: FieldDeclarations,
  names: Pick<ReadonlySet<string>, 'has' | 'size'>,
): readonly FieldColumn[] {
  const missing = listFieldColumns(declared).filter(({ name }) => !names.has(name))
  return names.size + missing.length > columnsEverMax ? [] : missing
}

export type MissingColumns = {
  readonly collections: Iterable<CollectionDefinition>
  /** Columns beside those of declared fields, by tables. */
  readonly more?: ReadonlyMap<string, readonly FieldColumn[]> | undefined
}

/** Gives all tables the columns that they lack, however large they are: for tables that nobody reads or writes. */
export async function addMissingColumns(
  tx: Queryable,
  schema: string,
  { collections, more = new Map() }: MissingColumns,
): Promise<void> {
  const stored = await readFieldColumns(tx, schema)
  for (const collection of collections) {
    const table = `c_${collection.number}`
    const names = stored.get(table) ?? new Map()
    const missing = [
      ...listMissingColumns(collection, names),
      ...(more.get(table) ?? []).filter(({ name }) => !names.has(name)),
    ]
    if (missing.length > 0) await tx.execute(buildAddFieldColumns({ schema, table }, missing))
  }
}

/** A field column as it is in the database. */
export type StoredColumn = {
  /** True if every row has its value, so that reads may use it. */
  readonly isWhole: boolean
  /** Undefined for a column that the database makes. */
  readonly written: WrittenColumn | undefined
}

/** The field columns of one table, by their names, and of all tables, by theirs. */
export type StoredColumns = ReadonlyMap<string, StoredColumn>
export type TableColumns = ReadonlyMap<string, StoredColumns>

/** Reads the field columns of one table, or of all tables of the schema. */
export async function readFieldColumns(
  database: Queryable,
  schema: string,
  table?: string,
): Promise<TableColumns> {
  const rows = await database.query<{
    table: string
    name: string
    generated: boolean
    comment: string | null
  }>(sql`
    SELECT class.relname::text AS table, attribute.attname::text AS name, attribute.attgenerated = 's' AS generated,
      pg_catalog.col_description(class.oid, attribute.attnum) AS comment
    FROM pg_catalog.pg_attribute AS attribute
    JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND class.relkind = 'r' AND NOT attribute.attisdropped
      AND starts_with(attribute.attname::text, ${fieldColumnPrefix}) AND starts_with(class.relname::text, 'c_')
      AND (${table ?? null}::text IS NULL OR class.relname = ${table ?? null}::text)
    ORDER BY class.relname, attribute.attnum`)
  const tables = new Map<string, Map<string, StoredColumn>>()
  for (const { table, name, generated, comment } of rows) {
    const written = generated ? undefined : parseWrittenColumn(name, comment)
    // One without a word about its field was made by nobody that is known: it is begun anew.
    if (!generated && written === undefined) continue
    const columns = tables.get(table) ?? new Map<string, StoredColumn>()
    tables.set(table, columns.set(name, { isWhole: written?.isWhole !== false, written }))
  }
  return tables
}

function parseWrittenColumn(name: string, comment: string | null): WrittenColumn | undefined {
  const filling = parseFilling(comment)
  const column = filling && parseFieldColumn(name, filling.path)
  return column && { ...filling, ...column }
}

/** Picks those columns of declared fields that a table has, for reads. */
export function filterFieldColumns(
  declared: FieldDeclarations,
  stored: StoredColumns | undefined,
): FieldColumns | undefined {
  if (stored === undefined) return undefined
  const columns = listFieldColumns(declared).filter(({ name }) => stored.get(name)?.isWhole)
  return new Map(columns.map((column) => [column.path.join('.'), column]))
}

/** Makes the state of columns that the database makes. */
export function makeStoredColumns(columns: readonly FieldColumn[]): StoredColumns {
  return new Map(columns.map(({ name }) => [name, { isWhole: true, written: undefined }]))
}

/** Lists the columns that writers of rows fill, by tables. */
export function listWrittenColumns(
  tables: TableColumns,
): ReadonlyMap<string, readonly WrittenColumn[]> {
  const lists = [...tables].map(([table, columns]) => {
    const written = [...columns.values()].flatMap((column) => column.written ?? [])
    return [table, written] as const
  })
  return new Map(lists.filter(([, written]) => written.length > 0))
}

/** The declared columns of a collection that are to be added to its table, or filled. */
export type ColumnWork = {
  readonly table: string
  /** Lacking, or added by a process that ended before it could say from where on rows have their value. */
  readonly begun: readonly FieldColumn[]
  readonly filling: readonly WrittenColumn[]
}

/** Returns what is to be done for the columns of a collection; undefined where they are whole. */
export function findColumnWork(
  collection: FieldDeclarations & Pick<CollectionDefinition, 'number'>,
  tables: TableColumns,
): ColumnWork | undefined {
  const table = `c_${collection.number}`
  const stored: StoredColumns = tables.get(table) ?? new Map()
  const declared = listFieldColumns(collection)
  const unfinished = declared.flatMap(({ name }) => {
    const { written, isWhole = false } = stored.get(name) ?? {}
    return written !== undefined && !isWhole ? [written] : []
  })
  const filling = unfinished.filter(({ target }) => target !== undefined)
  const begun = [
    ...listMissingColumns(collection, stored),
    ...unfinished.filter(({ target }) => target === undefined),
  ]
  return begun.length + filling.length === 0 ? undefined : { table, begun, filling }
}

/** The progress of the columns of a collection that are filled beside the writes. */
export type ColumnProgress = { readonly fields: readonly string[]; readonly percent: number }

/** Returns undefined where the columns of a collection were made with its table, or with the rows that it had. */
export function findColumnProgress(
  collection: FieldDeclarations & Pick<CollectionDefinition, 'number'>,
  tables: TableColumns,
): ColumnProgress | undefined {
  const stored: StoredColumns = tables.get(`c_${collection.number}`) ?? new Map()
  const missing = new Set(listMissingColumns(collection, stored).map(({ name }) => name))
  const parts = listFieldColumns(collection).flatMap(({ name, path }) => {
    const written = stored.get(name)?.written
    if (written === undefined && !missing.has(name)) return []
    return [{ field: path.join('.'), percent: computePercent(written) }]
  })
  if (parts.length === 0) return undefined
  const percent = Math.min(...parts.map((part) => part.percent))
  return { fields: parts.map(({ field }) => field), percent }
}

function computePercent(written: WrittenColumn | undefined): number {
  if (written?.target === undefined) return 0
  if (written.isWhole) return 100
  return Math.min(99, Math.floor((100 * written.filled) / Math.max(written.target, 1)))
}
