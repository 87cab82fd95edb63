import { isDeepStrictEqual } from 'node:util'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { buildCatalog } from '../../model/catalog.ts'
import { noStats } from '../../model/collection-stats.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { CollectionDefinition, PriceRule, PricingDefinition } from '../../model/definitions.ts'
import type { Readable } from '../../model/readable.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import { refuseFreed } from '../../services/pricing/freed-targets.ts'
import type { IndexRequest } from './index-request.ts'

type PriceChange =
  | { readonly kind: 'collection'; readonly id: string; readonly body: CollectionDefinition }
  | { readonly kind: 'pricing'; readonly id: string; readonly body: PricingDefinition }

/** Builds what the prices change that come with an index; nothing where they are in force already. */
export function buildPriceChanges(
  tenant: Tenant,
  collection: Readable,
  wanted: IndexRequest,
): (PriceChange & Definition)[] {
  return [
    ...buildReadPriceChange(tenant, collection, wanted),
    ...buildRecordPriceChange(tenant, collection, wanted),
  ]
}

/** Refuses a price of nothing for what strangers pay for today: who wants that confirms it with the other prices. */
export function refuseGivenAway(
  call: Pick<Call<'tenants' | 'queryPlans'>, 'service' | 'requestInfo'>,
  tenant: Tenant,
  changes: readonly PriceChange[],
): Promise<void> {
  const { catalog } = tenant.data
  const collections = new Map(catalog.collections)
  for (const change of changes)
    if (change.kind === 'collection') collections.set(change.id, change.body)
  return refuseFreed(call, tenant, { after: buildCatalog({ ...catalog, collections }) })
}

/** The time in which a collection counts as new, in milliseconds. */
const newMs = 10 * 60_000

/**
 * Returns true for a collection that was made just now, and has no policy, no price and no record. Public clients make a
 * collection by the index of its first field, and its prices come with those of other fields.
 */
export async function isNewAndBare(
  service: Uses<'world' | 'database'>,
  tenant: Tenant,
  { id, name }: Readable,
): Promise<boolean> {
  const { collections, indexes, pricing } = tenant.data.catalog
  const { created_at: madeAt = 0, access_policy: policy = null } = collections.get(id) ?? {}
  const isNew = service.world.now() < new Date(madeAt).getTime() + newMs
  const isPriced =
    pricing.rules.some(({ target }) => target.collection === name) ||
    [...indexes.values()].some(({ collection, price }) => collection === id && price !== undefined)
  if (!isNew || policy !== null || isPriced) return false
  const stats = await readCurrentStats(service, tenant)
  return (stats.get(id) ?? noStats).versions === 0
}

/** A read price that comes with an index is the collection's price. */
function buildReadPriceChange(
  tenant: Tenant,
  collection: Readable,
  { readPrice }: IndexRequest,
): PriceChange[] {
  if (readPrice === undefined) return []
  const { policy, access_policy: sent } = collection
  if (policy.unknownShape)
    throw new Fault('CONFLICT', {
      message:
        'The collection has an access_policy that is not understood; set it before its price',
    })
  const before = isRecord(sent) ? sent : policy.read === undefined ? {} : { read: policy.read }
  const priceBefore = isRecord(before.price) ? before.price : {}
  const isInForce = Object.entries(readPrice).every(
    ([name, amount]) => String(priceBefore[name]) === amount,
  )
  if (isInForce) return []
  const price = { ...priceBefore, ...readPrice }
  const definition = requirePresent(
    tenant.data.catalog.collections.get(collection.id),
    'the collection',
  )
  const body = { ...definition, access_policy: { ...before, price } }
  return [{ kind: 'collection', id: collection.id, body }]
}

/** A price per record that comes with an index is a rule of the application. */
function buildRecordPriceChange(
  tenant: Tenant,
  { name }: Readable,
  { recordPrice: amount }: IndexRequest,
): PriceChange[] {
  if (amount === undefined) return []
  const rule: PriceRule = {
    target: { collection: name },
    operation: 'write',
    model: 'per_record',
    amount,
  }
  const isOld = ({ target, operation, model }: PriceRule) =>
    target.collection === name &&
    operation === 'write' &&
    (model === 'per_record' || model === 'per_row')
  const { pricing } = tenant.data.catalog
  const [old, ...others] = pricing.rules.filter(isOld)
  if (others.length === 0 && isDeepStrictEqual(old, rule)) return []
  // The targets for which passes were sold stay noted: their buyers have paid.
  const rules = [...pricing.rules.filter((one) => !isOld(one)), rule]
  return [{ kind: 'pricing', id: 'pricing', body: { ...pricing, rules } }]
}
