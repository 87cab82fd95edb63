import { Fault } from '../../base/fault.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { CollectionState, StoredQuery } from '../../model/definitions.ts'
import { derivePriceOf, isFree, readPriceOf } from '../../model/price.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { queryPriceOf } from '../../services/queries/query-price.ts'
import { isPublic } from '../../services/queries/stored-queries.ts'

export type Target =
  | { readonly collection: string }
  | { readonly view: string }
  | { readonly query: string }
  | { readonly api_collection: string }

/**
 * What strangers pay for today, or cannot have for money, and would read for nothing under the other catalog:
 * collections, views (which cost what their sources do where they have no price of their own), what other applications
 * were granted for their views, and predefined queries, likewise.
 */
export async function findFreed(
  service: Pick<Service, 'tenancy' | 'predefined'>,
  tenant: Tenant,
  after: Catalog,
): Promise<readonly Target[]> {
  const before = tenant.data.catalog
  const freedNames = (lookup: 'byName' | 'viewsByName') =>
    [...after[lookup]].flatMap(([name, now]) => {
      const old = before[lookup].get(name)
      const wasSold = old !== undefined && isOpen(before, old) && !isFree(readPriceOf(before, old))
      const isFreed = wasSold && isOpen(after, now) && isFree(readPriceOf(after, now))
      return isFreed || (old !== undefined && isFreedByGrant(old, now)) ? [name] : []
    })
  const isFreedByGrant = (old: CollectionState, now: CollectionState) =>
    isGranted(after, now) && derivePriceOf(after, now) === 0n && derivePriceOf(before, old) !== 0n
  return [
    ...freedNames('byName').map((collection) => ({ collection })),
    ...freedNames('viewsByName').map((view) => ({ view })),
    ...(await freedQueries(service, tenant, after)).map((query) => ({ query })),
  ]
}

/** Whether another application shows it in its views, be it open to strangers or not, at the price of deriving from it. */
function isGranted({ grants }: Catalog, { id }: CollectionState): boolean {
  return [...grants.values()].some(({ source, per_access }) => source === id && per_access === null)
}

async function freedQueries(
  { tenancy, predefined }: Pick<Service, 'tenancy' | 'predefined'>,
  tenant: Tenant,
  after: Catalog,
): Promise<readonly string[]> {
  const before = tenant.data.catalog
  const isFreed = async (stored: StoredQuery) => {
    const plan = await predefined.plans.planOf(tenancy, tenant, stored).catch(undefinedWhereBroken)
    if (plan === undefined) return false
    const [was, is] = [before, after].map((one) => queryPriceOf(one, stored, plan.own)?.price)
    // What was not to be had for money either is given away all the more.
    return (was === undefined || !isFree(was)) && is !== undefined && isFree(is)
  }
  const freed: string[] = []
  for (const [name, versions] of after.queries) {
    const newest = versions.at(-1)
    if (newest === undefined) continue
    // Whoever names an older version is asked for its price.
    for (const stored of versions) {
      if (!isPublic(after, { stored, newest }) || !(await isFreed(stored))) continue
      freed.push(name)
      break
    }
  }
  return freed
}

/** A query whose source is gone answers nobody. */
function undefinedWhereBroken(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error
}
