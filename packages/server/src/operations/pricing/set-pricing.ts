import type { Operation } from '../operation.ts'
import { changePricing } from './change-pricing.ts'
import { parseRules } from './parse-rules.ts'

export const setPricing: Operation<'setPricing', 'tenants' | 'payments' | 'queryPlans'> = async (
  call,
  { params, body },
) =>
  changePricing(call, {
    app: params.app,
    confirmed: body.confirm_free ?? [],
    change: (catalog) => parseRules(catalog, body.rules, '/rules'),
  })
