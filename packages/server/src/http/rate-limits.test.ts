import { expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import { RateLimits } from './rate-limits.ts'

test('one address has half of the places at most, and a quarter is kept for addresses without any', () => {
  const rates = new RateLimits({ world: realWorld, settings: { paying_in_flight: 16 } })
  const leaves: (() => void)[] = []
  const fill = (address: string) => {
    for (let count = 0; ; count++) {
      try {
        leaves.push(rates.occupy('paying_in_flight', address))
      } catch {
        return count
      }
    }
  }
  expect([fill('a'), fill('b'), fill('c')]).toEqual([8, 4, 1])
  for (const leave of leaves.splice(0)) leave()
  expect(fill('c')).toBe(8)
})

test('the least limit still lets each address in', () => {
  const rates = new RateLimits({ world: realWorld, settings: { anonymous_in_flight: 1 } })
  rates.occupy('anonymous_in_flight', 'a')()
  rates.occupy('anonymous_in_flight', 'b')
  expect(() => rates.occupy('anonymous_in_flight', 'a')).toThrow('being worked on')
  expect(() => rates.occupy('paying_in_flight', 'a')).not.toThrow()
})
