import { type Catalog, readableOfId } from '../tenancy/catalog.ts'
import { grantedPriceOf } from '../tenancy/grants.ts'
import { free, type Price } from '../tenancy/policy.ts'
import { derivePriceOf, isFree, readPriceOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import type { JudgedSource } from './sources.ts'

/** What asks for money in an answer: a source, or what its owner has priced by itself. */
export type Charge = Pick<JudgedSource, 'kind' | 'tenant'> & {
  /** `app::name`. */
  readonly name: string
  readonly emptyAnswerFree: boolean
  /** By the catalog of its application; undefined where it cannot be bought. */
  readonly priceUnder: (catalog: Catalog) => Price | undefined
}

/** A charge with what the answer costs on its account. */
export type PricedSource = { readonly source: Charge; readonly price: Price | undefined }

/** What has a price for the caller: a collection counts once as rows, and once as derived from, however often it is used. */
export function chargedSources(sources: readonly JudgedSource[]): readonly Charge[] {
  const charged = new Map<string, Charge>()
  for (const source of sources) {
    const price = priceOf(source, source.tenant.data.catalog)
    if (source.free || (price !== undefined && isFree(price))) continue
    const { kind, tenant, collection, grantee = '' } = source
    charged.set(`${kind} ${grantee} ${tenant.application.app_id} ${collection.id}`, {
      kind,
      tenant,
      // Who reads a view need not know what is behind it, which may be private.
      name: grantee === '' ? `${tenant.application.app_id}::${collection.name}` : grantee,
      emptyAnswerFree: collection.policy.emptyAnswerFree,
      priceUnder: (catalog) => priceOf(source, catalog),
    })
  }
  return [...charged.values()]
}

/** The prices under the seller's catalog; other applications' are those of now. */
export function pricesUnder(
  sources: readonly Charge[],
  { seller, catalog }: { readonly seller: Tenant; readonly catalog: Catalog },
): readonly PricedSource[] {
  return sources.map((source) => ({
    source,
    price: source.priceUnder(isOf(source, seller) ? catalog : source.tenant.data.catalog),
  }))
}

export function isOf({ tenant }: Pick<Charge, 'tenant'>, seller: Tenant): boolean {
  return tenant.application.app_id === seller.application.app_id
}

/** Rows cost by access, row and KB as they are listed; what is derived costs by access alone. */
function priceOf({ kind, collection, grantee }: JudgedSource, catalog: Catalog): Price | undefined {
  const then = readableOfId(catalog, collection.id) ?? collection
  if (kind === 'rows') return readPriceOf(catalog, then)
  const perAccess =
    grantee === undefined ? derivePriceOf(catalog, then) : grantedPriceOf(catalog, then, grantee)
  return perAccess === undefined ? undefined : { ...free, perAccess }
}
