import { limits } from '@tollbase/contract/limits'
import { present } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type {
  CollectionDefinition,
  CollectionState,
  IndexDefinition,
} from '../../model/definitions.ts'
import { idMadeBy } from '../../model/made-by-payment.ts'
import { defaultIndexName } from '../../model/make-index-name.ts'
import { isPlain } from '../../projections/index-ddl.ts'
import { define } from '../applications/define.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Service } from '../call.ts'

export type CollectionWish = Partial<
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
}

/** Creates a collection; the caller holds the gate of definitions. */
export async function createInGate(
  service: Service,
  tenant: Tenant,
  wish: CollectionWish,
): Promise<CollectionState> {
  const { catalog } = tenant.data
  if (catalog.byName.has(wish.name)) {
    throw new Fault('COLLECTION_EXISTS', { message: `There is a collection ${wish.name} already` })
  }
  if (catalog.viewsByName.has(wish.name)) {
    throw new Fault('VIEW_EXISTS', {
      message: `There is a view ${wish.name} already; nobody writes to a view`,
    })
  }
  if (catalog.collections.size >= limits.collectionsPerApplicationMax) {
    throw new Fault('CONFLICT', {
      message: `An application has at most ${limits.collectionsPerApplicationMax} collections`,
    })
  }
  const now = new Date(service.world.now()).toISOString()
  const { nextNumber: number } = catalog
  const collection: CollectionDefinition = {
    id:
      wish.madeBy === undefined
        ? `col_${service.world.randomBytes(12).toString('hex')}`
        : idMadeBy(wish.madeBy, number),
    number,
    name: wish.name,
    namespace: wish.namespace ?? `${tenant.application.app_id}_${wish.name}`,
    primary_column: wish.primary_column ?? 'id',
    sort_column: wish.sort_column ?? null,
    collection_type: wish.collection_type ?? 'document',
    access_policy: wish.access_policy ?? null,
    schema_definition: wish.schema_definition ?? null,
    created_at: now,
    updated_at: now,
  }
  await define(tenant, [
    { kind: 'collection', id: collection.id, body: collection },
    ...indexesOfSchema(service, collection, number + 1),
  ])
  return present(tenant.data.catalog.byId.get(collection.id), 'the new collection')
}

/** The collection of this name, made with defaults if it is not there yet. */
export async function collectionForWriting(
  service: Service,
  tenant: Tenant,
  wish: Pick<CollectionWish, 'name' | 'madeBy'>,
): Promise<CollectionState> {
  const found = tenant.data.catalog.byName.get(wish.name)
  return found ?? tenant.definitions.run(() => collectionInGate(service, tenant, wish))
}

/** The same for a caller who holds the gate of definitions. */
export async function collectionInGate(
  service: Service,
  tenant: Tenant,
  wish: Pick<CollectionWish, 'name' | 'madeBy'>,
): Promise<CollectionState> {
  return tenant.data.catalog.byName.get(wish.name) ?? createInGate(service, tenant, wish)
}

/**
 * Fields that the schema marks `index` or `unique` get an index unless they have one, as the primary column has.
 * `firstNumber` is the first that no definition of the application has.
 */
export function indexesOfSchema(
  service: Service,
  collection: CollectionDefinition & { readonly indexes?: readonly IndexDefinition[] },
  firstNumber: number,
): Definition[] {
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
      id: `idx_${service.world.randomBytes(12).toString('hex')}`,
      number: firstNumber + at,
      name: defaultIndexName(collection, [name], made),
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
