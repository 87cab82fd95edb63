import type {
  CollectionDefinition,
  CollectionState,
  IndexDefinition,
  MigrationDefinition,
  PricingDefinition,
  RelationDefinition,
} from './definitions.ts'
import { readPolicy } from './policy.ts'

/** What an application has defined, as of its watermark. Immutable: a change makes a new one. */
export type Catalog = Definitions & {
  readonly byName: ReadonlyMap<string, CollectionState>
  readonly byId: ReadonlyMap<string, CollectionState>
}

/** The definitions alone, by id. */
export type Definitions = {
  readonly collections: ReadonlyMap<string, CollectionDefinition>
  readonly indexes: ReadonlyMap<string, IndexDefinition>
  readonly relations: ReadonlyMap<string, RelationDefinition>
  /** By collection id. */
  readonly migrations: ReadonlyMap<string, MigrationDefinition>
  readonly pricing: PricingDefinition
  /** The next number for a table or an index. */
  readonly nextNumber: number
  /** Rises with every definition; names the prices that a quote was made under. */
  readonly version: number
}

export const emptyCatalog: Catalog = withLookups({
  collections: new Map(),
  indexes: new Map(),
  relations: new Map(),
  migrations: new Map(),
  pricing: { rules: [] },
  nextNumber: 1,
  version: 0,
})

export function withLookups(definitions: Definitions): Catalog {
  const indexes = new Map<string, IndexDefinition[]>()
  for (const index of definitions.indexes.values()) {
    const list = indexes.get(index.collection)
    if (list === undefined) indexes.set(index.collection, [index])
    else list.push(index)
  }
  // By number, which is the order of creation, however the definitions came into memory.
  const states = [...definitions.collections.values()]
    .sort(byNumber)
    .map((collection) => stateOf(collection, indexes.get(collection.id) ?? []))
  return {
    ...definitions,
    byName: new Map(states.map((state) => [state.name, state])),
    byId: new Map(states.map((state) => [state.id, state])),
  }
}

/**
 * The lookups where one collection, or its indexes, changed: only its own are made anew, so that the cost of a
 * definition does not grow with the product of collections and indexes.
 */
export function withLookupsOf(
  definitions: Definitions,
  before: Catalog,
  collectionId: string | undefined,
): Catalog {
  const { byName: names, byId: ids } = before
  if (collectionId === undefined) return { ...definitions, byName: names, byId: ids }
  const [byName, byId] = [new Map(names), new Map(ids)]
  const old = byId.get(collectionId)
  const collection = definitions.collections.get(collectionId)
  if (collection !== undefined) {
    const indexes = [...definitions.indexes.values()].filter(
      (index) => index.collection === collectionId,
    )
    const state = stateOf(collection, indexes)
    byName.set(state.name, state)
    byId.set(state.id, state)
  } else if (old !== undefined) {
    byName.delete(old.name)
    byId.delete(old.id)
  }
  return { ...definitions, byName, byId }
}

/** A collection by name or by collection_id. */
export function findCollection(catalog: Catalog, nameOrId: string): CollectionState | undefined {
  return catalog.byName.get(nameOrId) ?? catalog.byId.get(nameOrId)
}

function stateOf(
  collection: CollectionDefinition,
  indexes: readonly IndexDefinition[],
): CollectionState {
  return {
    ...collection,
    table: `c_${collection.number}`,
    policy: readPolicy(collection.access_policy),
    indexes: [...indexes].sort(byNumber),
  }
}

function byNumber(a: { readonly number: number }, b: { readonly number: number }): number {
  return a.number - b.number
}
