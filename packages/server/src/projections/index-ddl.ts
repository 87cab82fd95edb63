import { type SqlStatement, sql } from '../database/sql.ts'
import type { CollectionState, IndexDefinition } from '../model/definitions.ts'
import { parseFieldPath } from '../query/field-path.ts'
import { createIndexStatement, keyExpression } from '../query/index-key.ts'
import { parsePartial, partialPredicate } from '../query/partial-index.ts'

/** The name of an index in the database. */
export function indexNameOf(index: { readonly number: number }): string {
  return `i_${index.number}`
}

/** What makes an index: in a transaction, or `concurrently`, which is outside of one and beside writes. */
export function createIndex(
  place: {
    readonly schema: string
    readonly collection: Pick<CollectionState, 'table'>
    readonly concurrently?: boolean
  },
  index: IndexDefinition,
): SqlStatement {
  const { text, values } = createIndexStatement({
    schema: place.schema,
    table: place.collection.table,
    name: indexNameOf(index),
    paths: index.fields.map((field) => parseFieldPath(field, '')),
    kind: kindOf(index),
    // Equal values of a unique field are looked for among all records; without a value there is nothing equal.
    sparse: index.sparse === true && !index.unique,
    predicate:
      index.where === undefined ? undefined : partialPredicate(parsePartial(index.where, '')),
    concurrently: place.concurrently,
  })
  return sql.compiled(text, values)
}

/**
 * What has the planner learn the values of an index, under the index's name. Of its own accord PostgreSQL learns
 * them of indexes over all rows only, and ours are over the live ones; it would take any value for one in 200.
 * Undefined for what is not found by value.
 */
export function createStatistics(
  place: { readonly schema: string; readonly collection: Pick<CollectionState, 'table'> },
  index: IndexDefinition,
): SqlStatement | undefined {
  if (isFullText(index.index_type)) return undefined
  const keys = index.fields.map((field) => `(${keyExpression(parseFieldPath(field, ''))})`)
  const name = sql.id(place.schema, indexNameOf(index))
  const table = sql.id(place.schema, place.collection.table)
  return sql`CREATE STATISTICS IF NOT EXISTS ${name} ON ${sql.compiled(keys.join(', '), [])} FROM ${table}`
}

function kindOf({ index_type: type, fields }: IndexDefinition): 'btree' | 'hash' | 'gin' {
  if (isFullText(type)) return 'gin'
  return type.toLowerCase() === 'hash' && fields.length === 1 ? 'hash' : 'btree'
}

export function isFullText(indexType: string): boolean {
  return indexType.toLowerCase() === 'fulltext'
}

/** Whether the index is of all records by the order of their values, so that it serves every condition on its fields. */
export function isPlain(index: Pick<IndexDefinition, 'index_type' | 'where'>): boolean {
  return !isFullText(index.index_type) && index.where === undefined
}
