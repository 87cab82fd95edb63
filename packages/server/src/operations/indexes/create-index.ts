import { limits } from '@tollbase/contract/limits'
import { Name } from '@tollbase/contract/schemas'
import { Compile } from 'typebox/compile'
import { present } from '../../base/assert.ts'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { findReadable } from '../../model/catalog.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { CollectionState, IndexDefinition } from '../../model/definitions.ts'
import { defaultIndexName } from '../../model/make-index-name.ts'
import { isFullText } from '../../projections/index-ddl.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { createInGate } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { wholeIndexView } from './describe-index.ts'
import { type IndexWish, readIndexWish } from './index-request.ts'

const collectionName = Compile(Name)

export const createIndex: Operation<'createIndex'> = async ({ service }, { params, body }) => {
  const sent: Readonly<Record<string, unknown>> = { ...body }
  const name = sent.collection ?? sent.collection_name
  if (typeof name !== 'string') throw invalid('/collection', 'must be the name of a collection')
  return createIndexOn(service, { app: params.app, collection: name, wish: readIndexWish(sent) })
}

/** Creates an index, or changes the one that serves the same; makes the collection if it is missing. */
export async function createIndexOn(
  service: Service,
  request: { app: string; collection: string; wish: IndexWish },
) {
  const { wish } = request
  const tenant = await service.tenancy.tenant(request.app)
  return tenant.definitions.run(async () => {
    const collection =
      findReadable(tenant.data.catalog, request.collection) ??
      (await createInGate(service, tenant, { name: newName(request.collection) }))
    if (collection.view !== undefined) refuseOfView(wish)
    const same = collection.indexes.find((one) => servesSame(one, wish))
    if (same === undefined && collection.indexes.length >= limits.indexesPerCollectionMax) {
      throw new Fault('CONFLICT', {
        message: `A collection has at most ${limits.indexesPerCollectionMax} indexes`,
      })
    }
    const others = collection.indexes.filter((one) => one !== same)
    if (others.some(({ name }) => name === wish.name)) {
      throw new Fault('CONFLICT', {
        message: `Another index of ${collection.name} has the name ${wish.name} already`,
      })
    }
    const index = indexOf(service, { tenant, collection, wish, same, others })
    const changes = [
      ...(same === undefined || textOf(same) !== textOf(index)
        ? [{ kind: 'index', id: index.id, body: index } satisfies Definition]
        : []),
      ...readPriceChange(tenant, collection, wish),
      ...recordPriceChange(tenant, collection, wish),
    ]
    if (changes.length > 0) await define(tenant, changes)
    const now = tenant.data.catalog.indexes.get(index.id) ?? index
    const warnings = [...wish.warnings, ...keptPrice(same, wish)]
    return {
      ...wholeIndexView({ service, tables: tenant }, collection, now),
      updated: same !== undefined,
      ...(warnings.length > 0 && { _warning: warnings.join('; ') }),
    }
  })
}

/** A view's rows are what its definition says, and nobody writes them. */
function refuseOfView({ unique, fieldPrice, recordPrice, readPrice }: IndexWish): void {
  if (unique) throw invalid('/unique', 'is not for views: their rows follow from others')
  if (fieldPrice !== undefined || recordPrice !== undefined || readPrice !== undefined)
    throw invalid(
      '/price_config',
      'is not for views; the price of a view is set with PUT .../pricing',
    )
}

/** The name for a collection that is made on the way. */
function newName(name: string): string {
  if (!collectionName.Check(name)) throw invalid('/collection', 'must be the name of a collection')
  return name
}

/** One field has one index of the same records by value, and one of its words. */
function servesSame(one: IndexDefinition, wish: IndexWish): boolean {
  return (
    one.fields.join() === wish.fields.join() &&
    isFullText(one.index_type) === isFullText(wish.indexType) &&
    JSON.stringify(one.where) === JSON.stringify(wish.where)
  )
}

function indexOf(
  service: Service,
  made: {
    tenant: Tenant
    collection: CollectionState
    wish: IndexWish
    same: IndexDefinition | undefined
    others: readonly IndexDefinition[]
  },
): IndexDefinition {
  const { tenant, collection, wish, same } = made
  const price = wish.fieldPrice ?? same?.price
  return {
    id: same?.id ?? `idx_${service.world.randomBytes(12).toString('hex')}`,
    number: tenant.data.catalog.nextNumber,
    name: wish.name ?? same?.name ?? defaultIndexName(collection, wish.fields, made.others),
    collection: collection.id,
    fields: wish.fields,
    index_type: price === undefined ? wish.indexType : 'price',
    unique: wish.unique,
    ...(wish.where !== undefined && { where: wish.where }),
    ...(wish.sparse && { sparse: true }),
    ...(price !== undefined && { price }),
    created_at: same?.created_at ?? new Date(service.world.now()).toISOString(),
  }
}

/** All that an index says but its place in the database. */
function textOf(index: IndexDefinition): string {
  return JSON.stringify({ ...index, number: 0 })
}

/** Clients that make an index of every field must not take its price away unawares. */
function keptPrice(same: IndexDefinition | undefined, wish: IndexWish): string[] {
  if (same?.price === undefined || wish.fieldPrice !== undefined) return []
  return ['the index keeps its price; delete it to end that']
}

/** A read price that comes with an index is the collection's price. */
function readPriceChange(
  tenant: Tenant,
  collection: CollectionState,
  wish: IndexWish,
): Definition[] {
  if (wish.readPrice === undefined) return []
  const { policy, access_policy: sent } = collection
  if (policy.unknownShape)
    throw new Fault('CONFLICT', {
      message:
        'The collection has an access_policy that is not understood; set it before its price',
    })
  const before = isRecord(sent) ? sent : policy.read === undefined ? {} : { read: policy.read }
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

/** A price per record that comes with an index is a rule of the application. */
function recordPriceChange(
  tenant: Tenant,
  { name }: CollectionState,
  { recordPrice: amount }: IndexWish,
): Definition[] {
  if (amount === undefined) return []
  const rule = { target: { collection: name }, operation: 'write', model: 'per_record', amount }
  const isOld = (one: (typeof rules)[number]) =>
    one.target.collection === name &&
    one.operation === 'write' &&
    (one.model === 'per_record' || one.model === 'per_row')
  const { rules } = tenant.data.catalog.pricing
  const body = { rules: [...rules.filter((one) => !isOld(one)), rule] }
  return [{ kind: 'pricing', id: 'pricing', body }]
}
