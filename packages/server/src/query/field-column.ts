import { createHash } from 'node:crypto'
import { printFieldConversion } from './compile/convert.ts'
import type { FieldPath } from './condition.ts'
import { keyCharsMax, printTextExpression } from './index-key.ts'
import { quoteName } from './sql-text.ts'
import type { ValueType } from './tree/query.ts'

/** The SQL type of each type of column. */
export const columnTypes = { number: 'numeric', text: 'text', boolean: 'boolean' } as const
type ColumnType = keyof typeof columnTypes

/**
 * A column of a collection's table that has a field's value. It is NULL where the field is missing, null, or of another
 * type than the column, as records from before their schema are; of a text it has the first `keyCharsMax` characters.
 * So it is right for every row, whatever its schema was.
 */
export type FieldColumn = {
  readonly name: string
  readonly path: FieldPath
  readonly type: ColumnType
}

/** The field columns of one table, by the dotted names of the fields. */
export type FieldColumns = ReadonlyMap<string, FieldColumn>

/** Makes the column of a field; its name follows from field and type. Undefined for a type that has no column. */
export function makeFieldColumn(path: FieldPath, type: ValueType): FieldColumn | undefined {
  if (!isColumnType(type)) return undefined
  const digest = createHash('sha256').update(JSON.stringify(path)).digest('hex')
  return { name: `${fieldColumnPrefix}${type}_${digest.slice(0, 24)}`, path, type }
}

/** The names of all field columns begin with it, and no others do. */
export const fieldColumnPrefix = 'f_'

/** Reads what a column's name says of a field's path; undefined where the name is that of another field. */
export function parseFieldColumn(name: string, path: FieldPath): FieldColumn | undefined {
  const type = name.slice(fieldColumnPrefix.length).split('_')[0] ?? ''
  if (type !== 'number' && type !== 'text' && type !== 'boolean') return undefined
  const column = makeFieldColumn(path, type)
  return column?.name === name ? column : undefined
}

function isColumnType(type: ValueType): type is ColumnType {
  return Object.hasOwn(columnTypes, type)
}

export function findFieldColumn(
  columns: FieldColumns | undefined,
  path: FieldPath,
): FieldColumn | undefined {
  const found = columns?.get(path.join('.'))
  // A name with a dot in it is another field than one inside an object.
  return found !== undefined && found.path.length === path.length ? found : undefined
}

/** Prints the definition of a column that the database makes, for CREATE TABLE and ADD COLUMN. */
export function printFieldColumn(column: FieldColumn): string {
  return `${printWrittenColumn(column)} GENERATED ALWAYS AS (${printStoredValue(column, 'data')}) STORED`
}

/** Prints the definition of a column that whoever writes the row fills: a table of any size gets one in no time. */
export function printWrittenColumn({ name, type }: FieldColumn): string {
  return `${quoteName(name)} ${columnTypes[type]}`
}

/** Prints the value that the column has of a record, given as SQL of its jsonb. */
export function printStoredValue({ path, type }: FieldColumn, data: string): string {
  const value = printFieldConversion(path, data, type)
  return type === 'text' ? `left(${value}, ${keyCharsMax})` : value
}

/** Prints the field's value of a row whose columns have the alias; the record has what a column had to cut. */
export function printColumnValue({ name, path, type }: FieldColumn, alias: string): string {
  const column = quoteName(alias, name)
  if (type !== 'text') return column
  return `CASE WHEN length(${column}) >= ${keyCharsMax} THEN ${printTextExpression(path, `${alias}.data`)} ELSE ${column} END`
}
