import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findBrokenLimit, formatDay, readKeyLimits } from './spending-limits.ts'

const hourMs = 3_600_000
const amounts = fc.bigInt({ min: 0n, max: 50n })

describe('findBrokenLimit', () => {
  test('what it lets through, one after the other, is never above any limit, and what it refuses would be', () => {
    const payments = fc.array(fc.record({ amount: amounts, hours: fc.nat(30) }), { maxLength: 40 })
    const settings = fc.record({
      max_payment_per_tx: fc.option(amounts.map(String)),
      spend_allowance: fc.option(fc.bigInt({ min: 0n, max: 300n }).map(String)),
      daily_allowance: fc.option(fc.bigInt({ min: 0n, max: 100n }).map(String)),
    })
    fc.assert(
      fc.property(payments, settings, (asked, given) => {
        const limits = readKeyLimits(given)
        const paid: { day: string; amount: bigint }[] = []
        let nowMs = Date.UTC(2026, 10, 23)
        for (const { amount, hours } of asked) {
          nowMs += hours * hourMs
          const day = formatDay(nowMs)
          const sum = (of: typeof paid) => of.reduce((total, one) => total + one.amount, 0n)
          const [spent, spentToday] = [sum(paid), sum(paid.filter((one) => one.day === day))]
          const use = { amount, spent, spentToday, nowMs, targets: ['shop'] }
          const broken = findBrokenLimit(limits, use)
          const fits =
            amount <= BigInt(given.max_payment_per_tx ?? 50) &&
            spent + amount <= BigInt(given.spend_allowance ?? 10_000) &&
            spentToday + amount <= BigInt(given.daily_allowance ?? 10_000)
          expect(broken === undefined).toBe(fits)
          if (broken === undefined) paid.push({ day, amount })
          if (broken?.resetsAtMs !== undefined) {
            expect(formatDay(broken.resetsAtMs - 1)).toBe(day)
            expect(formatDay(broken.resetsAtMs)).not.toBe(day)
          }
        }
      }),
    )
  })

  test('a key whose time to pay is over, or cannot be reckoned with, pays nothing; targets are all that may be paid', () => {
    const use = { amount: 1n, spent: 0n, spentToday: 0n, nowMs: 1_000, targets: ['a', 'b'] }
    const find = (limits: Record<string, unknown>) => findBrokenLimit(readKeyLimits(limits), use)
    expect(find({ expires_at: '1970-01-01T00:00:01Z' })?.limit).toBe('expires_at')
    expect(find({ expires_at: '1970-01-01T00:00:02Z' })).toBeUndefined()
    expect(find({ expires_at: '2026-12-31T23:59:60Z' })?.limit).toBe('expires_at')
    expect(find({ allowed_target_apps: ['a'] })?.limit).toBe('allowed_target_apps')
    expect(find({ allowed_target_apps: ['b', 'a'] })).toBeUndefined()
    expect(findBrokenLimit(readKeyLimits(null), use)).toBeUndefined()
  })
})
