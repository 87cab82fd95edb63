import { hasTag } from '../../http/entity-tags.ts'
import { HttpReply, makeJsonReply } from '../../http/reply.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { PriceRule } from '../../model/definitions.ts'
import { isOpen } from '../../model/read-level.ts'
import { canDescribe } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Payments } from '../../services/payments/payments.ts'
import { isPublic } from '../../services/queries/stored-queries.ts'
import { digestMeaning } from '../../x402/quote.ts'
import type { Operation } from '../operation.ts'
import { makePricingTag } from './pricing-tag.ts'

export const getPricing: Operation<'getPricing', 'tenants' | 'payments'> = async (
  { service, caller, requestInfo },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  const { catalog } = tenant.data
  const all = canDescribe(caller, tenant.application)
  const known = (rule: PriceRule) => all || isKnown(catalog, rule)
  const { rules } = catalog.pricing
  const version = computeRulesVersion(service.payments, tenant, rules)
  const described = describePricing(service.payments, { shown: rules.filter(known), version })
  const etag = makePricingTag(described)
  // Callers may keep it; each asks each time whether it is still so.
  const headers = { etag, 'cache-control': 'private, no-cache' }
  return hasTag(requestInfo.headers['if-none-match'], (tag) => tag === etag)
    ? new HttpReply('', { status: 304, headers })
    : makeJsonReply(described, { headers })
}

/** Returns whether callers from outside the application may know of the rule's target. */
export function isKnown(catalog: Catalog, { target }: PriceRule): boolean {
  const { api_collection = '', collection = api_collection, view = '', query } = target
  const newest = query === undefined ? undefined : catalog.queries.get(query)?.at(-1)
  if (newest !== undefined) return isPublic(catalog, { stored: newest, newest })
  const found = catalog.byName.get(collection) ?? catalog.viewsByName.get(view)
  return found !== undefined && isOpen(catalog, found)
}

export function describePricing(
  payments: Payments,
  { shown, version }: { shown: readonly PriceRule[]; version: string },
) {
  const platform = Number(payments.ports.split.platformBasisPoints) / 100
  return {
    rules: shown.map(describeRule),
    split: { app_owner_percentage: 100 - platform, platform_percentage: platform },
    version,
  }
}

/**
 * Computes the version of all rules, hidden ones included: equal rules of one application have one version, and
 * nobody can compute it from a guess.
 */
export function computeRulesVersion(
  payments: Payments,
  { application }: Tenant,
  rules: readonly PriceRule[],
): string {
  const text = JSON.stringify(['pricing', application.number, rules.map(describeRule)])
  return digestMeaning(payments.ports.quoteSecret, text)
}

export function describeRule(rule: PriceRule) {
  const { target, operation, model, amount, field, tiers, period, unit, quantity, hours } = rule
  return {
    target: describeTarget(target),
    operation,
    model,
    ...(amount !== undefined && { amount }),
    ...(field !== undefined && { field }),
    ...(tiers !== undefined && { tiers: [...tiers] }),
    ...(period !== undefined && { period }),
    ...(unit !== undefined && { unit }),
    ...(quantity !== undefined && { quantity }),
    ...(hours !== undefined && { hours }),
  }
}

function describeTarget({ collection = '', view, query, api_collection }: PriceRule['target']) {
  if (query !== undefined) return { query }
  if (api_collection !== undefined) return { api_collection }
  return view === undefined ? { collection } : { view }
}
