import type { IndexDefinition } from '../../model/definitions.ts'
import { describeIndex } from '../../model/describe-collection.ts'
import type { Readable } from '../../model/readable.ts'
import { getIndexName } from '../../projections/index-ddl.ts'
import type { Tables, Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import type { IndexBuilder } from '../../services/indexes/index-builder.ts'
import { type IndexUse, readIndexUse } from '../../services/indexes/index-store.ts'
import { isCountKnown } from '../../services/reading/view-sources.ts'

export type IndexState = 'building' | 'active' | 'failed'

/** Returns the state of an index. One that is being rebuilt is `building`, although it serves reads. */
export function getIndexState(
  indexBuilder: IndexBuilder,
  tables: Tables,
  index: IndexDefinition,
): IndexState {
  if (indexBuilder.isRebuilding(tables.schema, index)) return 'building'
  if (tables.data.isBuilt(index)) return 'active'
  return indexBuilder.findTrouble(tables.schema, index)?.isFinal === true ? 'failed' : 'building'
}

/** Describes an index in full, with its state. */
export function describeWholeIndex(
  { service, tables }: { service: Uses<'payments' | 'indexBuilder'>; tables: Tables },
  collection: Readable,
  index: IndexDefinition,
) {
  return {
    ...describeIndex(collection, index),
    sparse: index.sparse === true,
    ...(index.where !== undefined && { where: index.where }),
    ...(index.price !== undefined && {
      price_config: describeFieldPrice(index.price, service.payments.ports.split),
    }),
    status: getIndexState(service.indexBuilder, tables, index),
  }
}

/** Describes the indexes of collections, with their use where that is asked for. */
export async function describeIndexes(
  from: {
    call: Call<'database' | 'tenants' | 'payments' | 'indexBuilder'>
    tenant: Tenant
    withStatistics: boolean
  },
  collections: readonly Readable[],
) {
  const { call, tenant } = from
  const { service } = call
  const use = from.withStatistics
    ? await readIndexUse(service.database, { schema: tenant.schema })
    : undefined
  const lists = collections.map(async (collection) => {
    const known = use && (await filterKnownUse(call, tenant, { collection, use }))
    return collection.indexes.map((index) => ({
      ...describeWholeIndex({ service, tables: tenant }, collection, index),
      ...(known && { statistics: describeIndexUse(known.get(getIndexName(index))) }),
    }))
  })
  return (await Promise.all(lists)).flat()
}

/**
 * Returns the use of indexes as far as the caller may know it: the size of an index tells how many rows there are.
 */
export async function filterKnownUse(
  call: Call<'tenants'>,
  tenant: Tenant,
  { collection, use }: { collection: Readable; use: ReadonlyMap<string, IndexUse> },
): Promise<ReadonlyMap<string, IndexUse>> {
  const isKnown =
    collection.kind === 'collection' || (await isCountKnown(call, tenant, collection.view))
  return isKnown ? use : new Map()
}

export function describeIndexUse(use: IndexUse | undefined) {
  return {
    size: Number(use?.bytes ?? 0),
    usage_count: Number(use?.scans ?? 0),
    tuples_read: Number(use?.tuplesRead ?? 0),
    ...(typeof use?.lastUsedMs === 'bigint' && {
      last_used: new Date(Number(use.lastUsedMs)).toISOString(),
    }),
  }
}

function describeFieldPrice(
  price: NonNullable<IndexDefinition['price']>,
  { platformBasisPoints }: { readonly platformBasisPoints: bigint },
) {
  const platform = Math.max(price.platform_basis_points, Number(platformBasisPoints))
  return {
    app_owner_percentage: (10_000 - platform) / 10_000,
    platform_percentage: platform / 10_000,
    app_owner_address: price.owner ?? '',
  }
}
