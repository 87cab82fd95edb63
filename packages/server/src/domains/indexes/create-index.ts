import { limits } from '@tollbase/contract/limits'
import { Name } from '@tollbase/contract/schemas'
import { Compile } from 'typebox/compile'
import { present } from '../../base/assert.ts'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Service } from '../call.ts'
import { indexView } from '../collections/collection-view.ts'
import { createInGate } from '../collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { findCollection } from '../tenancy/catalog.ts'
import { type Definition, define } from '../tenancy/define.ts'
import type { CollectionState, IndexDefinition } from '../tenancy/definitions.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { type IndexWish, readIndexWish } from './index-wish.ts'

const collectionName = Compile(Name)

export const createIndex: Operation<'createIndex'> = async ({ service }, { params, body }) => {
  const sent: Readonly<Record<string, unknown>> = { ...body }
  const name = sent.collection ?? sent.collection_name
  if (typeof name !== 'string') throw invalid('/collection', 'must be the name of a collection')
  return createIndexOn(service, { app: params.app, collection: name, wish: readIndexWish(sent) })
}

/** Creates an index, or changes the one on the same fields; makes the collection if it is missing. */
export async function createIndexOn(
  service: Service,
  request: { app: string; collection: string; wish: IndexWish },
) {
  const { wish } = request
  const tenant = await service.tenancy.tenant(request.app)
  return tenant.definitions.run(async () => {
    const collection =
      findCollection(tenant.data.catalog, request.collection) ??
      (await createInGate(service, tenant, { name: newName(request.collection) }))
    const same = collection.indexes.find((one) => one.fields.join() === wish.fields.join())
    if (same === undefined && collection.indexes.length >= limits.indexesPerCollectionMax) {
      throw new Fault('CONFLICT', {
        message: `A collection has at most ${limits.indexesPerCollectionMax} indexes`,
      })
    }
    if (collection.indexes.some((one) => one !== same && one.name === wish.name)) {
      throw new Fault('CONFLICT', {
        message: `An index ${wish.name} on other fields already exists in ${collection.name}`,
      })
    }
    const index = indexOf(service, { tenant, collection, wish, same })
    const isNew =
      same === undefined ||
      same.unique !== index.unique ||
      same.index_type !== index.index_type ||
      same.name !== index.name
    const changes = [
      ...(isNew ? [{ kind: 'index', id: index.id, body: index } satisfies Definition] : []),
      ...priceChange(tenant, collection, wish),
    ]
    if (changes.length > 0) await define(tenant, changes)
    return {
      ...indexView(collection, index),
      updated: same !== undefined,
      ...(wish.warning !== undefined && { _warning: wish.warning }),
    }
  })
}

/** The name for a collection that is made on the way. */
function newName(name: string): string {
  if (!collectionName.Check(name)) throw invalid('/collection', 'must be the name of a collection')
  return name
}

function indexOf(
  service: Service,
  made: {
    tenant: Tenant
    collection: CollectionState
    wish: IndexWish
    same: IndexDefinition | undefined
  },
): IndexDefinition {
  const { tenant, collection, wish, same } = made
  return {
    id: same?.id ?? `idx_${service.world.randomBytes(12).toString('hex')}`,
    number: tenant.data.catalog.nextNumber,
    name: wish.name ?? same?.name ?? `${collection.name}_${wish.fields.join('_')}_idx`,
    collection: collection.id,
    fields: wish.fields,
    index_type: wish.indexType,
    unique: wish.unique,
    created_at: same?.created_at ?? new Date(service.world.now()).toISOString(),
  }
}

/** A read price that comes with an index is the collection's price. */
function priceChange(tenant: Tenant, collection: CollectionState, wish: IndexWish): Definition[] {
  if (wish.readPrice === undefined) return []
  const { policy, access_policy: sent } = collection
  if (policy.unknownShape)
    throw new Fault('CONFLICT', {
      message:
        'The collection has an access_policy that is not understood; set it before its price',
    })
  const before = isRecord(sent) ? sent : { read: policy.read }
  const price = { ...(isRecord(before.price) ? before.price : {}), ...wish.readPrice }
  const definition = present(tenant.data.catalog.collections.get(collection.id), 'the collection')
  return [
    {
      kind: 'collection',
      id: collection.id,
      body: { ...definition, access_policy: { ...before, price } },
    },
  ]
}
