import type { Database } from '../../database/database.ts'
import { dropSchema } from '../../database/drop-schema.ts'
import { findExtensionSchema } from '../../database/extensions.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { findReadableById } from '../../model/catalog.ts'
import { findExtension } from '../../model/index-kinds.ts'
import { DataProjection } from '../../projections/data-projection.ts'
import { listWrittenColumns, readFieldColumns } from '../../projections/field-columns.ts'
import { buildCreateIndex, getIndexName, tryCreateIndex } from '../../projections/index-ddl.ts'
import type { Projection } from '../../projections/projection.ts'
import { viewStateTable } from '../../projections/view-state.ts'
import { getRowsName } from '../../views/view-rows.ts'
import {
  addFieldColumns,
  type ChainPlace,
  createScratch,
  type Progress,
  replay,
} from '../maintenance.ts'
import { compareStructure, type Part, readStructure } from './audit-structure.ts'

type Difference = Readonly<Record<string, unknown>>

/** A comparison of one table's rows in two schemas. */
export type TableComparison = {
  readonly table: string
  readonly stored: string
  readonly recomputed: string
  /** All columns that both tables have when not given; they may differ in those of fields. */
  readonly columns?: readonly string[]
  /** Columns that are not compared; none when not given. */
  readonly except?: readonly string[]
  /** Columns that identify a row; those of the primary key when not given. */
  readonly key?: readonly string[]
}

/**
 * Replays a chain's entries into a scratch schema, and compares the structure of the chain's own schema, and every
 * row of every table that the entries alone decide.
 */
export async function auditTables(
  database: Database,
  place: ChainPlace,
  progress: Progress,
): Promise<Difference | undefined> {
  const [mark] = await database.query<{ height: bigint }>(
    sql`SELECT height FROM ${sql.id(place.schema, 'watermark')}`,
  )
  const scratch = `audit_${place.schema}`
  const projections = place.projections()
  try {
    await dropSchema(database, scratch)
    await database.transaction((tx) => createScratch(tx, scratch, projections))
    await replay(database, place, {
      schema: scratch,
      projections,
      height: Number(mark?.height ?? 0),
      progress,
    })
    const columns = await readFieldColumns(database, place.schema)
    const written = listWrittenColumns(columns)
    await addFieldColumns(database, { schema: scratch, projections, more: written })
    // The structure comes first: rows can be compared only where tables are what they seem to be.
    const difference = compareStructure(
      await readStructure(database, place.schema),
      await readStructure(database, scratch),
      await readLaterIndexes(database, projections, scratch),
    )
    if (difference !== undefined) return addOwner(difference, projections)
    for (const compared of listCompared(projections)) {
      const schemas = { stored: place.schema, recomputed: scratch }
      const filling = (written.get(compared.table) ?? []).filter(({ isWhole }) => !isWhole)
      const except = filling.map(({ name }) => name)
      const found =
        (await compareRows(database, { ...compared, ...schemas, except })) ??
        (await compareFilling(database, { ...compared, ...schemas, columns: except }))
      if (found !== undefined) return addOwner(found, projections)
    }
    return undefined
  } finally {
    await dropSchema(database, scratch)
  }
}

function listCompared(
  projections: readonly Projection[],
): Pick<TableComparison, 'table' | 'columns'>[] {
  const derived = projections.flatMap((one) => one.derivedTableNames?.() ?? [])
  return [
    ...projections.flatMap((one) => one.tableNames().map((table) => ({ table }))),
    // The other columns hold the progress of the views, and are audited with their rows.
    ...(derived.includes(viewStateTable)
      ? [{ table: viewStateTable, columns: wantedColumns }]
      : []),
  ]
}

const wantedColumns = [
  'id',
  'view',
  'wanted_leaf',
  'wanted_height',
  'wanted_sequence',
  'wanted_positions',
]

/** Adds the name of the collection or view that the table belongs to. */
function addOwner(difference: Difference, projections: readonly Projection[]): Difference {
  for (const projection of projections) {
    if (!(projection instanceof DataProjection)) continue
    const { collections, views } = projection.catalog
    for (const { name, number } of collections.values())
      if (difference.what === `table c_${number}`) return { ...difference, collection: name }
    for (const { view } of views.values())
      if (difference.what === `table ${getRowsName(view.number)}`)
        return { ...difference, view: view.name }
  }
  return difference
}

const shapes = 'audit_shapes'

/**
 * Reads the defined indexes that a replay does not make, since they are built concurrently with writes: a stopped
 * service may have them or not. They are made on empty tables, to see what they must be.
 */
async function readLaterIndexes(
  database: Database,
  projections: readonly Projection[],
  scratch: string,
): Promise<Part[]> {
  const later = projections
    .filter((one) => one instanceof DataProjection)
    .flatMap(({ catalog }) =>
      [...catalog.indexes.values()].flatMap((index) => {
        const collection = findReadableById(catalog, index.collection)
        return collection === undefined ? [] : [{ index, collection }]
      }),
    )
  if (later.length === 0) return []
  return database.transaction(async (tx) => {
    await tx.execute(sql`CREATE SCHEMA ${sql.id(shapes)}`)
    for (const table of new Set(later.map(({ collection }) => collection.table)))
      await tx.execute(sql`CREATE TABLE ${sql.id(shapes, table)} (LIKE ${sql.id(scratch, table)})`)
    for (const { index, collection } of later) {
      const extension = findExtension(index.index_type)
      const extensionSchema = extension && (await findExtensionSchema(tx, extension))
      // Without its extension there cannot be such an index.
      if (extension !== undefined && extensionSchema === undefined) continue
      const statement = buildCreateIndex({ schema: shapes, collection, extensionSchema }, index)
      await tryCreateIndex(tx, statement)
    }
    const names = new Set(later.map(({ index }) => `index ${getIndexName(index)}`))
    const parts = await readStructure(tx, shapes)
    await tx.execute(sql`DROP SCHEMA ${sql.id(shapes)} CASCADE`)
    return parts.filter(({ part }) => names.has(part))
  })
}

