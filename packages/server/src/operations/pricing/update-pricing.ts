import { makeInvalidFault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { changePricing } from './change-pricing.ts'
import { formatRuleName, parseRules } from './parse-rules.ts'

export const updatePricing: Operation<
  'updatePricing',
  'tenants' | 'payments' | 'queryPlans'
> = async (call, { params, body }) =>
  changePricing(call, {
    app: params.app,
    confirmed: body.confirm_free ?? [],
    change: (catalog) => {
      const { rules } = catalog.pricing
      const known = new Set(rules.map(formatRuleName))
      const removed = (body.remove ?? []).map((name, at) => {
        if (known.has(formatRuleName(name))) return formatRuleName(name)
        throw makeInvalidFault(
          `/remove/${at}`,
          `names no rule: there is none for ${formatRuleName(name)}`,
        )
      })
      const set = new Map(
        parseRules(catalog, body.set ?? [], '/set').map((rule) => [formatRuleName(rule), rule]),
      )
      const both = removed.find((name) => set.has(name))
      if (both !== undefined) throw makeInvalidFault('/remove', `removes what /set sets: ${both}`)
      const kept = rules.filter((rule) => !removed.includes(formatRuleName(rule)))
      const added = [...set].filter(([name]) => !known.has(name)).map(([, rule]) => rule)
      return [...kept.map((rule) => set.get(formatRuleName(rule)) ?? rule), ...added]
    },
  })
