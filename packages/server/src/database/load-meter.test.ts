import { expect, test } from 'vitest'
import { Crowd } from './load-meter.ts'

test.each([
  { everyMs: 50, processors: 2, isThere: true },
  { everyMs: 50, processors: 4, isThere: true },
  { everyMs: 50, processors: 8, isThere: false },
  { everyMs: 200, processors: 2, isThere: false },
])('a read each $everyMs ms is a crowd on $processors processors: $isThere', (one) => {
  const crowd = new Crowd(one.processors)
  expect(crowd.isThere(0)).toBe(false)
  for (let now = 0; now <= 20_000; now += one.everyMs) crowd.note(now)
  expect(crowd.isThere(20_000)).toBe(one.isThere)
  expect(crowd.isThere(30_000)).toBe(false)
})