/** Finds the first row that only one of two tables has, with the row that the other one has under its key. */
export async function compareRows(
  database: Database,
  compared: TableComparison,
): Promise<Difference | undefined> {
  const { table, stored, recomputed } = compared
  const common = compared.columns ?? (await listCommonColumns(database, compared))
  const columns = common.filter((name) => compared.except?.includes(name) !== true)
  const rows = (schema: string) => {
    const list = columns.map((column) => sql`row.${sql.id(column)}`)
    return sql`SELECT ${sql.join(list)} FROM ${sql.id(schema, table)} AS row`
  }
  const extra = await findFirstExtra(database, rows(stored), rows(recomputed))
  const one = extra ?? (await findFirstExtra(database, rows(recomputed), rows(stored)))
  if (one === undefined) return undefined
  const key = compared.key ?? (await readPrimaryKey(database, { schema: recomputed, table }))
  const row = await pickMembers(database, one, key)
  const inPlace = (schema: string) => findRow(database, { rows: rows(schema), row })
  const expected = await inPlace(recomputed)
  const found = await inPlace(stored)
  const field = expected && found && (await findDifferingField(database, expected, found))
  return {
    what: `table ${table}`,
    row,
    ...(field !== undefined && { field }),
    expected: expected ?? 'no such row',
    found: found ?? 'no such row',
  }
}

/** Finds a value of a column that is being filled and is not the record's; rows may still lack theirs. */
async function compareFilling(
  database: Database,
  { table, stored, recomputed, columns = [] }: TableComparison,
): Promise<Difference | undefined> {
  for (const column of columns) {
    const [wrong] = await database.query<{
      leaf: bigint
      expected: string | null
      found: string
    }>(sql`
      SELECT one.leaf, other.${sql.id(column)}::text AS expected, one.${sql.id(column)}::text AS found
      FROM ${sql.id(stored, table)} AS one JOIN ${sql.id(recomputed, table)} AS other USING (leaf)
      WHERE one.${sql.id(column)} IS NOT NULL AND one.${sql.id(column)} IS DISTINCT FROM other.${sql.id(column)}
      ORDER BY leaf LIMIT 1`)
    if (wrong === undefined) continue
    const { leaf, expected, found } = wrong
    const row = JSON.stringify({ leaf: Number(leaf) })
    return { what: `table ${table}`, row, field: column, expected: expected ?? 'NULL', found }
  }
  return undefined
}

/**
 * Returns the first row that the other query lacks, as JSON text, since its numbers may be longer than
 * JavaScript's.
 */
async function findFirstExtra(
  database: Database,
  one: SqlStatement,
  other: SqlStatement,
): Promise<string | undefined> {
  const [found] = await database.query<{ row: string }>(sql`
    SELECT to_jsonb(differing)::text AS row FROM (${one} EXCEPT ALL ${other}) AS differing
    ORDER BY to_jsonb(differing)::text LIMIT 1`)
  return found?.row
}

async function listCommonColumns(
  database: Database,
  { table, stored, recomputed }: TableComparison,
): Promise<readonly string[]> {
  const columns = await database.query<{ name: string }>(sql`
    SELECT one.attname::text AS name FROM pg_catalog.pg_attribute AS one
    JOIN pg_catalog.pg_attribute AS other ON other.attname = one.attname
    WHERE one.attrelid = to_regclass(${`${recomputed}.${table}`}) AND other.attrelid = to_regclass(${`${stored}.${table}`})
      AND one.attnum > 0 AND NOT one.attisdropped AND NOT other.attisdropped
    ORDER BY one.attnum`)
  return columns.map(({ name }) => name)
}

async function readPrimaryKey(
  database: Database,
  { schema, table }: { schema: string; table: string },
): Promise<readonly string[]> {
  const columns = await database.query<{ name: string }>(sql`
    SELECT attname::text AS name FROM pg_catalog.pg_index
    JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
    WHERE indisprimary AND indrelid = to_regclass(${`${schema}.${table}`})`)
  return columns.map(({ name }) => name)
}

/** Returns these members of a row; all members where it has none of these. */
async function pickMembers(
  database: Database,
  row: string,
  names: readonly string[],
): Promise<string> {
  const [part] = await database.query<{ row: string | null }>(sql`
    SELECT jsonb_object_agg(key, value)::text AS row FROM jsonb_each(${row}::jsonb) WHERE key = ANY(${names}::text[])`)
  return part?.row ?? row
}

async function findRow(
  database: Database,
  { rows, row }: { rows: SqlStatement; row: string },
): Promise<string | undefined> {
  const [found] = await database.query<{ row: string }>(sql`
    SELECT to_jsonb(one)::text AS row FROM (${rows}) AS one WHERE to_jsonb(one) @> ${row}::jsonb LIMIT 1`)
  return found?.row
}

/** Returns the first member in which two rows differ. */
async function findDifferingField(
  database: Database,
  one: string,
  other: string,
): Promise<string | undefined> {
  const [field] = await database.query<{ name: string }>(sql`
    SELECT key AS name FROM jsonb_each(${one}::jsonb) AS one JOIN jsonb_each(${other}::jsonb) AS other USING (key)
    WHERE one.value <> other.value ORDER BY key LIMIT 1`)
  return field?.name
}
