import type { MeasuredPart } from '@tollbase/verify/sale-details'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Catalog } from './catalog.ts'
import { computeMeteredCost, sumUses, type Usage } from './compute-metered-cost.ts'
import { freePrice, type Price } from './policy.ts'
import { PriceReplay } from './replay-prices.ts'

const hourMs = 3_600_000
const passPrice: Price = { ...freePrice, perAccess: 7n }
const price: Price = {
  ...freePrice,
  perRow: 5n,
  discounts: {
    tiers: [{ unit: 'row', period: 'month', above: 40n, amount: 1n }],
    quotas: [{ unit: 'row', period: 'day', quantity: 3n }],
    passes: true,
  },
}
const thing = { account: 'app:a', kind: 'collection', name: 'c', charged: '0' } as const

/** Prices sales with all that came before them at hand: each pass, and the use of each period. */
function priceByAll(sales: readonly { timeMs: number; part: MeasuredPart }[]): bigint[] {
  const passes: { fromMs: number; untilMs: number }[] = []
  let used: readonly Usage[] = []
  let hasPaid = false
  return sales.map(({ timeMs, part }) => {
    let cost = passPrice.perAccess
    if (part.by === 'pass') {
      const fromMs = Math.max(timeMs, ...passes.map(({ untilMs }) => untilMs))
      passes.push({ fromMs, untilMs: fromMs + part.hours * hourMs })
    } else if (part.by === 'rows') {
      const hasPass = passes.some(({ fromMs, untilMs }) => fromMs <= timeMs && untilMs > timeMs)
      const metered = computeMeteredCost(price, part, { nowMs: timeMs, hasPaid, hasPass, used })
      used = sumUses([...used, ...metered.uses])
      cost = metered.cost
    }
    hasPaid ||= cost > 0n
    return cost
  })
}

const step = fc.record({
  hoursLater: fc.nat({ max: 400 }),
  part: fc.oneof(
    fc.integer({ min: 1, max: 100 }).map((hours) => ({ ...thing, by: 'pass' as const, hours })),
    fc.nat({ max: 9 }).map((rows) => ({ ...thing, by: 'rows' as const, rows, bytes: 0 })),
  ),
})

test('what a replay forgets of passes and periods that are over changes no price', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let timeMs = Date.UTC(2026, 0, 30)
      const sales = steps.map(({ hoursLater, part }) => {
        timeMs += hoursLater * hourMs
        return { timeMs, part }
      })
      const replay = new PriceReplay({} as Catalog)
      const priced = sales.map(({ timeMs: at, part }) =>
        replay.replay({ timeMs: at, buyer: 'b', gross: 0n, measured: [part] }, ({ by }) => ({
          price: by === 'pass' ? passPrice : price,
        })),
      )
      const costs = priced.map((parts) => (typeof parts === 'string' ? parts : parts[0]?.cost))
      expect(costs).toEqual(priceByAll(sales))
    }),
  )
})
