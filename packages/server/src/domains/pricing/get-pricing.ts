import { isInsider } from '../access/access.ts'
import type { Service } from '../call.ts'
import type { Operation } from '../operation.ts'
import type { PriceRule } from '../tenancy/definitions.ts'

export const getPricing: Operation<'getPricing'> = async ({ service, caller }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const all = isInsider(caller, tenant.application)
  const known = (rule: PriceRule) =>
    all || catalog.byName.get(rule.target.collection ?? '')?.policy.read === 'public'
  return pricingView(service, catalog.pricing.rules.filter(known))
}

export function pricingView(service: Service, rules: readonly PriceRule[]) {
  const platform = Number(service.payments.ports.split.platformBasisPoints) / 100
  return {
    rules: rules.map(({ target, operation, model, amount, field }) => ({
      target: { collection: target.collection ?? '' },
      operation,
      model,
      ...(amount !== undefined && { amount }),
      ...(field !== undefined && { field }),
    })),
    split: { app_owner_percentage: 100 - platform, platform_percentage: platform },
  }
}
