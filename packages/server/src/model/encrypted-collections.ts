import type { Entry } from '@tollbase/verify/entry'
import { Fault } from '../base/fault.ts'
import type { Catalog } from './catalog.ts'
import type { Definition } from './definition-entry.ts'
import type {
  CollectionDefinition,
  GrantDefinition,
  IndexDefinition,
  RelationDefinition,
  ResealingDefinition,
  StoredView,
} from './definitions.ts'
import { isFree } from './find-price.ts'
import { parsePolicy } from './policy.ts'
import type { Readable } from './readable.ts'
import type { KeptQuery } from './stored-query.ts'
import { listIndexedFields } from './token-fields.ts'

/** Returns true if the records are sealed wherever they are kept: log, tables, blocks, backups. */
export function isEncrypted(readable: Readable): boolean {
  return readable.kind === 'collection' && readable.encrypted === true
}

/**
 * Returns true if its opened records stand in a plaintext table beside the sealed one, for queries. The log, blocks,
 * backups and other chains have the sealed ones alone.
 */
export function isQueryable(
  collection: Pick<CollectionDefinition, 'encrypted' | 'queryable'>,
): boolean {
  return collection.encrypted === true && collection.queryable === true
}

/** The table that queries read: for a queryable collection the one with its plaintext. */
export function getQueriedTable(readable: Readable): string {
  return readable.kind === 'collection' && isQueryable(readable)
    ? getPlaintextTable(readable)
    : readable.table
}

export function getPlaintextTable({ number }: Pick<CollectionDefinition, 'number'>): string {
  return `p_${number}`
}

/** The table of one row that says how far the plaintext table is. */
export function getPlaintextPositionTable({
  number,
}: Pick<CollectionDefinition, 'number'>): string {
  return `p_${number}_at`
}

/** The fault of what would need the plaintext of an encrypted collection in the database. */
export function makeNotOnPrivateFault(
  collection: string,
  what: string,
  { fields = [], remedy }: { readonly fields?: readonly string[]; readonly remedy?: string } = {},
): Fault {
  const named = fields.length === 0 ? '' : ` (${fields.join(', ')})`
  return new Fault('NOT_ON_PRIVATE', {
    message: `${collection} is encrypted: ${what}${named} is not possible on it${remedy === undefined ? '' : `; ${remedy}`}`,
    details: { collection, ...(fields.length > 0 && { fields }) },
  })
}

export function refuseOnPrivate(
  readable: Readable,
  what: string,
  fields: readonly string[] = [],
): void {
  if (isEncrypted(readable)) throw makeNotOnPrivateFault(readable.name, what, { fields })
}

/**
 * Keeps plaintext out of the log of an encrypted collection, and envelopes out of all others, whatever part of the
 * service writes them. A write that was prepared before the encryption changed is to be sent again.
 */
export function refuseUnsealed({ byId }: Catalog, entries: readonly Entry[]): void {
  for (const { header } of entries) {
    if (header.type !== 'record') continue
    const collection = byId.get(String(header.collection))
    if ((collection?.encrypted === true) === (header.sealed === true)) continue
    throw new EncryptionChanged()
  }
}

/** Thrown where records were prepared in the form that their collection had a moment ago. */
export class EncryptionChanged extends Fault {
  constructor() {
    super('UNAVAILABLE', {
      message: 'The encryption of this collection has just changed; send the same again.',
      retryAfterSeconds: 1,
    })
  }
}

/**
 * Refuses definitions that would make tables, prices or answers of the plaintext of encrypted collections. Every
 * definition passes here, so none of them needs to know of encryption.
 */
export function refuseDefinitionsOnPrivate(
  catalog: Catalog,
  definitions: readonly Definition[],
): void {
  const encrypted = new Map<string, CollectionDefinition>()
  const findUses = makeUsesFinder(catalog)
  for (const one of catalog.collections.values())
    if (one.encrypted === true || isBeingSealed(catalog.resealings.get(one.id)))
      encrypted.set(one.id, one)
  for (const definition of definitions) {
    const { id, kind } = definition
    const becomes = findEncrypted(catalog, definition)
    if (becomes !== undefined) {
      encrypted.set(id, becomes)
      refuseCollection(becomes, findUses())
    } else if (kind === 'collection') encrypted.delete(id)
  }
  if (encrypted.size === 0) return
  for (const definition of definitions) refuseDefinition(catalog, encrypted, definition)
}

/** CONFLICT while the encryption of the collection changes. */
export function refuseResealing(
  { resealings }: Catalog,
  { id, name }: Pick<Readable, 'id' | 'name'>,
) {
  const state = resealings.get(id)?.state
  if (state === undefined || state === 'completed') return
  throw new Fault('CONFLICT', {
    message: `The encryption of ${name} is being changed; wait until its task has ended`,
    details: { collection: name },
  })
}

/** The collection that is encrypted, or is to be, by this definition. */
function findEncrypted(catalog: Catalog, definition: Definition): CollectionDefinition | undefined {
  const { kind, id, body } = definition
  if (kind === 'resealing') return isBeingSealed(body) ? catalog.collections.get(id) : undefined
  if (kind !== 'collection') return undefined
  return body?.encrypted === true || isBeingSealed(catalog.resealings.get(id)) ? body : undefined
}

