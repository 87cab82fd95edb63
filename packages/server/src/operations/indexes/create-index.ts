import { isDeepStrictEqual } from 'node:util'
import { limits } from '@tollbase/contract/limits'
import { Name } from '@tollbase/contract/schemas'
import { Compile } from 'typebox/compile'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { ensureExtension } from '../../database/extensions.ts'
import { findReadable } from '../../model/catalog.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { IndexDefinition } from '../../model/definitions.ts'
import { findExtension, getServedBy } from '../../model/index-kinds.ts'
import { makeIndexName } from '../../model/make-index-name.ts'
import type { Readable } from '../../model/readable.ts'
import { requirePermission } from '../../services/access/access.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { createCollectionLocked } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { describeWholeIndex } from './describe-index.ts'
import { buildPriceChanges, isNewAndBare, refuseGivenAway } from './index-prices.ts'
import { type IndexRequest, parseIndexRequest } from './index-request.ts'

const collectionName = Compile(Name)

export const createIndex: Operation<'createIndex', Parts> = async (call, { params, body }) => {
  const sent: Readonly<Record<string, unknown>> = { ...body }
  const name = sent.collection ?? sent.collection_name
  if (typeof name !== 'string')
    throw makeInvalidFault('/collection', 'must be the name of a collection')
  return createIndexOn(call, {
    app: params.app,
    collection: name,
    wish: parseIndexRequest(sent),
  })
}

type Parts = 'world' | 'database' | 'tenants' | 'payments' | 'indexBuilder' | 'queryPlans'

/** Creates an index, or changes the one that serves the same; makes the collection if it is missing. */
export async function createIndexOn(
  call: Call<Parts>,
  request: { app: string; collection: string; wish: IndexRequest },
) {
  const { service } = call
  const { wish: wanted } = request
  const tenant = await service.tenants.load(request.app)
  const extension = findExtension(wanted.indexType)
  if (extension !== undefined) await ensureExtension(service.database, extension)
  return tenant.definitions.run(async () => {
    const known = findReadable(tenant.data.catalog, request.collection)
    const collection =
      known ??
      (await createCollectionLocked(service.world, tenant, {
        name: checkNewName(request.collection),
      }))
    if (collection.kind === 'view') refuseForView(wanted)
    const same = collection.indexes.find((one) => servesSame(one, wanted))
    if (same === undefined && collection.indexes.length >= limits.indexesPerCollectionMax) {
      throw new Fault('CONFLICT', {
        message: `A collection has at most ${limits.indexesPerCollectionMax} indexes`,
      })
    }
    const others = collection.indexes.filter((one) => one !== same)
    if (others.some(({ name }) => name === wanted.name)) {
      throw new Fault('CONFLICT', {
        message: `Another index of ${collection.name} has the name ${wanted.name} already`,
      })
    }
    const index = buildIndex(service.world, { tenant, collection, wish: wanted, same, others })
    const prices = buildPriceChanges(tenant, collection, wanted)
    const isPriced = prices.length > 0 || !isDeepStrictEqual(same?.price, index.price)
    if (known !== undefined && isPriced) {
      await refusePricing(call, tenant, known)
      await refuseGivenAway(call, tenant, prices)
    }
    const changes = [
      ...(same === undefined || serializeIndex(same) !== serializeIndex(index)
        ? [{ kind: 'index', id: index.id, body: index } satisfies Definition]
        : []),
      ...prices,
    ]
    if (changes.length > 0) await define(tenant, changes)
    const now = tenant.data.catalog.indexes.get(index.id) ?? index
    const warnings = [...wanted.warnings, ...warnOfKeptPrice(same, wanted)]
    return {
      ...describeWholeIndex({ service, tables: tenant }, collection, now),
      updated: same !== undefined,
      ...(warnings.length > 0 && { _warning: warnings.join('; ') }),
    }
  })
}

/** Whoever may write may give prices to what it makes; of what is there for longer, or holds something, that is for Admin. */
async function refusePricing(
  { service, caller }: Pick<Call<Parts>, 'service' | 'caller'>,
  tenant: Tenant,
  known: Readable,
): Promise<void> {
  const { tenants } = service
  try {
    requirePermission(caller, 'Admin', { appId: tenant.application.app_id, tenants })
  } catch (error) {
    if (!(await isNewAndBare(service, tenant, known))) throw error
  }
}

/** Refuses options that are not for the index of a view, whose rows nobody writes. */
function refuseForView({ unique, fieldPrice, recordPrice, readPrice }: IndexRequest): void {
  if (unique) throw makeInvalidFault('/unique', 'is not for views: their rows follow from others')
  if (fieldPrice !== undefined || recordPrice !== undefined || readPrice !== undefined)
    throw makeInvalidFault(
      '/price_config',
      'is not for views; the price of a view is set with PUT .../pricing',
    )
}

/** Checks the name of a collection that is about to be created. */
function checkNewName(name: string): string {
  if (!collectionName.Check(name))
    throw makeInvalidFault('/collection', 'must be the name of a collection')
  return name
}

/** A field has at most one index of each served thing over the same records. */
function servesSame(one: IndexDefinition, wanted: IndexRequest): boolean {
  return (
    one.fields.join() === wanted.fields.join() &&
    getServedBy(one.index_type) === getServedBy(wanted.indexType) &&
    JSON.stringify(one.where) === JSON.stringify(wanted.where)
  )
}

function buildIndex(
  world: World,
  made: {
    tenant: Tenant
    collection: Readable
    wish: IndexRequest
    same: IndexDefinition | undefined
    others: readonly IndexDefinition[]
  },
): IndexDefinition {
  const { tenant, collection, wish: wanted, same } = made
  const price = wanted.fieldPrice ?? same?.price
  return {
    id: same?.id ?? `idx_${world.randomBytes(12).toString('hex')}`,
    number: tenant.data.catalog.nextNumber,
    name: wanted.name ?? same?.name ?? makeIndexName(collection, wanted.fields, made.others),
    collection: collection.id,
    fields: wanted.fields,
    index_type: price === undefined ? wanted.indexType : 'price',
    unique: wanted.unique,
    ...(wanted.where !== undefined && { where: wanted.where }),
    ...(wanted.sparse && { sparse: true }),
    ...(price !== undefined && { price }),
    ...(wanted.vectors !== undefined && {
      dimensions: wanted.vectors.numbers,
      measure: wanted.vectors.measure,
    }),
    created_at: same?.created_at ?? new Date(world.now()).toISOString(),
  }
}

/** Serializes an index without its number, to compare definitions. */
function serializeIndex(index: IndexDefinition): string {
  return JSON.stringify({ ...index, number: 0 })
}

/** Clients that index every field must not remove its price unawares. */
function warnOfKeptPrice(same: IndexDefinition | undefined, wanted: IndexRequest): string[] {
  if (same?.price === undefined || wanted.fieldPrice !== undefined) return []
  return ['the index keeps its price; delete it to end that']
}
