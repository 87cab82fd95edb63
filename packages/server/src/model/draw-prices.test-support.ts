import fc from 'fast-check'
import type { Discounts, MeterUnit, Price } from './policy.ts'

const periods = fc.constantFrom('day' as const, 'month' as const)
const amounts = fc.bigInt({ min: 0n, max: 40n })

/** Tiers of one unit: bounds that ascend, amounts that do not. */
const drawTiers = (unit: MeterUnit) =>
  fc
    .tuple(
      periods,
      fc.uniqueArray(fc.bigInt({ min: 1n, max: 12n }), { maxLength: 3 }),
      fc.array(amounts),
    )
    .map(([period, bounds, falls]) => ({ unit, period, bounds, falls }))

/** Prices with bounds, tiers, quotas and passes. */
export const prices = fc
  .record({
    perAccess: amounts,
    perRow: amounts,
    perKb: amounts,
    minimum: fc.option(amounts, { nil: undefined }),
    more: fc.option(fc.bigInt({ min: 0n, max: 200n }), { nil: undefined }),
    tiers: fc.tuple(drawTiers('request'), drawTiers('row'), drawTiers('kb')),
    quotas: fc.uniqueArray(
      fc.record({
        unit: fc.constantFrom<MeterUnit>('request', 'row', 'kb'),
        period: periods,
        quantity: fc.bigInt({ min: 1n, max: 8n }),
      }),
      { selector: ({ unit }) => unit, maxLength: 3 },
    ),
    passes: fc.boolean(),
  })
  .map(({ minimum, more, tiers, quotas, passes, ...base }): Price => {
    const bases = { request: base.perAccess, row: base.perRow, kb: base.perKb }
    const discounts: Discounts = {
      quotas,
      passes,
      tiers: tiers.flatMap(({ unit, period, bounds, falls }) => {
        let amount = bases[unit]
        const ascending = bounds.toSorted((a, b) => Number(a - b))
        return ascending.map((above, at) => {
          const fall = falls[at] ?? 1n
          amount = fall < amount ? amount - fall : 0n
          return { unit, period, above, amount }
        })
      }),
    }
    const maximum = more === undefined ? undefined : (minimum ?? 0n) + more + 1n
    return {
      ...base,
      ...(minimum !== undefined && { minimum }),
      ...(maximum !== undefined && { maximum }),
      discounts,
    }
  })
