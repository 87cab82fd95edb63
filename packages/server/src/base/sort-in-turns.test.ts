import { expect, test } from 'vitest'
import { sortInTurns } from './sort-in-turns.ts'

test.each([0, 1, 2_047, 2_048, 2_049, 10_000])(
  'a list of %i items is sorted as toSorted does, equal items in their order',
  async (count) => {
    const items = Array.from({ length: count }, (_, at) => ({ key: (at * 7_919) % 1_000, at }))
    const compare = (a: { key: number }, b: { key: number }) => a.key - b.key
    const sorted = await sortInTurns(items, compare)
    expect(sorted).toEqual(items.toSorted(compare))
  },
)
