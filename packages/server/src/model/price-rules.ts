import { type PriceModelName, priceModels } from '@tollbase/contract/price-models'
import type { Catalog } from './catalog.ts'
import type { PriceRule } from './definitions.ts'
import type { Discounts, FreeQuota, MeterUnit, Price, Tier } from './policy.ts'

/** Overrules a price, model by model, by rules for one operation on its target. */
export function applyRules(
  rules: readonly PriceRule[],
  price: Price,
  hasPasses: boolean = false,
): Price {
  const [minimum, maximum] = [findAmount(rules, 'minimum'), findAmount(rules, 'maximum')]
  const discounts = findDiscounts(rules, hasPasses)
  return {
    perAccess: findAmount(rules, 'per_access') ?? price.perAccess,
    perRow: findAmount(rules, 'per_row', 'per_record') ?? price.perRow,
    perKb: findAmount(rules, 'per_kb') ?? price.perKb,
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
    ...(discounts && { discounts }),
  }
}

/** Returns true for a rule that asks for money by itself; the others change what is asked for. */
export function isAskingPrice({ model }: PriceRule): boolean {
  return priceModels[model].asks
}

/** Returns whether passes were ever sold for a target. */
export function hasPassesFor({ pricing }: Catalog, target: PriceRule['target']): boolean {
  const [[kind = '', name] = []] = Object.entries(target)
  return (pricing.passes ?? []).some((sold) => sold[kind] === name)
}

function findDiscounts(rules: readonly PriceRule[], passes: boolean): Discounts | undefined {
  const tiers = rules.flatMap(listTiers)
  const quotas = rules.flatMap(listQuota)
  if (tiers.length === 0 && quotas.length === 0 && !passes) return undefined
  return { tiers, quotas, passes }
}

const countedBy: Partial<Record<PriceModelName, MeterUnit>> = {
  per_access: 'request',
  per_row: 'row',
  per_record: 'row',
  per_kb: 'kb',
}

function listTiers({ model, tiers = [], period = 'month' }: PriceRule): readonly Tier[] {
  const unit = countedBy[model]
  if (unit === undefined) return []
  return tiers.map(({ above, amount }) => ({
    ...{ unit, period },
    ...{ above: BigInt(above), amount: BigInt(amount) },
  }))
}

function listQuota({ model, unit, quantity, period = 'month' }: PriceRule): readonly FreeQuota[] {
  if (model !== 'free_quota' || unit === undefined) return []
  return [{ unit, period, quantity: BigInt(quantity ?? 0) }]
}

function findAmount(
  rules: readonly PriceRule[],
  ...models: readonly PriceModelName[]
): bigint | undefined {
  const amount = rules.find(({ model }) => models.includes(model))?.amount
  return amount === undefined ? undefined : BigInt(amount)
}
