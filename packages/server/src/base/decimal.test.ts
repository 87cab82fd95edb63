import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseWholeUnits } from './decimal.ts'

describe('wholeUnits', () => {
  test.each([
    ['0', 0n],
    ['0.0', 0n],
    ['-0', 0n],
    ['1', 1_000_000n],
    ['19.99', 19_990_000n],
    ['0.000001', 1n],
    ['1e2', 100_000_000n],
    ['1E-6', 1n],
    ['1.50e+1', 15_000_000n],
    ['100e-8', 1n],
    ['0.10000000000000000', 100_000n],
    ['9007199254740993', 9_007_199_254_740_993_000_000n],
  ])('the decimal %s is %s millionths', (text, units) => {
    expect(parseWholeUnits(text, 6)).toBe(units)
  })

  test.each([
    ['0.0000001', 'has more than 6 decimals'],
    ['0.1000000000000000055', 'has more than 6 decimals'],
    ['-1', 'must not be negative'],
    ['-1e-9', 'must not be negative'],
    ['1e40', 'is too large'],
    ['1e9999', 'is too large'],
    ['1e-9999', 'has more than 6 decimals'],
    ['"1"', 'must be a number'],
    ['null', 'must be a number'],
    ['true', 'must be a number'],
    ['', 'must be a number'],
  ])('the text %s is refused because it %s', (text, problem) => {
    expect(parseWholeUnits(text, 6)).toBe(problem)
  })

  test('a written decimal is read back exactly', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 20n), fc.integer({ min: -8, max: 8 }), (units, shift) => {
        const digits = units.toString().padStart(7, '0')
        const plain = `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/^0+(?=[0-9])/, '')
        expect(parseWholeUnits(plain, 6)).toBe(units)
        expect(parseWholeUnits(`${plain}e${shift}`, 6 - shift)).toBe(units)
      }),
    )
  })
})
