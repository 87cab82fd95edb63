import type { CollectionState, IndexDefinition } from '../../model/definitions.ts'
import { indexView } from '../../model/describe-collection.ts'
import { indexNameOf } from '../../projections/index-ddl.ts'
import type { Tables, Tenant } from '../../services/applications/tenancy.ts'
import type { Call, Service } from '../../services/call.ts'
import { type IndexUse, indexUse } from '../../services/indexes/index-store.ts'
import { isCountKnown } from '../../services/reading/view-sources.ts'

export type IndexState = 'building' | 'active' | 'failed'

/** Whether an index serves reads. One that is being rebuilt does, and is building nevertheless. */
export function stateOf(service: Service, tables: Tables, index: IndexDefinition): IndexState {
  if (service.indexes.isRebuilding(tables.schema, index)) return 'building'
  if (tables.data.isBuilt(index)) return 'active'
  return service.indexes.trouble(tables.schema, index)?.isFinal === true ? 'failed' : 'building'
}

/** An index with all that was said of it, and its state. */
export function wholeIndexView(
  { service, tables }: { service: Service; tables: Tables },
  collection: CollectionState,
  index: IndexDefinition,
) {
  return {
    ...indexView(collection, index),
    sparse: index.sparse === true,
    ...(index.where !== undefined && { where: index.where }),
    ...(index.price !== undefined && {
      price_config: priceView(index.price, service.payments.ports.split),
    }),
    status: stateOf(service, tables, index),
  }
}

/** The indexes of collections; with what each has served where that is asked for. */
export async function indexList(
  from: { call: Call; tenant: Tenant; withStatistics: boolean },
  collections: readonly CollectionState[],
) {
  const { call, tenant } = from
  const { service } = call
  const use = from.withStatistics
    ? await indexUse(service.database, { schema: tenant.schema })
    : undefined
  const lists = collections.map(async (collection) => {
    const known = use && (await knownUse(call, tenant, { collection, use }))
    return collection.indexes.map((index) => ({
      ...wholeIndexView({ service, tables: tenant }, collection, index),
      ...(known && { statistics: statisticsView(known.get(indexNameOf(index))) }),
    }))
  })
  return (await Promise.all(lists)).flat()
}

/** What indexes have served, as far as the caller may know: the size of one tells how many rows there are. */
export async function knownUse(
  call: Call,
  tenant: Tenant,
  {
    collection: { view },
    use,
  }: { collection: CollectionState; use: ReadonlyMap<string, IndexUse> },
): Promise<ReadonlyMap<string, IndexUse>> {
  const isKnown = view === undefined || (await isCountKnown(call, tenant, view))
  return isKnown ? use : new Map()
}

export function statisticsView(use: IndexUse | undefined) {
  return {
    size: Number(use?.bytes ?? 0),
    usage_count: Number(use?.scans ?? 0),
    tuples_read: Number(use?.tuplesRead ?? 0),
    ...(typeof use?.lastUsedMs === 'bigint' && {
      last_used: new Date(Number(use.lastUsedMs)).toISOString(),
    }),
  }
}

function priceView(
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
