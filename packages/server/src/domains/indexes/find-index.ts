import { Fault } from '../../base/fault.ts'
import type { CollectionState, IndexDefinition } from '../tenancy/definitions.ts'

/**
 * An index by its id, its name, or one of the names that public clients make of collection and field:
 * they create `{collection}_{field}_idx` and delete `{collection}_{field}_index`.
 */
export function findIndex(
  collections: Iterable<CollectionState>,
  name: string,
): { collection: CollectionState; index: IndexDefinition } {
  for (const collection of collections) {
    const index = collection.indexes.find(
      (one) => one.id === name || one.name === name || derivedNames(collection, one).includes(name),
    )
    if (index !== undefined) return { collection, index }
  }
  throw new Fault('INDEX_NOT_FOUND', { message: `There is no index ${name}` })
}

function derivedNames(collection: CollectionState, index: IndexDefinition): string[] {
  const fields = index.fields.join('_')
  const spellings = new Set([fields, index.fields.join('.'), fields.replaceAll('.', '_')])
  return [...spellings].flatMap((one) => [
    `${collection.name}_${one}_index`,
    `${collection.name}_${one}_idx`,
  ])
}
