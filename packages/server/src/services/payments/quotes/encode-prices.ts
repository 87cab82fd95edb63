import { pricePeriods, quotaUnits } from '@tollbase/contract/price-models'
import { requirePresent } from '../../../base/assert.ts'
import type { Discounts, FreeQuota, Tier } from '../../../model/policy.ts'
import { parseBase36 } from '../../../x402/quote.ts'
import type { PartPrice } from '../purchase.ts'

/** Marks of the discounts that follow the amounts of a price, each with its own count of numbers. */
const [passMark, quotaMark, tierMark] = [1n, 2n, 3n]

/**
 * Encodes prices for a quote: the parts between `_`, each a list of numbers between `-`, in base 36; zeros are empty,
 * and left out at the end. The numbers are the amounts per access, row and KB, 1 where an empty answer is free, the
 * minimum and the maximum; then the discounts: 1 for passes, 2 with unit, period and quantity for a quota, 3 with unit,
 * period, bound and amount for a tier.
 */
export function encodePrices(prices: readonly PartPrice[]): string {
  return prices.map(encodePrice).join('_')
}

function encodePrice({ minimum = 0n, maximum = 0n, discounts, ...price }: PartPrice): string {
  const { perAccess, perRow, perKb, emptyFree } = price
  const amounts = [perAccess, perRow, perKb, emptyFree ? 1n : 0n, minimum, maximum]
  const numbers = [...amounts, ...(discounts === undefined ? [] : listNumbers(discounts))]
  const texts = numbers.map((number) => (number === 0n ? '' : number.toString(36)))
  return texts.join('-').replace(/-+$/, '')
}

function listNumbers({ passes, quotas, tiers }: Discounts): readonly bigint[] {
  const place = ({ unit, period }: FreeQuota | Tier) => [
    BigInt(quotaUnits.indexOf(unit)),
    BigInt(pricePeriods.indexOf(period)),
  ]
  return [
    ...(passes ? [passMark] : []),
    ...quotas.flatMap((quota) => [quotaMark, ...place(quota), quota.quantity]),
    ...tiers.flatMap((tier) => [tierMark, ...place(tier), tier.above, tier.amount]),
  ]
}

export function decodePrices(text: string): readonly PartPrice[] {
  return text.split('_').map((part) => {
    const numbers = part.split('-').map(parseBase36)
    const [perAccess = 0n, perRow = 0n, perKb = 0n, emptyFree = 0n, minimum = 0n, maximum = 0n] =
      numbers
    const discounts = readDiscounts(numbers.slice(6))
    return {
      ...{ perAccess, perRow, perKb, emptyFree: emptyFree !== 0n },
      ...(minimum !== 0n && { minimum }),
      ...(maximum !== 0n && { maximum }),
      ...(discounts && { discounts }),
    }
  })
}

function readDiscounts(numbers: readonly bigint[]): Discounts | undefined {
  if (numbers.length === 0) return undefined
  const quotas: FreeQuota[] = []
  const tiers: Tier[] = []
  let passes = false
  for (let at = 0; at < numbers.length; ) {
    const [mark, unitAt = 0n, periodAt = 0n, bound = 0n, amount = 0n] = numbers.slice(at)
    if (mark === passMark) {
      passes = true
      at += 1
      continue
    }
    const unit = requirePresent(quotaUnits[Number(unitAt)], 'a unit of a quoted price')
    const period = requirePresent(pricePeriods[Number(periodAt)], 'a period of a quoted price')
    if (mark === quotaMark) quotas.push({ unit, period, quantity: bound })
    else tiers.push({ unit, period, above: bound, amount })
    at += mark === quotaMark ? 4 : 5
  }
  return { tiers, quotas, passes }
}
