import { expect, test } from 'vitest'
import { formatDollars, formatUnits, formatUsd } from './format-usd.ts'

test('amounts are exact in dollars, with two decimals or more', () => {
  const amounts = [0n, 1n, 1_000n, 500_000n, 12_500_000n, -1_240n, 10n ** 30n + 1n]
  expect(amounts.map((amount) => formatUsd(amount, 6))).toEqual([
    ...['0.00', '0.000001', '0.001', '0.50', '12.50', '-0.00124'],
    '1000000000000000000000000.000001',
  ])
  expect(formatUsd(10n ** 18n + 5n * 10n ** 15n, 18)).toBe('1.005')
})

test('with the sign of dollars, an amount below zero has its minus before it', () => {
  expect([0n, 1n, 100_000_000n, -2_050n].map(formatDollars)).toEqual([
    ...['$0.00', '$0.000001', '$100.00', '-$0.00205'],
  ])
  expect(formatUnits(1_000n)).toBe('1000 atomic units ($0.001)')
})