/** Returns true while a collection's records are being sealed: what they become has its rules from the beginning. */
function isBeingSealed(resealing: ResealingDefinition | undefined): boolean {
  return resealing?.action === 'add' && resealing.state === 'copying'
}

function refuseDefinition(
  catalog: Catalog,
  encrypted: ReadonlyMap<string, CollectionDefinition>,
  definition: Definition,
): void {
  const refuse = (id: string, what: string, fields: readonly string[] = []) => {
    const found = encrypted.get(id)
    if (found !== undefined) throw makeNotOnPrivateFault(found.name, what, { fields })
  }
  if (definition.body === undefined) return
  if (definition.kind === 'index')
    refuse(definition.body.collection, 'an index', definition.body.fields)
  if (definition.kind === 'grant') refuse(definition.body.source, 'a grant for views')
  if (definition.kind === 'migration') refuse(definition.body.collection, 'a migration')
  if (definition.kind === 'relation') {
    refuse(definition.body.parent, 'a relation', [definition.body.parent_field])
    refuse(definition.body.child, 'a relation', [definition.body.child_field])
  }
  if (definition.kind === 'view')
    for (const { id } of [...definition.body.sources, ...definition.body.reads])
      refuse(id, 'a view')
  if (definition.kind === 'query')
    for (const name of definition.body.sources) {
      const id = findId(catalog, name)
      // A plaintext table answers stored queries as well.
      if (encrypted.get(id)?.queryable !== true) refuse(id, 'a predefined query')
    }
  if (definition.kind === 'pricing')
    for (const { target } of definition.body.rules)
      refuse(findId(catalog, target.collection ?? ''), 'a price')
}

function findId({ byName }: Catalog, name: string): string {
  return byName.get(name)?.id ?? ''
}

/** The first of each kind that needs the plaintext of a collection, by its id or by its name. */
type Uses = {
  readonly indexes: ReadonlyMap<string, IndexDefinition>
  readonly relations: ReadonlyMap<string, RelationDefinition>
  readonly views: ReadonlyMap<string, StoredView>
  readonly queries: ReadonlyMap<string, KeptQuery>
  readonly grants: ReadonlyMap<string, GrantDefinition>
  readonly pricedNames: ReadonlySet<string>
}

/** Looks at the catalog once, however many collections become encrypted, and not at all where none does. */
function makeUsesFinder(catalog: Catalog): () => Uses {
  let uses: Uses | undefined
  return () => {
    uses ??= findUses(catalog)
    return uses
  }
}

function findUses(catalog: Catalog): Uses {
  const views = [...catalog.views.values()].map(({ view }) => view)
  const queries = [...catalog.queries.values()].flat()
  const { rules } = catalog.pricing
  return {
    indexes: keepFirst(catalog.indexes.values(), ({ collection }) => [collection]),
    relations: keepFirst(catalog.relations.values(), ({ parent, child }) => [parent, child]),
    // A view of another application may stand between: then the collection is read, and is not among the sources.
    views: keepFirst(views, ({ app, sources, reads }) =>
      [...sources, ...reads].flatMap((source) => (source.app === app ? [source.id] : [])),
    ),
    queries: keepFirst(queries, ({ sources }) => sources),
    grants: keepFirst(catalog.grants.values(), ({ source }) => [source]),
    pricedNames: new Set(rules.flatMap(({ target }) => target.collection ?? [])),
  }
}

/** Maps each key to the first item that has it. */
function keepFirst<T>(
  items: Iterable<T>,
  listKeys: (item: T) => readonly string[],
): Map<string, T> {
  const first = new Map<string, T>()
  for (const item of items)
    for (const key of listKeys(item)) if (!first.has(key)) first.set(key, item)
  return first
}

/**
 * Only the application's own keys can read an encrypted collection, and nothing may be made from it.
 */
function refuseCollection(collection: CollectionDefinition, uses: Uses): void {
  const { id, name, collection_type: type } = collection
  const refuse = (what: string, fields: readonly string[] = []): never => {
    throw makeNotOnPrivateFault(name, what, { fields })
  }
  if (type === 'api') refuse(`the type ${type}`)
  if (type === 'blob' && collection.queryable === true) refuse('queryable, as it holds blobs,')
  const { read, price, derive, preview } = parsePolicy(collection.access_policy)
  if (read === 'public') refuse('the access policy "public"')
  if (!isFree(price) || derive !== undefined) refuse('a price')
  if (preview !== undefined) refuse('a preview')
  const unique = listIndexedFields(collection, ['unique'])
  if (unique.length > 0) refuse('a unique field', unique)
  const index = uses.indexes.get(id)
  if (index !== undefined) refuse(`the index ${index.name}`, index.fields)
  const relation = uses.relations.get(id)
  if (relation !== undefined) refuse(`the relation ${relation.id}`)
  const view = uses.views.get(id)
  if (view !== undefined) refuse(`the view ${view.name}`)
  const query = uses.queries.get(name)
  if (query !== undefined && collection.queryable !== true)
    refuse(`the predefined query ${query.name}`)
  const grant = uses.grants.get(id)
  if (grant !== undefined) refuse(`the grant ${grant.id}`)
  if (uses.pricedNames.has(name)) refuse('a price')
}
