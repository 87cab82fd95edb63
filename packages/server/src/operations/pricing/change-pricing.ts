import { Fault } from '../../base/fault.ts'
import { hasTag } from '../../http/entity-tags.ts'
import { makeJsonReply } from '../../http/reply.ts'
import { buildCatalog, type Catalog } from '../../model/catalog.ts'
import type { PriceRule, PricingDefinition } from '../../model/definitions.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { define } from '../../services/applications/define.ts'
import type { Call } from '../../services/call.ts'
import {
  refuseFreed,
  refuseIdleDiscounts,
  type Target,
} from '../../services/pricing/freed-targets.ts'
import { computeRulesVersion, describePricing, describeRule } from './get-pricing.ts'
import { formatRuleName, refuseContradictions } from './parse-rules.ts'
import { makePricingTag, readVersion } from './pricing-tag.ts'

/**
 * Replaces an application's rules by those that `change` makes of the present ones, and returns what was added,
 * changed and removed.
 */
export async function changePricing(
  call: Call<'tenants' | 'payments' | 'queryPlans'>,
  asked: {
    readonly app: string
    /** The targets that the seller confirms to give away. */
    readonly confirmed: readonly Target[]
    readonly change: (catalog: Catalog) => readonly PriceRule[]
  },
) {
  const { service, requestInfo } = call
  const tenant = await service.tenants.load(asked.app)
  return tenant.definitions.run(async () => {
    refuseLapsedCaller(call, asked.app, { permission: 'Admin' })
    const { catalog } = tenant.data
    const before = catalog.pricing.rules
    refuseOtherVersion(
      requestInfo.headers['if-match'],
      computeRulesVersion(service.payments, tenant, before),
    )
    const rules = asked.change(catalog)
    refuseContradictions(rules)
    const changed = buildChangedCatalog(catalog, rules)
    const { pricing } = changed
    await refuseFreed(call, tenant, { after: changed, confirmed: asked.confirmed })
    await refuseIdleDiscounts(call, tenant, changed)
    await define(tenant, [{ kind: 'pricing', id: 'pricing', body: pricing }])
    const version = computeRulesVersion(service.payments, tenant, rules)
    const described = describePricing(service.payments, { shown: rules, version })
    return makeJsonReply(
      { ...described, ...compareRules(before, rules) },
      { headers: { etag: makePricingTag(described) } },
    )
  })
}

/** Builds the catalog as it would be with these rules. */
export function buildChangedCatalog(catalog: Catalog, rules: readonly PriceRule[]): Catalog {
  const pricing = { rules: [...rules], passes: listPasses(catalog.pricing, rules) }
  return buildCatalog({ ...catalog, pricing })
}

/** Lists the targets for which passes are sold, or were: a pass that runs is honoured whatever the rules are. */
function listPasses(before: PricingDefinition, rules: readonly PriceRule[]) {
  const sold = [
    ...(before.passes ?? []),
    ...rules.filter(({ model }) => model === 'time_pass').map(({ target }) => target),
  ]
  return [...new Map(sold.map((target) => [JSON.stringify(target), target])).values()]
}

/** RFC 9110, 13.1.1: the ETag of a read or change, or the bare version. */
function refuseOtherVersion(ifMatch: string | undefined, version: string): void {
  if (ifMatch === undefined) return
  if (hasTag(ifMatch, (tag) => readVersion(tag) === version)) return
  throw new Fault('PRICING_CHANGED', { details: { version } })
}

function compareRules(before: readonly PriceRule[], after: readonly PriceRule[]) {
  const old = new Map(before.map((rule) => [formatRuleName(rule), rule]))
  const names = new Set(after.map(formatRuleName))
  return {
    added: after.filter((rule) => !old.has(formatRuleName(rule))).map(describeRule),
    changed: after.flatMap((rule) => {
      const known = old.get(formatRuleName(rule))
      if (known === undefined) return []
      const [previous, now] = [describeRule(known), describeRule(rule)]
      if (JSON.stringify(previous) === JSON.stringify({ ...now, model: known.model })) return []
      const { amount } = known
      return [{ ...now, ...(amount !== undefined && { previous_amount: amount }), previous }]
    }),
    removed: before.filter((rule) => !names.has(formatRuleName(rule))).map(describeRule),
  }
}
