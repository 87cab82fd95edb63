import type {
  CollectionDefinition,
  DataSetDefinition,
  EncryptionDefinition,
  GrantDefinition,
  IndexDefinition,
  MigrationDefinition,
  PricingDefinition,
  RelationDefinition,
  ResealingDefinition,
} from './definitions.ts'
import { type Collection, makeCollection, makeView, type Readable, type View } from './readable.ts'
import type { KeptQuery } from './stored-query.ts'
import type { PlannedView } from './view-plan.ts'

/** The definitions of an application as of its watermark. Immutable: a change makes a new catalog. */
export type Catalog = Definitions & {
  readonly byName: ReadonlyMap<string, Collection>
  readonly byId: ReadonlyMap<string, Collection>
  /** Views as they are read: the older of two with one name, until it is gone. */
  readonly viewsByName: ReadonlyMap<string, View>
  readonly viewsById: ReadonlyMap<string, View>
}

/** The definitions alone, by id. */
export type Definitions = {
  readonly collections: ReadonlyMap<string, CollectionDefinition>
  readonly indexes: ReadonlyMap<string, IndexDefinition>
  readonly relations: ReadonlyMap<string, RelationDefinition>
  /** By collection id. */
  readonly migrations: ReadonlyMap<string, MigrationDefinition>
  /** By collection id. */
  readonly resealings: ReadonlyMap<string, ResealingDefinition>
  readonly dataSets: ReadonlyMap<string, DataSetDefinition>
  readonly views: ReadonlyMap<string, PlannedView>
  readonly grants: ReadonlyMap<string, GrantDefinition>
  /** The versions of each predefined query by its name, the newest last. */
  readonly queries: ReadonlyMap<string, readonly KeptQuery[]>
  readonly pricing: PricingDefinition
  readonly encryption: EncryptionDefinition
  /** The next number for a table or an index. */
  readonly nextNumber: number
  /** Rises with every definition: the leaf after the newest one's. */
  readonly version: number
}

export const emptyCatalog: Catalog = buildCatalog({
  collections: new Map(),
  indexes: new Map(),
  relations: new Map(),
  migrations: new Map(),
  resealings: new Map(),
  dataSets: new Map(),
  views: new Map(),
  grants: new Map(),
  queries: new Map(),
  pricing: { rules: [] },
  encryption: { private_app: false, updated_at: null },
  nextNumber: 1,
  version: 0,
})

/** Definitions while they are being changed; the lookups of a catalog are made when all are set. */
export type Draft = {
  -readonly [K in keyof Definitions]: Definitions[K] extends ReadonlyMap<infer I, infer T>
    ? Map<I, T>
    : Definitions[K]
}

/** Makes a draft that begins with what is defined. */
export function makeDraft(definitions: Definitions): Draft {
  return {
    collections: new Map(definitions.collections),
    indexes: new Map(definitions.indexes),
    relations: new Map(definitions.relations),
    migrations: new Map(definitions.migrations),
    resealings: new Map(definitions.resealings),
    dataSets: new Map(definitions.dataSets),
    views: new Map(definitions.views),
    grants: new Map(definitions.grants),
    queries: new Map(definitions.queries),
    pricing: definitions.pricing,
    encryption: definitions.encryption,
    nextNumber: definitions.nextNumber,
    version: definitions.version,
  }
}

export function buildCatalog(definitions: Definitions): Catalog {
  const indexes = new Map<string, IndexDefinition[]>()
  for (const index of definitions.indexes.values()) {
    const list = indexes.get(index.collection)
    if (list === undefined) indexes.set(index.collection, [index])
    else list.push(index)
  }
  // By number, which is the order of creation, however the definitions came into memory.
  const states = [...definitions.collections.values()]
    .sort(compareByNumber)
    .map((collection) => makeCollection(collection, indexes.get(collection.id) ?? []))
  const byId = new Map(states.map((state) => [state.id, state]))
  return {
    ...definitions,
    byName: new Map(states.map((state) => [state.name, state])),
    byId,
    ...buildViewLookups(definitions.views, (id) => indexes.get(id) ?? []),
  }
}

/**
 * Rebuilds the lookups after one collection or view, or its indexes, changed: only its own are made anew, so that
 * the cost of a definition does not grow with the product of collections and indexes.
 */
export function rebuildCatalog(
  definitions: Definitions,
  before: Catalog,
  changedId: string | undefined,
): Catalog {
  const { byName: names, byId: ids, viewsByName, viewsById } = before
  const same = { ...definitions, byName: names, byId: ids, viewsByName, viewsById }
  if (changedId === undefined) return same
  const listIndexes = (id: string) =>
    [...definitions.indexes.values()].filter((index) => index.collection === id)
  if (definitions.views.has(changedId) || viewsById.has(changedId))
    return { ...same, ...buildViewLookups(definitions.views, listIndexes) }
  const [byName, byId] = [new Map(names), new Map(ids)]
  const old = byId.get(changedId)
  const collection = definitions.collections.get(changedId)
  if (collection !== undefined) {
    const state = makeCollection(collection, listIndexes(changedId))
    byName.set(state.name, state)
    byId.set(state.id, state)
  } else if (old !== undefined) {
    byName.delete(old.name)
    byId.delete(old.id)
  }
  return { ...same, byName, byId }
}

/** In the order of creation, in which a view comes after those that it is made of. */
function buildViewLookups(
  views: Catalog['views'],
  listIndexes: (id: string) => readonly IndexDefinition[],
): Pick<Catalog, 'viewsByName' | 'viewsById'> {
  const planned = [...views.values()].sort((a, b) => a.view.number - b.view.number)
  const states = planned.map((one) => makeView(one, listIndexes(one.view.id)))
  return {
    // The older of two views of one name is written last, and stays.
    viewsByName: new Map(states.toReversed().map((state) => [state.name, state])),
    viewsById: new Map(states.map((state) => [state.id, state])),
  }
}

/**
 * Finds a collection by name or by collection_id. The id comes first: any key with Write can make a collection whose name
 * is the id of another one.
 */
export function findCollection(catalog: Catalog, nameOrId: string): Collection | undefined {
  return catalog.byId.get(nameOrId) ?? catalog.byName.get(nameOrId)
}

/** Finds a collection or a view, by name or id. */
export function findReadable(catalog: Catalog, nameOrId: string): Readable | undefined {
  const { byName, viewsByName } = catalog
  return findReadableById(catalog, nameOrId) ?? byName.get(nameOrId) ?? viewsByName.get(nameOrId)
}

/** Lists all collections and views. */
export function listReadables({ byName, viewsById }: Catalog): Readable[] {
  return [...byName.values(), ...viewsById.values()]
}

/** Finds the collection or view of this id. */
export function findReadableById(catalog: Catalog, id: string): Readable | undefined {
  return catalog.byId.get(id) ?? catalog.viewsById.get(id)
}

function compareByNumber(a: { readonly number: number }, b: { readonly number: number }): number {
  return a.number - b.number
}
