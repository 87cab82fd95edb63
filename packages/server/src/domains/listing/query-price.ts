import type { Catalog } from '../tenancy/catalog.ts'
import { free, type Price } from '../tenancy/policy.ts'
import { derivePriceOf, isFree, readPriceOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import type { JudgedSource } from './sources.ts'

/** A source with what the answer costs on its account; undefined where it cannot be bought. */
export type PricedSource = { readonly source: JudgedSource; readonly price: Price | undefined }

/** What has a price for the caller: a collection counts once as rows, and once as derived from, however often it is used. */
export function chargedSources(sources: readonly JudgedSource[]): readonly JudgedSource[] {
  const charged = new Map<string, JudgedSource>()
  for (const source of sources) {
    const price = priceOf(source, source.tenant.data.catalog)
    if (source.free || (price !== undefined && isFree(price))) continue
    const { kind, tenant, collection } = source
    charged.set(`${kind} ${tenant.application.app_id} ${collection.id}`, source)
  }
  return [...charged.values()]
}

/** The prices under the seller's catalog; other applications' are those of now. */
export function pricesUnder(
  sources: readonly JudgedSource[],
  { seller, catalog }: { readonly seller: Tenant; readonly catalog: Catalog },
): readonly PricedSource[] {
  return sources.map((source) => ({
    source,
    price: priceOf(source, isOf(source, seller) ? catalog : source.tenant.data.catalog),
  }))
}

export function isOf({ tenant }: JudgedSource, seller: Tenant): boolean {
  return tenant.application.app_id === seller.application.app_id
}

/** Rows cost by access, row and KB as they are listed; what is derived costs by access alone. */
function priceOf({ kind, collection }: JudgedSource, catalog: Catalog): Price | undefined {
  const then = catalog.byId.get(collection.id) ?? collection
  if (kind === 'rows') return readPriceOf(catalog, then)
  const perAccess = derivePriceOf(catalog, then)
  return perAccess === undefined ? undefined : { ...free, perAccess }
}
