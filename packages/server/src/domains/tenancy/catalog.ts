import type {
  CollectionDefinition,
  CollectionState,
  DataSetDefinition,
  GrantDefinition,
  IndexDefinition,
  MigrationDefinition,
  PricingDefinition,
  RelationDefinition,
  StoredQuery,
} from './definitions.ts'
import { readPolicy } from './policy.ts'
import { type PlannedView, viewStateOf } from './view-plan.ts'

/** What an application has defined, as of its watermark. Immutable: a change makes a new one. */
export type Catalog = Definitions & {
  readonly byName: ReadonlyMap<string, CollectionState>
  readonly byId: ReadonlyMap<string, CollectionState>
  /** Views as they are read: of two of one name the older one, until it is gone. */
  readonly viewsByName: ReadonlyMap<string, CollectionState>
  readonly viewsById: ReadonlyMap<string, CollectionState>
}

/** The definitions alone, by id. */
export type Definitions = {
  readonly collections: ReadonlyMap<string, CollectionDefinition>
  readonly indexes: ReadonlyMap<string, IndexDefinition>
  readonly relations: ReadonlyMap<string, RelationDefinition>
  /** By collection id. */
  readonly migrations: ReadonlyMap<string, MigrationDefinition>
  readonly dataSets: ReadonlyMap<string, DataSetDefinition>
  readonly views: ReadonlyMap<string, PlannedView>
  readonly grants: ReadonlyMap<string, GrantDefinition>
  /** The versions of each predefined query by its name, the newest last. */
  readonly queries: ReadonlyMap<string, readonly StoredQuery[]>
  readonly pricing: PricingDefinition
  /** The next number for a table or an index. */
  readonly nextNumber: number
  /** Rises with every definition: the leaf after the newest one's. */
  readonly version: number
}

export const emptyCatalog: Catalog = withLookups({
  collections: new Map(),
  indexes: new Map(),
  relations: new Map(),
  migrations: new Map(),
  dataSets: new Map(),
  views: new Map(),
  grants: new Map(),
  queries: new Map(),
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
  const byId = new Map(states.map((state) => [state.id, state]))
  return {
    ...definitions,
    byName: new Map(states.map((state) => [state.name, state])),
    byId,
    ...viewLookups(definitions.views, (id) => indexes.get(id) ?? []),
  }
}

/**
 * The lookups where one collection or view, or its indexes, changed: only its own are made anew, so that the cost of a
 * definition does not grow with the product of collections and indexes.
 */
export function withLookupsOf(
  definitions: Definitions,
  before: Catalog,
  changedId: string | undefined,
): Catalog {
  const { byName: names, byId: ids, viewsByName, viewsById } = before
  const same = { ...definitions, byName: names, byId: ids, viewsByName, viewsById }
  if (changedId === undefined) return same
  const indexesOf = (id: string) =>
    [...definitions.indexes.values()].filter((index) => index.collection === id)
  if (definitions.views.has(changedId) || viewsById.has(changedId))
    return { ...same, ...viewLookups(definitions.views, indexesOf) }
  const [byName, byId] = [new Map(names), new Map(ids)]
  const old = byId.get(changedId)
  const collection = definitions.collections.get(changedId)
  if (collection !== undefined) {
    const state = stateOf(collection, indexesOf(changedId))
    byName.set(state.name, state)
    byId.set(state.id, state)
  } else if (old !== undefined) {
    byName.delete(old.name)
    byId.delete(old.id)
  }
  return { ...same, byName, byId }
}

/** In the order of creation, in which a view comes after those that it is made of. */
function viewLookups(
  views: Catalog['views'],
  indexesOf: (id: string) => readonly IndexDefinition[],
): Pick<Catalog, 'viewsByName' | 'viewsById'> {
  const planned = [...views.values()].sort((a, b) => a.view.number - b.view.number)
  const states = planned.map((one) => viewStateOf(one, [...indexesOf(one.view.id)].sort(byNumber)))
  return {
    // Of two of one name the older one is written last, and stays.
    viewsByName: new Map(states.toReversed().map((state) => [state.name, state])),
    viewsById: new Map(states.map((state) => [state.id, state])),
  }
}

/** A collection by name or by collection_id. */
export function findCollection(catalog: Catalog, nameOrId: string): CollectionState | undefined {
  return catalog.byName.get(nameOrId) ?? catalog.byId.get(nameOrId)
}

/** A collection or a view, by name or id. */
export function findReadable(catalog: Catalog, nameOrId: string): CollectionState | undefined {
  const { viewsByName, viewsById } = catalog
  return findCollection(catalog, nameOrId) ?? viewsByName.get(nameOrId) ?? viewsById.get(nameOrId)
}

/** All collections and views. */
export function readables({ byName, viewsById }: Catalog): CollectionState[] {
  return [...byName.values(), ...viewsById.values()]
}

/** The collection or view of this id. */
export function readableOfId(catalog: Catalog, id: string): CollectionState | undefined {
  return catalog.byId.get(id) ?? catalog.viewsById.get(id)
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
