import { type CollectionStats, noStats } from './collection-stats.ts'
import type { IndexDefinition, Sharding } from './definitions.ts'
import type { RelationDescription } from './describe-relation.ts'
import type { Collection } from './readable.ts'

const unknownPolicy =
  'access_policy has a shape that is not understood; the collection is treated as private'

/** Describes a collection as callers see it. */
export function describeCollection(
  collection: Collection,
  stats: CollectionStats = noStats,
  relations: readonly RelationDescription[] = [],
) {
  return {
    collection_id: collection.id,
    name: collection.name,
    namespace: collection.namespace,
    primary_column: collection.primary_column,
    sort_column: collection.sort_column,
    collection_type: collection.collection_type,
    access_policy: collection.access_policy,
    schema_definition: collection.schema_definition,
    indexes: collection.indexes.map((index) => describeIndex(collection, index)),
    relations: [...relations],
    sharding: describeSharding(collection.sharding),
    ...(collection.encrypted === true && { encrypted: true }),
    created_at: collection.created_at,
    updated_at: collection.updated_at,
    metadata: {
      document_count: stats.documents,
      storage_size: stats.bytes,
      avg_document_size: stats.documents === 0 ? 0 : Math.round(stats.bytes / stats.documents),
    },
    ...(collection.policy.unknownShape && { _warning: unknownPolicy }),
  }
}

function describeSharding(sharding: Sharding | undefined) {
  return sharding === undefined ? null : { ...sharding, keys: [...sharding.keys] }
}

/** Describes an index in the words of every public client. */
export function describeIndex(collection: { name: string }, index: IndexDefinition) {
  const field = index.fields[0] ?? ''
  return {
    id: index.id,
    name: index.name,
    collection: collection.name,
    field_name: field,
    field,
    fields: [...index.fields],
    index_type: index.index_type,
    type: index.index_type,
    unique_constraint: index.unique,
    ...(index.dimensions !== undefined && { dimensions: index.dimensions }),
    ...(index.measure !== undefined && { measure: index.measure }),
    created_at: index.created_at,
  }
}
