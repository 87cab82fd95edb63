import { Fault } from '../../base/fault.ts'
import { type Catalog, withLookups } from '../../model/catalog.ts'
import type { PriceRule } from '../../model/definitions.ts'
import { define } from '../../services/applications/define.ts'
import type { Call } from '../../services/call.ts'
import { pricingView, ruleView, versionOfRules } from './get-pricing.ts'
import { findFreed, type Target } from './list-freed.ts'
import { nameOfRule } from './parse-rules.ts'

/** Replaces an application's rules by those that `change` makes of what is there, and says what became of each. */
export async function changePricing(
  { service, facts }: Call,
  asked: {
    readonly app: string
    /** What the seller says he gives away. */
    readonly confirmed: readonly Target[]
    readonly change: (catalog: Catalog) => readonly PriceRule[]
  },
) {
  const tenant = await service.tenancy.tenant(asked.app)
  return tenant.definitions.run(async () => {
    const { catalog } = tenant.data
    const before = catalog.pricing.rules
    refuseOtherVersion(facts.headers['if-match'], versionOfRules(service, tenant, before))
    const rules = asked.change(catalog)
    const freed = await findFreed(service, tenant, withLookups({ ...catalog, pricing: { rules } }))
    refuseUnconfirmed(freed, asked.confirmed)
    await define(tenant, [{ kind: 'pricing', id: 'pricing', body: { rules: [...rules] } }])
    const version = versionOfRules(service, tenant, rules)
    return { ...pricingView(service, { shown: rules, version }), ...compareRules(before, rules) }
  })
}

/** RFC 9110, 13.1.1: a list of tags in quotes, or `*`. The bare version is taken too. */
function refuseOtherVersion(ifMatch: string | string[] | undefined, version: string): void {
  if (ifMatch === undefined) return
  const tags = String(ifMatch)
    .split(',')
    .map((tag) => tag.trim().replace(/^"(.*)"$/, '$1'))
  if (tags.includes('*') || tags.includes(version)) return
  throw new Fault('PRICING_CHANGED', { details: { version } })
}

function refuseUnconfirmed(freed: readonly Target[], confirmed: readonly Target[]): void {
  const named = new Set(confirmed.map(textOf))
  const missing = freed.filter((target) => !named.has(textOf(target)))
  if (missing.length === 0) return
  throw new Fault('PRICE_REMOVED', {
    message: `Strangers could then read for nothing: ${missing.map(textOf).join(', ')}; give it a price, or name it in confirm_free`,
    details: { confirm_free: missing },
  })
}

function textOf(target: Target): string {
  return Object.entries(target).flat().join(' ')
}

function compareRules(before: readonly PriceRule[], after: readonly PriceRule[]) {
  const old = new Map(before.map((rule) => [nameOfRule(rule), rule]))
  const names = new Set(after.map(nameOfRule))
  return {
    added: after.filter((rule) => !old.has(nameOfRule(rule))).map(ruleView),
    changed: after.flatMap((rule) => {
      const previous = old.get(nameOfRule(rule))?.amount
      const { amount } = rule
      if (previous === undefined || amount === undefined || amount === previous) return []
      return [{ ...ruleView(rule), amount, previous_amount: previous }]
    }),
    removed: before.filter((rule) => !names.has(nameOfRule(rule))).map(ruleView),
  }
}
