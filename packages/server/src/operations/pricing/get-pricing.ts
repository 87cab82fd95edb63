import type { Catalog } from '../../model/catalog.ts'
import type { PriceRule } from '../../model/definitions.ts'
import { isOpen } from '../../model/read-level.ts'
import { mayDescribe } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { isPublic } from '../../services/queries/stored-queries.ts'
import { meaningDigest } from '../../x402/quote.ts'
import type { Operation } from '../operation.ts'

export const getPricing: Operation<'getPricing'> = async ({ service, caller }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const all = mayDescribe(caller, tenant.application)
  const known = (rule: PriceRule) => all || isKnown(catalog, rule)
  const { rules } = catalog.pricing
  const version = versionOfRules(service, tenant, rules)
  return pricingView(service, { shown: rules.filter(known), version })
}

/** Whether those outside of the application may know what the price is of. */
function isKnown(catalog: Catalog, { target }: PriceRule): boolean {
  const { collection = '', view = '', query } = target
  const newest = query === undefined ? undefined : catalog.queries.get(query)?.at(-1)
  if (newest !== undefined) return isPublic(catalog, { stored: newest, newest })
  const found = catalog.byName.get(collection) ?? catalog.viewsByName.get(view)
  return found !== undefined && isOpen(catalog, found)
}

export function pricingView(
  service: Service,
  { shown, version }: { shown: readonly PriceRule[]; version: string },
) {
  const platform = Number(service.payments.ports.split.platformBasisPoints) / 100
  return {
    rules: shown.map(ruleView),
    split: { app_owner_percentage: 100 - platform, platform_percentage: platform },
    version,
  }
}

/**
 * Of all rules, also those that are not shown: equal rules of one application have one version, and nobody can make it
 * of a guess.
 */
export function versionOfRules(
  { payments }: Service,
  { application }: Tenant,
  rules: readonly PriceRule[],
): string {
  const text = JSON.stringify(['pricing', application.number, rules.map(ruleView)])
  return meaningDigest(payments.ports.quoteSecret, text)
}

export function ruleView({ target, operation, model, amount, field }: PriceRule) {
  return {
    target: targetView(target),
    operation,
    model,
    ...(amount !== undefined && { amount }),
    ...(field !== undefined && { field }),
  }
}

function targetView({ collection = '', view, query }: PriceRule['target']) {
  if (query !== undefined) return { query }
  return view === undefined ? { collection } : { view }
}
