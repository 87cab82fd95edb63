import { expect, test } from 'vitest'
import { Pace } from './pace.ts'

test('a steady pace is told as it is, and forgotten within seconds', () => {
  const pace = new Pace()
  expect(pace.perSecond(0)).toBe(0)
  for (let now = 0; now <= 20_000; now += 10) pace.note(now)
  expect(pace.perSecond(20_000)).toBeCloseTo(100, -1)
  expect(pace.perSecond(30_000)).toBeLessThan(1)
})
