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
  printFieldColumn,
} from '../query/field-column.ts'
import { parseFieldPath } from '../query/field-path.ts'

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
  const added = columns.map((column) => sql.compiled(`ADD COLUMN ${printFieldColumn(column)}`, []))
  return sql`ALTER TABLE ${sql.id(place.schema, place.table)} ${sql.join(added)}`
}

/** The most columns of fields that a table ever has, however often its schema changes. */
const columnsEverMax = 2 * limits.fieldColumnsMax

/** Lists the columns that a table lacks of those that its fields are to have; none where it has had too many. */
export function listMissingColumns(
  declared: FieldDeclarations,
  names: ReadonlySet<string>,
): readonly FieldColumn[] {
  const missing = listFieldColumns(declared).filter(({ name }) => !names.has(name))
  return names.size + missing.length > columnsEverMax ? [] : missing
}

/** Gives all tables the columns that they lack, however large they are: for tables that nobody reads or writes. */
export async function addMissingColumns(
  tx: Queryable,
  schema: string,
  collections: Iterable<CollectionDefinition>,
): Promise<void> {
  const known = await readFieldColumns(tx, schema)
  for (const collection of collections) {
    const table = `c_${collection.number}`
    const missing = listMissingColumns(collection, known.get(table) ?? new Set())
    if (missing.length > 0) await tx.execute(buildAddFieldColumns({ schema, table }, missing))
  }
}

/** The names of the field columns that tables have, by the tables' names. */
export type FieldColumnNames = ReadonlyMap<string, ReadonlySet<string>>

/** Reads the field columns of one table, or of all tables of the schema. */
export async function readFieldColumns(
  database: Queryable,
  schema: string,
  table?: string,
): Promise<FieldColumnNames> {
  const rows = await database.query<{ table: string; names: string[] }>(sql`
    SELECT class.relname::text AS table, array_agg(attribute.attname::text) AS names
    FROM pg_catalog.pg_attribute AS attribute
    JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND attribute.attgenerated = 's' AND NOT attribute.attisdropped
      AND starts_with(attribute.attname::text, ${fieldColumnPrefix})
      AND (${table ?? null}::text IS NULL OR class.relname = ${table ?? null}::text)
    GROUP BY class.relname`)
  return new Map(rows.map((row) => [row.table, new Set(row.names)]))
}

/** Picks those columns of declared fields that a table has. */
export function filterFieldColumns(
  declared: FieldDeclarations,
  names: ReadonlySet<string> | undefined,
): FieldColumns | undefined {
  if (names === undefined) return undefined
  const columns = listFieldColumns(declared).filter(({ name }) => names.has(name))
  return new Map(columns.map((column) => [column.path.join('.'), column]))
}
