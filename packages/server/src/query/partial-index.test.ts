import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { parsePartial, printPredicate, refuseLongPartial } from './partial-index.ts'

const starts = (chars: number) => parsePartial({ a: { startsWith: 'x'.repeat(chars) } }, '/where')

describe('refuseLongPartial', () => {
  test('a new condition may take so many characters of SQL, and not one more', () => {
    const most = limits.partialIndexCharsMax
    const base = 1_000
    const rest = most - printPredicate(starts(base)).length
    expect(printPredicate(starts(base + rest))).toHaveLength(most)
    expect(() => refuseLongPartial(starts(base + rest), '/where')).not.toThrow()
    expect(() => refuseLongPartial(starts(base + rest + 1), '/where')).toThrow(
      `takes ${most + 1} characters of SQL, and may take ${most}`,
    )
  })

  test('six equalities, three ranges, or a list of 32 words have room', () => {
    const many = (count: number, make: (at: number) => unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`field_${at}`, make(at)]))
    const words = Array.from({ length: 32 }, (_, at) => `${at}`.padStart(36, 'word '))
    for (const where of [
      many(6, (at) => at),
      many(3, (at) => ({ between: [at, at + 1] })),
      { state: { in: words } },
    ])
      expect(() => refuseLongPartial(parsePartial(where, '/where'), '/where')).not.toThrow()
  })
})
