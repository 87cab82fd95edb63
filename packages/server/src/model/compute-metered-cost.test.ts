import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { computeCost } from './compute-cost.ts'
import {
  computeMeteredCost,
  formatPeriod,
  reserveUses,
  sumUses,
  type Usage,
} from './compute-metered-cost.ts'
import { prices } from './draw-prices.test-support.ts'
import { freePrice, type MeterUnit, type Price } from './policy.ts'

const purchases = fc.array(
  fc.record({ rows: fc.nat(9), bytes: fc.nat(5_000), days: fc.nat(20), hasPass: fc.boolean() }),
  { maxLength: 12 },
)

/**
 * Buys one unit after the other, as the description says it: each is free while its quota lasts, and otherwise costs
 * the amount of the last tier below its number.
 */
class Oracle {
  readonly #counts = new Map<string, number>()
  readonly #price: Price
  constructor(price: Price) {
    this.#price = price
  }
  buy(size: { rows: number; bytes: number }, nowMs: number, hasPaid: boolean): bigint {
    const { discounts: { tiers, quotas } = { tiers: [], quotas: [] }, ...price } = this.#price
    const base = { request: price.perAccess, row: price.perRow, kb: price.perKb }
    const day = new Date(nowMs).toISOString()
    const add = (kind: string, unit: MeterUnit) => {
      for (const length of [7, 10]) {
        const key = `${kind} ${unit} ${day.slice(0, length)}`
        this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
      }
    }
    const count = (kind: string, unit: MeterUnit, period: 'day' | 'month') =>
      this.#counts.get(`${kind} ${unit} ${day.slice(0, period === 'day' ? 10 : 7)}`) ?? 0
    const findQuota = (unit: MeterUnit) => quotas.find((one) => one.unit === unit)
    const scale = (unit: MeterUnit) => (unit === 'kb' ? 1024 : 1)
    const hasLeft = (unit: MeterUnit) => {
      const quota = findQuota(unit)
      if (quota === undefined || !hasPaid) return false
      return count('free', unit, quota.period) < Number(quota.quantity) * scale(unit)
    }
    if (hasLeft('request')) {
      add('free', 'request')
      return 0n
    }
    const hadSome = hasLeft('row') || hasLeft('kb')
    let isUnused = true
    const buyUnits = (unit: MeterUnit, many: number) => {
      let sum = 0n
      for (let n = 0; n < many; n++) {
        if (unit !== 'request' && hasLeft(unit)) {
          add('free', unit)
          isUnused = false
          continue
        }
        let amount = base[unit]
        for (const tier of tiers)
          if (
            tier.unit === unit &&
            count('paid', unit, tier.period) >= Number(tier.above) * scale(unit)
          )
            amount = tier.amount
        sum += amount
        add('paid', unit)
      }
      return sum
    }
    const bytes = buyUnits('kb', size.bytes)
    const sum = buyUnits('request', 1) + buyUnits('row', size.rows) + (bytes + 1023n) / 1024n
    const { minimum = 0n, maximum = 10n ** 15n } = price
    if (sum === 0n && hadSome) {
      if (minimum > 0n && isUnused) {
        const unit = hasLeft('row') ? 'row' : 'kb'
        for (let n = 0; n < scale(unit) && hasLeft(unit); n++) add('free', unit)
      }
      return 0n
    }
    return sum < minimum ? minimum : sum > maximum ? maximum : sum
  }
}

describe('computeMeteredCost', () => {
  test('a series of purchases costs what buying unit by unit costs, and never more than a stranger pays', () => {
    fc.assert(
      fc.property(prices, purchases, fc.nat(3), (price, bought, paidFrom) => {
        const oracle = new Oracle(price)
        let used: readonly Usage[] = []
        let nowMs = Date.UTC(2026, 10, 20)
        bought.forEach(({ days, hasPass, ...size }, at) => {
          nowMs += days * 86_400_000
          const hasPaid = at >= paidFrom
          const { cost, uses } = computeMeteredCost(price, size, { nowMs, hasPass, hasPaid, used })
          expect(cost).toBe(hasPass ? 0n : oracle.buy(size, nowMs, hasPaid))
          expect(cost <= computeCost(price, size)).toBe(true)
          used = sumUses([...used, ...uses])
        })
      }),
      { numRuns: 300 },
    )
  })

  test('answers without a row are not free for ever where a quota keeps the minimum away', () => {
    const quotas = [{ unit: 'row', quantity: 2n, period: 'month' }] as const
    const discounts = { tiers: [], quotas, passes: false }
    const price = { ...freePrice, perRow: 100n, minimum: 50n, discounts }
    const costs: bigint[] = []
    let used: readonly Usage[] = []
    for (let n = 0; n < 4; n++) {
      const state = { nowMs: Date.UTC(2026, 10, 20), hasPass: false, hasPaid: true, used }
      const { cost, uses } = computeMeteredCost(price, { rows: 0, bytes: 0 }, state)
      costs.push(cost)
      used = sumUses([...used, ...uses])
    }
    expect(costs).toEqual([0n, 0n, 50n, 50n])
  })

  test('a purchase that a quota of requests makes free keeps nothing of other quotas', () => {
    const quota = (unit: 'request' | 'row', quantity: bigint) => {
      return { unit, quantity, period: 'month' } as const
    }
    const quotas = [quota('request', 1n), quota('row', 10n)]
    const price = { ...freePrice, perRow: 100n, discounts: { tiers: [], quotas, passes: false } }
    const state = { nowMs: Date.UTC(2026, 10, 20), hasPass: false, hasPaid: true, used: [] }
    const kept = reserveUses(price, { rows: 3, bytes: 900 }, state)
    expect(kept.map(({ free }) => free)).toEqual([{ request: 1n, row: 0n, kb: 0n }])
    const next = reserveUses(price, { rows: 3, bytes: 900 }, { ...state, used: kept })
    expect(next.map(({ free }) => free)).toEqual([{ request: 0n, row: 3n, kb: 0n }])
  })

  test('what is held for a purchase before its size is known is enough, whatever others use of the rest meanwhile', () => {
    const sizes = fc.record({ rows: fc.nat(9), bytes: fc.nat(5_000) })
    const others = fc.array(sizes, { maxLength: 6 })
    fc.assert(
      fc.property(prices, fc.tuple(sizes, sizes), others, (price, [one, other], between) => {
        const most = { rows: one.rows + other.rows, bytes: one.bytes + other.bytes }
        const nowMs = Date.UTC(2026, 10, 20)
        const state = (used: readonly Usage[]) => ({ nowMs, hasPass: false, hasPaid: true, used })
        const cap = computeMeteredCost(price, most, state([])).cost
        const reserved = reserveUses(price, most, state([]))
        let used: readonly Usage[] = []
        for (const size of between) {
          const { uses } = computeMeteredCost(price, size, state(sumUses([...used, ...reserved])))
          used = sumUses([...used, ...uses])
        }
        const { cost, uses } = computeMeteredCost(price, one, state(used))
        expect(cost <= cap).toBe(true)
        for (const { unit, period, quantity } of price.discounts?.quotas ?? []) {
          const name = formatPeriod(nowMs, period)
          const sum = sumUses([...used, ...uses]).find((one) => one.period === name)
          const free = sum?.free[unit] ?? 0n
          expect(free <= quantity * (unit === 'kb' ? 1024n : 1n)).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })
})
