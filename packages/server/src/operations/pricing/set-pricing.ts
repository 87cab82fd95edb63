import type { Operation } from '../operation.ts'
import { changePricing } from './change-pricing.ts'
import { readRules } from './parse-rules.ts'

export const setPricing: Operation<'setPricing'> = async (call, { params, body }) =>
  changePricing(call, {
    app: params.app,
    confirmed: body.confirm_free ?? [],
    change: (catalog) => readRules(catalog, body.rules, '/rules'),
  })
