import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { IndexDefinition } from '../../model/definitions.ts'
import { makeIndexName } from '../../model/make-index-name.ts'
import type { Collection } from '../../model/readable.ts'
import { isPlain } from '../../projections/index-ddl.ts'

/**
 * Builds the definition of an index on the field, unless the collection has one that leads with it. `others` are
 * indexes that are defined in the same write; `number` is the first free number, `others` not counted.
 */
export function buildLeadingIndex(
  world: World,
  collection: Collection,
  wanted: { field: string; type: 'btree' | 'hash'; number: number; others: readonly Definition[] },
): Definition[] {
  const { field, type, others } = wanted
  const indexes = [...collection.indexes, ...others.flatMap(makeIndexFilter(collection))]
  if (indexes.some((index) => isPlain(index) && index.fields[0] === field)) return []
  if (indexes.length >= limits.indexesPerCollectionMax) {
    throw new Fault('CONFLICT', {
      message: `${collection.name} has ${limits.indexesPerCollectionMax} indexes, as many as a collection may have, and none leads with ${field}`,
    })
  }
  const body: IndexDefinition = {
    id: `idx_${world.randomBytes(12).toString('hex')}`,
    number: wanted.number + others.length,
    name: makeIndexName(collection, [field], indexes),
    collection: collection.id,
    fields: [field],
    index_type: type,
    unique: false,
    created_at: new Date(world.now()).toISOString(),
  }
  return [{ kind: 'index', id: body.id, body }]
}

function makeIndexFilter(collection: Collection) {
  return ({ kind, body }: Definition): IndexDefinition[] =>
    kind === 'index' && body?.collection === collection.id ? [body] : []
}
