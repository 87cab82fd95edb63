import type { IndexDefinition } from '../../model/definitions.ts'
import { isFullText } from '../../model/index-kinds.ts'
import { findPrimaryColumn, type Readable } from '../../model/readable.ts'
import { listConditionPaths } from '../../query/condition.ts'
import { parsePartial } from '../../query/partial-index.ts'
import type { QueryShape } from '../../services/indexes/query-statistics.ts'

export type WantedIndex = { readonly type: string; readonly fields: readonly string[] }

/** Returns the index that serves such queries by condition or by order; undefined where there is none. */
export function findServingIndex(
  shape: QueryShape,
  { indexes }: Readable,
): IndexDefinition | undefined {
  const leads = (fields: readonly string[], isWords: boolean) =>
    indexes.find((index) => {
      const [first] = index.fields
      const isKind = isFullText(index.index_type) === isWords
      return isKind && fields.includes(first ?? '') && mayHold(index, shape)
    })
  const bySort = shape.sort === undefined ? [] : [shape.sort]
  return leads(shape.found, false) ?? leads(shape.searched, true) ?? leads(bySort, false)
}

/** Returns the index that such queries lack. */
export function findMissingIndex(shape: QueryShape, collection: Readable): WantedIndex | undefined {
  if (shape.history || findServingIndex(shape, collection) !== undefined) return undefined
  const primary = findPrimaryColumn(collection)
  if (primary !== undefined && shape.found.includes(primary)) return undefined
  const [field] = shape.found
  if (field !== undefined) return { type: 'btree', fields: shape.found.slice(0, 4) }
  const [searched] = shape.searched
  if (searched !== undefined) return { type: 'fulltext', fields: [searched] }
  return shape.sort === undefined ? undefined : { type: 'btree', fields: [shape.sort] }
}

/** Returns whether the condition of a partial index can follow from such queries. */
function mayHold({ where }: IndexDefinition, { found, tested }: QueryShape): boolean {
  if (where === undefined) return true
  return listConditionPaths(parsePartial(where, '')).every((path) =>
    [...found, ...tested].includes(path),
  )
}
