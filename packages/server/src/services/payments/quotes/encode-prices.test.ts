import fc from 'fast-check'
import { expect, test } from 'vitest'
import { prices } from '../../../model/draw-prices.test-support.ts'
import { decodePrices, encodePrices } from './encode-prices.ts'

test('a quote holds a price whole', () => {
  fc.assert(
    fc.property(
      fc.array(prices, { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      (many, emptyFree) => {
        const parts = many.map((price) => ({ ...price, emptyFree }))
        const read = decodePrices(encodePrices(parts))
        const plain = parts.map(({ minimum, maximum, discounts, ...part }) => ({
          ...part,
          ...(minimum && { minimum }),
          ...(maximum && { maximum }),
          ...(discounts &&
            (discounts.passes || discounts.quotas.length > 0 || discounts.tiers.length > 0) && {
              discounts,
            }),
        }))
        expect(read).toEqual(plain)
        expect(encodePrices(parts)).toMatch(/^[0-9a-z_-]*$/)
      },
    ),
  )
})
