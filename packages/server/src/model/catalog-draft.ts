import { type Catalog, type Definitions, rebuildCatalog } from './catalog.ts'
import type {
  CollectionDefinition,
  DataSetDefinition,
  GrantDefinition,
  IndexDefinition,
  MigrationDefinition,
  PricingDefinition,
  RelationDefinition,
  StoredQuery,
} from './definitions.ts'
import type { PlannedView } from './view-plan.ts'

/** One definition as its newest entry says; without a body it is gone. */
export type OneDefinition = {
  id: string
  body: string | undefined
  leaf: number
  /** Only of a view. */
  planned: PlannedView | undefined
}

/** The catalog with one definition set, or removed where there is no body. */
export function updateCatalog(before: Catalog, kind: string, definition: OneDefinition): Catalog {
  const { id } = definition
  const draft = makeDraft(before)
  setDefinition(draft, kind, definition)
  const index = kind === 'index' ? (draft.indexes.get(id) ?? before.indexes.get(id)) : undefined
  const isRead = kind === 'collection' || kind === 'view'
  return rebuildCatalog(draft, before, isRead ? id : index?.collection)
}

/** Definitions while they are being changed. */
export type Draft = {
  -readonly [K in keyof Definitions]: Definitions[K] extends ReadonlyMap<infer I, infer T>
    ? Map<I, T>
    : Definitions[K]
}

/** A draft that begins with what is defined. */
export function makeDraft(definitions: Definitions): Draft {
  return {
    collections: new Map(definitions.collections),
    indexes: new Map(definitions.indexes),
    relations: new Map(definitions.relations),
    migrations: new Map(definitions.migrations),
    dataSets: new Map(definitions.dataSets),
    views: new Map(definitions.views),
    grants: new Map(definitions.grants),
    queries: new Map(definitions.queries),
    pricing: definitions.pricing,
    nextNumber: definitions.nextNumber,
    version: definitions.version,
  }
}

/** Sets or removes one definition; the lookups are made when all are set. */
export function setDefinition(
  draft: Draft,
  kind: string,
  { id, body, leaf, planned }: OneDefinition,
): void {
  draft.version = Math.max(draft.version, leaf + 1)
  const parsed: unknown = body === undefined ? undefined : JSON.parse(body)
  if (kind === 'collection') {
    setNumbered(draft, draft.collections, { id, value: parsed as CollectionDefinition | undefined })
    if (parsed === undefined) forgetIndexes(draft, id)
  } else if (kind === 'index') {
    setNumbered(draft, draft.indexes, { id, value: parsed as IndexDefinition | undefined })
  } else if (kind === 'relation') {
    set(draft.relations, id, parsed as RelationDefinition | undefined)
  } else if (kind === 'migration') {
    set(draft.migrations, id, parsed as MigrationDefinition | undefined)
  } else if (kind === 'data_set') {
    setNumbered(draft, draft.dataSets, { id, value: parsed as DataSetDefinition | undefined })
  } else if (kind === 'view') {
    set(draft.views, id, planned)
    draft.nextNumber = Math.max(draft.nextNumber, (planned?.view.number ?? 0) + 1)
    if (planned === undefined) forgetIndexes(draft, id)
  } else if (kind === 'grant') {
    set(draft.grants, id, parsed as GrantDefinition | undefined)
  } else if (kind === 'query') {
    setVersion(draft.queries, id, parsed as StoredQuery | undefined)
  } else if (kind === 'pricing') {
    draft.pricing = (parsed as PricingDefinition | undefined) ?? { rules: [] }
  }
}

function set<T>(map: Map<string, T>, id: string, value: T | undefined): void {
  if (value === undefined) map.delete(id)
  else map.set(id, value)
}

/** `id` is `<name>@<version>`. */
function setVersion(
  queries: Map<string, readonly StoredQuery[]>,
  id: string,
  value: StoredQuery | undefined,
): void {
  const [name = '', version] = id.split('@')
  const others = (queries.get(name) ?? []).filter((one) => one.version !== Number(version))
  const all = [...others, ...(value === undefined ? [] : [value])]
  const isGone = all.length === 0
  set(queries, name, isGone ? undefined : all.toSorted((a, b) => a.version - b.version))
}

function setNumbered<T extends { readonly number: number }>(
  draft: Draft,
  map: Map<string, T>,
  { id, value }: { id: string; value: T | undefined },
): void {
  set(map, id, value)
  draft.nextNumber = Math.max(draft.nextNumber, (value?.number ?? 0) + 1)
}

function forgetIndexes({ indexes }: Draft, collection: string): void {
  for (const [id, index] of indexes) if (index.collection === collection) indexes.delete(id)
}
