import { expect, test } from 'vitest'
import { Pause } from './pause.ts'

test('a pause is over before it begins, at its end, and where the clock is before its beginning', () => {
  const pause = new Pause()
  expect(pause.isOver(0)).toBe(true)
  pause.begin(1_000, 50)
  expect([999, 1_000, 1_049, 1_050].map((now) => pause.isOver(now))).toEqual([
    true,
    false,
    false,
    true,
  ])
})
