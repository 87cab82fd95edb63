import { currency, toUsd } from '../../services/payments/currency.ts'
import { listFreed, refuseIdleDiscounts } from '../../services/pricing/freed-targets.ts'
import { openPeriod, parseLastDays } from '../../services/sales/period.ts'
import type { Operation } from '../operation.ts'
import { buildChangedCatalog } from './change-pricing.ts'
import { createComparison, describeComparison } from './compare-sales.ts'
import { parseRules, refuseContradictions } from './parse-rules.ts'
import { replaySales } from './replay-sales.ts'

const assumes = [
  'Buyers would have bought the same: nobody stays away from a higher price, and nobody comes for a lower one.',
  'The rules hold from the first sale on: tiers and quotas of a month are counted from its beginning, also before the period.',
  'Prices in policies, definitions of queries and views, price indexes and grants are those of now.',
  'Requests that were free, other than by a quota or pass, are in no books and are not counted.',
]

export const simulatePricing: Operation<
  'simulatePricing',
  'database' | 'tenants' | 'queryPlans' | 'world'
> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const { catalog } = tenant.data
  const rules = parseRules(catalog, body.rules, '/rules')
  refuseContradictions(rules)
  const changed = buildChangedCatalog(catalog, rules)
  await refuseIdleDiscounts(call, tenant, changed)
  const times = parseLastDays(body, service.world.now())
  const period = await openPeriod(service, params.app, times)
  const comparison = createComparison()
  await replaySales(call, { tenant, catalog: changed, period }, comparison)
  const compared = describeComparison(comparison)
  const { earned, simulated, difference } = compared
  return {
    from: new Date(period.fromMs).toISOString(),
    to: new Date(period.toMs).toISOString(),
    ...currency,
    ...compared,
    usd: toUsd({ earned, simulated, difference }),
    confirm_free: [...(await listFreed(call, tenant, changed))],
    assumes,
  }
}
