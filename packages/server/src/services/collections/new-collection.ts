import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../base/assert.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { World } from '../../base/world.ts'
import { runWithoutCommitNote } from '../../chain/commit-notes.ts'
import { blobKey } from '../../model/blob.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type {
  ApiDefinition,
  CollectionDefinition,
  IndexDefinition,
} from '../../model/definitions.ts'
import { refuseDefinitionsOnPrivate } from '../../model/encrypted-collections.ts'
import { makeIndexName } from '../../model/make-index-name.ts'
import { makePaidCollectionId } from '../../model/paid-collection-id.ts'
import type { Collection } from '../../model/readable.ts'
import { addTokenFields } from '../../model/token-fields.ts'
import { isPlain } from '../../projections/index-ddl.ts'
import { define, refuseWithoutRoom } from '../applications/define.ts'
import type { Tenant } from '../applications/tenants.ts'

export type CollectionRequest = Partial<
  Pick<
    CollectionDefinition,
    | 'namespace'
    | 'primary_column'
    | 'sort_column'
    | 'collection_type'
    | 'access_policy'
    | 'schema_definition'
  >
> & {
  readonly name: string
  /** The id of the payment whose write makes it. */
  readonly madeBy?: string
  /** Makes the upstream's definition, which is bound to the id of its collection. */
  readonly makeApi?: (id: string) => ApiDefinition
}

/** Creates a collection; the caller holds the mutex of definitions. */
export async function createCollectionLocked(
  world: World,
  tenant: Tenant,
  request: CollectionRequest,
): Promise<Collection> {
  const { catalog } = tenant.data
  const collection = buildCollection(world, tenant, { request, others: [] })
  const definitions: Definition[] = [
    { kind: 'collection', id: collection.id, body: collection },
    ...buildSchemaIndexes(world, collection, collection.number + 1),
  ]
  const isOwed = request.madeBy !== undefined
  // Before the definition, so that whoever finds the collection finds its keys; one that is refused has none.
  if (collection.encrypted === true) {
    if (!isOwed) await refuseWithoutRoom(tenant, definitions)
    refuseDefinitionsOnPrivate(catalog, definitions)
    await tenant.sealer.createKeys([collection.id])
  }
  await define(tenant, definitions, { isOwed })
  return requirePresent(tenant.data.catalog.byId.get(collection.id), 'the new collection')
}

/**
 * Builds the definition of a collection; 409 where there can be none of its name, or no more. `others` are defined in the
 * same write, before it.
 */
export function buildCollection(
  world: World,
  tenant: Tenant,
  {
    request,
    others,
  }: { readonly request: CollectionRequest; readonly others: readonly Definition[] },
): CollectionDefinition {
  const { application } = tenant
  const { catalog } = tenant.data
  const made = others.filter(({ kind }) => kind === 'collection').length
  refuseNewCollection(tenant, request.name, made)
  const isBlob = request.collection_type === 'blob'
  if (isBlob && (request.primary_column ?? blobKey) !== blobKey)
    throw makeInvalidFault('/primary_column', `of a collection of blobs is ${blobKey}`)
  const now = new Date(world.now()).toISOString()
  const number = catalog.nextNumber + others.length
  const id =
    request.madeBy === undefined
      ? `col_${world.randomBytes(12).toString('hex')}`
      : makePaidCollectionId(request.madeBy, number)
  const definition: CollectionDefinition = {
    id,
    number,
    name: request.name,
    namespace: request.namespace ?? `${application.app_id}_${request.name}`,
    primary_column: request.primary_column ?? (isBlob ? blobKey : 'id'),
    sort_column: request.sort_column ?? null,
    collection_type: request.collection_type ?? 'document',
    access_policy: request.access_policy ?? null,
    schema_definition: request.schema_definition ?? null,
    ...(catalog.encryption.private_app && { encrypted: true }),
    ...(request.makeApi && { api: request.makeApi(id) }),
    created_at: now,
    updated_at: now,
  }
  return addTokenFields(definition, 0)
}

/** 409 where there can be no new collection of this name, or no more beside those that are being made. */
export function refuseNewCollection(
  { data: { catalog } }: Pick<Tenant, 'data'>,
  name: string,
  made: number,
): void {
  if (catalog.byName.has(name)) {
    throw new Fault('COLLECTION_EXISTS', { message: `There is a collection ${name} already` })
  }
  if (catalog.viewsByName.has(name)) {
    throw new Fault('VIEW_EXISTS', {
      message: `There is a view ${name} already; nobody writes to a view`,
    })
  }
  if (catalog.collections.size + made >= limits.collectionsPerApplicationMax) {
    throw new Fault('CONFLICT', {
      message: `An application has at most ${limits.collectionsPerApplicationMax} collections`,
    })
  }
}

/** A collection as a first write makes it. */
type MissingCollection = Pick<CollectionRequest, 'name' | 'madeBy' | 'collection_type'>

/** Returns the collection of this name, created with defaults if it does not exist. */
export async function ensureCollection(
  world: World,
  tenant: Tenant,
  request: MissingCollection,
): Promise<Collection> {
  const found = tenant.data.catalog.byName.get(request.name)
  return found ?? tenant.definitions.run(() => ensureCollectionLocked(world, tenant, request))
}

/**
 * The same for a caller that holds the mutex of definitions. It is found by the next try, so that a request is noted as
 * done by what it writes alone.
 */
async function ensureCollectionLocked(
  world: World,
  tenant: Tenant,
  request: MissingCollection,
): Promise<Collection> {
  return (
    tenant.data.catalog.byName.get(request.name) ??
    runWithoutCommitNote(() => createCollectionLocked(world, tenant, request))
  )
}

/**
 * Builds indexes for the fields that the schema marks `index` or `unique` and that have none; the primary column
 * has one, and fields of an encrypted collection have tokens instead. `firstNumber` is the first free number of the
 * application's definitions.
 */
export function buildSchemaIndexes(
  world: World,
  collection: CollectionDefinition & { readonly indexes?: readonly IndexDefinition[] },
  firstNumber: number,
): Definition[] {
  if (collection.encrypted === true) return []
  const definition = collection.schema_definition
  const fields = isRecord(definition) && isRecord(definition.fields) ? definition.fields : {}
  const wanted = Object.entries(fields).filter(
    ([name, field]) =>
      isRecord(field) &&
      (field.index === true || field.unique === true) &&
      name !== collection.primary_column &&
      !collection.indexes?.some((index) => isPlain(index) && index.fields.join() === name),
  )
  const before = collection.indexes ?? []
  if (before.length + wanted.length > limits.indexesPerCollectionMax)
    throw new Fault('CONFLICT', {
      message: `A collection has at most ${limits.indexesPerCollectionMax} indexes`,
    })
  const made = [...before]
  return wanted.map(([name, field], at) => {
    const index: IndexDefinition = {
      id: `idx_${world.randomBytes(12).toString('hex')}`,
      number: firstNumber + at,
      name: makeIndexName(collection, [name], made),
      collection: collection.id,
      fields: [name],
      index_type: isRecord(field) && typeof field.type === 'string' ? field.type : 'btree',
      unique: isRecord(field) && field.unique === true,
      created_at: collection.updated_at,
    }
    made.push(index)
    return { kind: 'index', id: index.id, body: index }
  })
}
