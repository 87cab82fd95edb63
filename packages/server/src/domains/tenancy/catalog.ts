import type {
  CollectionDefinition,
  CollectionState,
  IndexDefinition,
  PricingDefinition,
} from './definitions.ts'
import { readPolicy } from './policy.ts'

/** What an application has defined, as of its watermark. Immutable: a change makes a new one. */
export type Catalog = {
  readonly collections: ReadonlyMap<string, CollectionDefinition>
  readonly indexes: ReadonlyMap<string, IndexDefinition>
  readonly pricing: PricingDefinition
  /** The next number for a table or an index. */
  readonly nextNumber: number
  /** Rises with every definition; names the prices that a quote was made under. */
  readonly version: number
  readonly byName: ReadonlyMap<string, CollectionState>
  readonly byId: ReadonlyMap<string, CollectionState>
}

type Definitions = Pick<Catalog, 'collections' | 'indexes' | 'pricing' | 'nextNumber' | 'version'>

export const emptyCatalog: Catalog = withLookups({
  collections: new Map(),
  indexes: new Map(),
  pricing: { rules: [] },
  nextNumber: 1,
  version: 0,
})

export function withLookups(definitions: Definitions): Catalog {
  // By number, which is the order of creation, however the definitions came into memory.
  const indexes = [...definitions.indexes.values()].sort(byNumber)
  const states = [...definitions.collections.values()].sort(byNumber).map((collection) => ({
    ...collection,
    table: `c_${collection.number}`,
    policy: readPolicy(collection.access_policy),
    indexes: indexes.filter((index) => index.collection === collection.id),
  }))
  return {
    ...definitions,
    byName: new Map(states.map((state) => [state.name, state])),
    byId: new Map(states.map((state) => [state.id, state])),
  }
}

/** A collection by name or by collection_id. */
export function findCollection(catalog: Catalog, nameOrId: string): CollectionState | undefined {
  return catalog.byName.get(nameOrId) ?? catalog.byId.get(nameOrId)
}

function byNumber(a: { readonly number: number }, b: { readonly number: number }): number {
  return a.number - b.number
}
