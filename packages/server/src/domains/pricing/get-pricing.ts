import { isInsider } from '../access/access.ts'
import type { Service } from '../call.ts'
import type { Operation } from '../operation.ts'
import { isPublic } from '../queries/stored-queries.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import type { PriceRule } from '../tenancy/definitions.ts'

export const getPricing: Operation<'getPricing'> = async ({ service, caller }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const all = isInsider(caller, tenant.application)
  const known = (rule: PriceRule) => all || isKnown(catalog, rule)
  return pricingView(service, catalog.pricing.rules.filter(known))
}

/** Whether those outside of the application may know what the price is of. */
function isKnown(catalog: Catalog, { target }: PriceRule): boolean {
  const { collection = '', view = '', query } = target
  const newest = query === undefined ? undefined : catalog.queries.get(query)?.at(-1)
  if (newest !== undefined) return isPublic(catalog, { stored: newest, newest })
  const found = catalog.byName.get(collection) ?? catalog.viewsByName.get(view)
  return found?.policy.read === 'public'
}

export function pricingView(service: Service, rules: readonly PriceRule[]) {
  const platform = Number(service.payments.ports.split.platformBasisPoints) / 100
  return {
    rules: rules.map(({ target, operation, model, amount, field }) => ({
      target: targetView(target),
      operation,
      model,
      ...(amount !== undefined && { amount }),
      ...(field !== undefined && { field }),
    })),
    split: { app_owner_percentage: 100 - platform, platform_percentage: platform },
  }
}

function targetView({ collection = '', view, query }: PriceRule['target']) {
  if (query !== undefined) return { query }
  return view === undefined ? { collection } : { view }
}
