import { invalid } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { changePricing } from './change-pricing.ts'
import { nameOfRule, readRules } from './parse-rules.ts'

export const updatePricing: Operation<'updatePricing'> = async (call, { params, body }) =>
  changePricing(call, {
    app: params.app,
    confirmed: body.confirm_free ?? [],
    change: (catalog) => {
      const { rules } = catalog.pricing
      const known = new Set(rules.map(nameOfRule))
      const removed = (body.remove ?? []).map((name, at) => {
        if (known.has(nameOfRule(name))) return nameOfRule(name)
        throw invalid(`/remove/${at}`, `names no rule: there is none for ${nameOfRule(name)}`)
      })
      const set = new Map(
        readRules(catalog, body.set ?? [], '/set').map((rule) => [nameOfRule(rule), rule]),
      )
      const both = removed.find((name) => set.has(name))
      if (both !== undefined) throw invalid('/remove', `removes what /set sets: ${both}`)
      const kept = rules.filter((rule) => !removed.includes(nameOfRule(rule)))
      const added = [...set].filter(([name]) => !known.has(name)).map(([, rule]) => rule)
      return [...kept.map((rule) => set.get(nameOfRule(rule)) ?? rule), ...added]
    },
  })
