import type { IndexDefinition } from '../../model/definitions.ts'
import { getServedBy } from '../../model/index-kinds.ts'
import { findPrimaryColumn, type Readable } from '../../model/readable.ts'
import { listConditionPaths } from '../../query/condition.ts'
import type { Served } from '../../query/index-key.ts'
import { parsePartial } from '../../query/partial-index.ts'
import type { QueryShape } from '../../services/indexes/query-statistics.ts'

export type WantedIndex = { readonly type: string; readonly fields: readonly string[] }

/** Returns the index that serves such queries by condition or by order; undefined where there is none. */
export function findServingIndex(
  shape: QueryShape,
  { indexes }: Readable,
): IndexDefinition | undefined {
  const leads = (fields: readonly string[], served: Served) =>
    indexes.find((index) => {
      const [first] = index.fields
      const isKind = getServedBy(index.index_type) === served
      return isKind && fields.includes(first ?? '') && mayHold(index, shape)
    })
  const bySort = shape.sort === undefined ? [] : [shape.sort]
  return (
    leads(shape.found, 'values') ??
    leads(shape.searched, 'words') ??
    leads([...shape.searched, ...shape.contained], 'parts') ??
    leads(bySort, 'values')
  )
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
  const [contained] = shape.contained
  if (contained !== undefined) return { type: 'trigram', fields: [contained] }
  return shape.sort === undefined ? undefined : { type: 'btree', fields: [shape.sort] }
}

/** Returns whether the condition of a partial index can follow from such queries. */
function mayHold({ where }: IndexDefinition, { found, contained, tested }: QueryShape): boolean {
  if (where === undefined) return true
  return listConditionPaths(parsePartial(where, '')).every((path) =>
    [...found, ...contained, ...tested].includes(path),
  )
}
