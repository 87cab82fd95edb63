import { expect, test } from 'vitest'
import { LoadMeter } from './load-meter.ts'

test.each([
  { everyMs: 50, isThere: true },
  { everyMs: 200, isThere: false },
])('a read each $everyMs ms makes a crowd: $isThere', (one) => {
  const crowd = new LoadMeter()
  expect(crowd.isHigh(0)).toBe(false)
  for (let now = 0; now <= 20_000; now += one.everyMs) crowd.note(now)
  expect(crowd.isHigh(20_000)).toBe(one.isThere)
  expect(crowd.isHigh(30_000)).toBe(false)
})
