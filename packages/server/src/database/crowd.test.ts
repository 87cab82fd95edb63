import { expect, test } from 'vitest'
import { Crowd } from './crowd.ts'

test.each([
  { everyMs: 50, isThere: true },
  { everyMs: 200, isThere: false },
])('a read each $everyMs ms is a crowd: $isThere', (one) => {
  const crowd = new Crowd()
  expect(crowd.isThere(0)).toBe(false)
  for (let now = 0; now <= 20_000; now += one.everyMs) crowd.note(now)
  expect(crowd.isThere(20_000)).toBe(one.isThere)
  expect(crowd.isThere(30_000)).toBe(false)
})
