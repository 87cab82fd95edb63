import type { PriceModelName } from '@tollbase/contract/price-models'
import type { PriceRule } from './definitions.ts'
import type { Price } from './policy.ts'

/** Overrules a price, model by model, by rules for one operation on its target. */
export function applyRules(rules: readonly PriceRule[], price: Price): Price {
  const bounds = { minimum: findAmount(rules, 'minimum'), maximum: findAmount(rules, 'maximum') }
  return {
    perAccess: findAmount(rules, 'per_access') ?? price.perAccess,
    perRow: findAmount(rules, 'per_row', 'per_record') ?? price.perRow,
    perKb: findAmount(rules, 'per_kb') ?? price.perKb,
    ...(bounds.minimum !== undefined && { minimum: bounds.minimum }),
    ...(bounds.maximum !== undefined && { maximum: bounds.maximum }),
  }
}

function findAmount(
  rules: readonly PriceRule[],
  ...models: readonly PriceModelName[]
): bigint | undefined {
  const amount = rules.find(({ model }) => models.includes(model))?.amount
  return amount === undefined ? undefined : BigInt(amount)
}
