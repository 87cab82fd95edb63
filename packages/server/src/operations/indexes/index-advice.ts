import type { CollectionState, IndexDefinition } from '../../model/definitions.ts'
import { isFullText } from '../../projections/index-ddl.ts'
import { conditionPaths } from '../../query/condition.ts'
import { parsePartial } from '../../query/partial-index.ts'
import type { QueryShape } from '../../services/indexes/query-statistics.ts'

export type WantedIndex = { readonly type: string; readonly fields: readonly string[] }

/** The index that finds what such queries look for, or gives it in their order; undefined where there is none. */
export function servingIndex(
  shape: QueryShape,
  { indexes }: CollectionState,
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

/** The index that such queries lack. */
export function missingFields(
  shape: QueryShape,
  collection: CollectionState,
): WantedIndex | undefined {
  if (shape.history || servingIndex(shape, collection) !== undefined) return undefined
  const { primary_column: primary } = collection
  if (shape.found.includes(primary)) return undefined
  const [field] = shape.found
  if (field !== undefined) return { type: 'btree', fields: shape.found.slice(0, 4) }
  const [searched] = shape.searched
  if (searched !== undefined) return { type: 'fulltext', fields: [searched] }
  return shape.sort === undefined ? undefined : { type: 'btree', fields: [shape.sort] }
}

/** Whether what a partial index asks of its records can follow from such queries. */
function mayHold({ where }: IndexDefinition, { found, tested }: QueryShape): boolean {
  if (where === undefined) return true
  return conditionPaths(parsePartial(where, '')).every((path) =>
    [...found, ...tested].includes(path),
  )
}
