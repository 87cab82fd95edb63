import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { PriceRule } from '../../model/definitions.ts'
import {
  findDerivePrice,
  getReadPrice,
  getTargetKind,
  isFree,
  isUnsold,
} from '../../model/find-price.ts'
import type { Price } from '../../model/policy.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Readable } from '../../model/readable.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'
import { computeQueryPrice, type OwnUse } from '../queries/query-price.ts'
import { isPublic } from '../queries/stored-queries.ts'

export type Target =
  | { readonly collection: string }
  | { readonly view: string }
  | { readonly query: string }
  | { readonly api_collection: string }

/** The call for which prices are looked at: it pays for the queries that are read for that. */
type Pricing = Pick<Call<'tenants' | 'queryPlans'>, 'service' | 'requestInfo'>

/**
 * Lists the targets that strangers pay for today, or cannot buy, and would read free of charge under the other
 * catalog: collections, views (which cost what their sources do where they have no price of their own), sources
 * that other applications were granted for their views, and predefined queries.
 */
export async function listFreed(
  call: Pricing,
  tenant: Tenant,
  after: Catalog,
): Promise<readonly Target[]> {
  const before = tenant.data.catalog
  const listFreedOf = (lookup: 'byName' | 'viewsByName') =>
    [...after[lookup]].flatMap(([name, now]) => {
      const old = before[lookup].get(name)
      const wasSold = old !== undefined && isOpen(before, old) && !isFree(getReadPrice(before, old))
      const isFreed = wasSold && isOpen(after, now) && isFree(getReadPrice(after, now))
      return isFreed || (old !== undefined && isFreedByGrant(old, now)) ? [toTarget(now)] : []
    })
  const isFreedByGrant = (old: Readable, now: Readable) =>
    isGranted(after, now) &&
    findDerivePrice(after, now) === 0n &&
    findDerivePrice(before, old) !== 0n
  return [
    ...listFreedOf('byName'),
    ...listFreedOf('viewsByName'),
    ...(await listFreedQueries(call, tenant, after)).map((query) => ({ query })),
  ]
}

/**
 * Refuses a change of the catalog by which strangers would read free of charge what they pay for today, or cannot buy,
 * unless the seller confirms that for each target.
 */
export async function refuseFreed(
  call: Pricing,
  tenant: Tenant,
  {
    after,
    confirmed = [],
  }: { readonly after: Catalog; readonly confirmed?: readonly Target[] | undefined },
): Promise<void> {
  refuseUnconfirmed(await listFreed(call, tenant, after), confirmed)
}

/** Refuses what is given away and not confirmed. */
export function refuseUnconfirmed(freed: readonly Target[], confirmed: readonly Target[]): void {
  const named = new Set(confirmed.map(formatTarget))
  const missing = freed.filter((target) => !named.has(formatTarget(target)))
  if (missing.length === 0) return
  throw new Fault('PRICE_REMOVED', {
    message: `Strangers could then read for nothing: ${missing.map(formatTarget).join(', ')}; give each of them a price, or name it in confirm_free`,
    details: { confirm_free: missing },
  })
}

function formatTarget(target: Target): string {
  return Object.entries(target).flat().join(' ')
}

/** Returns true if strangers can buy the target, and pay for it: only then is a pass for it worth anything. */
export async function isSold(
  call: Pricing,
  tenant: Tenant,
  target: PriceRule['target'],
): Promise<boolean> {
  const { catalog: after } = tenant.data
  const readable = findTargetReadable(after, target)
  if (readable !== undefined && isUnsold(after, readable)) return false
  const price = await findTargetPrice(call, { tenant, after }, target)
  return price !== undefined && !isFree(price)
}

/** Refuses quotas and passes for what strangers read for nothing, or cannot buy: they would promise what is nothing. */
export async function refuseIdleDiscounts(
  call: Pricing,
  tenant: Tenant,
  after: Catalog,
): Promise<void> {
  for (const { target, model } of after.pricing.rules) {
    if (model !== 'free_quota' && model !== 'time_pass') continue
    const price = await findTargetPrice(call, { tenant, after }, target)
    if (price !== undefined && !isFree(price)) continue
    const [name] = Object.entries(target).map((entry) => entry.join(' '))
    throw makeInvalidFault('', `has a ${model} for ${name}, which has no price: give it one too`)
  }
}

async function findTargetPrice(
  call: Pricing,
  { tenant, after }: { readonly tenant: Tenant; readonly after: Catalog },
  target: PriceRule['target'],
): Promise<Price | undefined> {
  const { query } = target
  const stored = query === undefined ? undefined : after.queries.get(query)?.at(-1)
  if (stored !== undefined) {
    const facts = await findFacts(call, tenant, stored)
    return facts && computeQueryPrice(after, stored, facts.own)?.price
  }
  const readable = findTargetReadable(after, target)
  return readable && getReadPrice(after, readable)
}

function findTargetReadable(
  { byName, viewsByName }: Catalog,
  { view = '', api_collection = '', collection = api_collection }: PriceRule['target'],
): Readable | undefined {
  return byName.get(collection) ?? viewsByName.get(view)
}

function toTarget(readable: Readable): Target {
  const { name } = readable
  switch (getTargetKind(readable)) {
    case 'collection':
      return { collection: name }
    case 'view':
      return { view: name }
    case 'api_collection':
      return { api_collection: name }
  }
}

/** Returns whether another application shows it in its views at the derive price, be it open to strangers or not. */
function isGranted({ grants }: Catalog, { id }: Readable): boolean {
  return [...grants.values()].some(({ source, per_access }) => source === id && per_access === null)
}

async function listFreedQueries(
  call: Pricing,
  tenant: Tenant,
  after: Catalog,
): Promise<readonly string[]> {
  const before = tenant.data.catalog
  const isFreed = async (stored: KeptQuery) => {
    const facts = await findFacts(call, tenant, stored)
    if (facts === undefined) return false
    const [was, is] = [before, after].map((one) => computeQueryPrice(one, stored, facts.own)?.price)
    // A query that could not be bought before counts as given away too.
    return (was === undefined || !isFree(was)) && is !== undefined && isFree(is)
  }
  const freed: string[] = []
  for (const [name, versions] of after.queries) {
    const newest = versions.at(-1)
    if (newest === undefined) continue
    // A caller that names an older version pays that version's price.
    for (const stored of versions) {
      if (!isPublic(after, { stored, newest }) || !(await isFreed(stored))) continue
      freed.push(name)
      break
    }
  }
  return freed
}

/** Returns true for a new version that states no price and is free, where strangers pay for the newest one. */
export async function isFreedVersion(
  call: Pricing,
  tenant: Tenant,
  { stored, own }: { readonly stored: KeptQuery; readonly own: readonly OwnUse[] },
): Promise<boolean> {
  const { catalog } = tenant.data
  const newest = catalog.queries.get(stored.name)?.at(-1)
  const now = computeQueryPrice(catalog, stored, own)
  const isGivenAway = now !== undefined && !now.explicit && isFree(now.price)
  if (newest === undefined || !isGivenAway || !isPublic(catalog, { stored, newest: stored }))
    return false
  const facts = await findFacts(call, tenant, newest)
  const was = facts && computeQueryPrice(catalog, newest, facts.own)?.price
  return was !== undefined && !isFree(was) && isPublic(catalog, { stored: newest, newest })
}

function findFacts({ service, requestInfo }: Pricing, tenant: Tenant, stored: KeptQuery) {
  const onRead = requestInfo.context.noteRead
  return service.queryPlans.findFacts(service.tenants, tenant, { stored, onRead })
}
