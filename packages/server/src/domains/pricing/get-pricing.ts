import { createHash } from 'node:crypto'
import { mayDescribe } from '../access/access.ts'
import type { Service } from '../call.ts'
import type { Operation } from '../operation.ts'
import { isPublic } from '../queries/stored-queries.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import type { PriceRule } from '../tenancy/definitions.ts'
import { isOpen } from '../tenancy/openness.ts'

export const getPricing: Operation<'getPricing'> = async ({ service, caller }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const all = mayDescribe(caller, tenant.application)
  const known = (rule: PriceRule) => all || isKnown(catalog, rule)
  const { rules } = catalog.pricing
  return pricingView(service, { shown: rules.filter(known), all: rules })
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
  { shown, all }: { shown: readonly PriceRule[]; all: readonly PriceRule[] },
) {
  const platform = Number(service.payments.ports.split.platformBasisPoints) / 100
  return {
    rules: shown.map(ruleView),
    split: { app_owner_percentage: 100 - platform, platform_percentage: platform },
    version: versionOfRules(all),
  }
}

/** Rules that are equal have one version, so it tells nothing else. */
export function versionOfRules(rules: readonly PriceRule[]): string {
  return createHash('sha256')
    .update(JSON.stringify(rules.map(ruleView)))
    .digest('hex')
    .slice(0, 16)
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
