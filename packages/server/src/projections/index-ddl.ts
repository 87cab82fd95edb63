import type { Queryable } from '../database/database.ts'
import { isLimitExceeded } from '../database/errors.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { IndexDefinition } from '../model/definitions.ts'
import { findIndexKind, isByValue } from '../model/index-kinds.ts'
import type { Readable } from '../model/readable.ts'
import { parseFieldPath } from '../query/field-path.ts'
import { compileIndex, type IndexedVectors, printKeyExpression } from '../query/index-key.ts'
import { parsePartial, printPredicate } from '../query/partial-index.ts'

/** The name of an index in the database. */
export function getIndexName(index: { readonly number: number }): string {
  return `i_${index.number}`
}

/**
 * Builds the statement that creates an index: in a transaction, or `concurrently`, which is outside of one and
 * beside writes.
 */
export function buildCreateIndex(
  place: {
    readonly schema: string
    readonly collection: Pick<Readable, 'table'>
    readonly concurrently?: boolean
    /** Where the database has the extension that the kind of index needs. */
    readonly extensionSchema?: string | undefined
  },
  index: IndexDefinition,
): SqlStatement {
  const { text, values } = compileIndex({
    schema: place.schema,
    table: place.collection.table,
    name: getIndexName(index),
    paths: index.fields.map((field) => parseFieldPath(field, '')),
    method: findIndexKind(index.index_type)?.method ?? 'btree',
    // Uniqueness is checked among all records; a record without a value equals none.
    sparse: index.sparse === true && !index.unique,
    predicate:
      index.where === undefined ? undefined : printPredicate(parsePartial(index.where, '')),
    vectors: getIndexedVectors(index),
    extensionSchema: place.extensionSchema,
    concurrently: place.concurrently,
  })
  return sql.compiled(text, values)
}

/**
 * Creates an index in a transaction, which goes on without it where the server cannot keep it: before PostgreSQL 18 all
 * expressions of an index must fit into 8 KB. Returns false there; the definition stays, and serves no reads.
 */
export async function tryCreateIndex(tx: Queryable, statement: SqlStatement): Promise<boolean> {
  await tx.execute(sql`SAVEPOINT new_index`)
  try {
    await tx.execute(statement)
  } catch (error) {
    if (!isLimitExceeded(error)) throw error
    await tx.execute(sql`ROLLBACK TO SAVEPOINT new_index`)
    return false
  }
  await tx.execute(sql`RELEASE SAVEPOINT new_index`)
  return true
}

/** Returns what the lists of an index of vectors are; undefined for another kind of index. */
export function getIndexedVectors({
  dimensions: numbers,
  measure,
}: IndexDefinition): IndexedVectors | undefined {
  return numbers === undefined || measure === undefined ? undefined : { numbers, measure }
}

/**
 * Builds the statement that has the planner learn the values of an index, under the index's name. By itself
 * PostgreSQL learns them only for indexes over all rows, and ours are over the live ones; it would take any value
 * for one in 200. Undefined for an index that is not searched by value.
 */
export function buildCreateStatistics(
  place: { readonly schema: string; readonly collection: Pick<Readable, 'table'> },
  index: IndexDefinition,
): SqlStatement | undefined {
  if (!isByValue(index.index_type)) return undefined
  const keys = index.fields.map((field) => `(${printKeyExpression(parseFieldPath(field, ''))})`)
  const name = sql.id(place.schema, getIndexName(index))
  const table = sql.id(place.schema, place.collection.table)
  return sql`CREATE STATISTICS IF NOT EXISTS ${name} ON ${sql.compiled(keys.join(', '), [])} FROM ${table}`
}

/**
 * Returns true if the index is of all records by the order of their values, so that it serves every condition on
 * its fields.
 */
export function isPlain(index: Pick<IndexDefinition, 'index_type' | 'where'>): boolean {
  return isByValue(index.index_type) && index.where === undefined
}
