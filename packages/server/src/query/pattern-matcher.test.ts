import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compilePattern } from './pattern.ts'

const atom = fc.constantFrom(
  'a',
  'b',
  'A',
  '.',
  '\\d',
  '\\w',
  '\\S',
  '[ab]',
  '[^a]',
  '[a-c-]',
  '7',
  '-',
)
const quantifier = fc.constantFrom('', '', '', '?', '*', '+', '{2}', '{0,2}', '{1,}')
const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
  pattern: fc
    .array(fc.array(tie('piece'), { maxLength: 4 }), { minLength: 1, maxLength: 3 })
    .map((branches) => branches.map((pieces) => pieces.join('')).join('|')),
  piece: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(atom, quantifier).map((parts) => parts.join('')),
    fc.constantFrom('^', '$', '\\b', '\\B'),
    fc.tuple(tie('pattern'), quantifier).map(([inner, many]) => `(${inner})${many}`),
  ),
}))
const text = fc.string({
  unit: fc.constantFrom('a', 'b', 'c', 'A', '7', '-', ' ', 'ä', '💥'),
  maxLength: 8,
})

test('a pattern matches the same texts as JavaScript`s own engine says', () => {
  fc.assert(
    fc.property(pattern, text, fc.boolean(), (source, sample, ignoreCase) => {
      let ours: ReturnType<typeof compilePattern>['matches']
      try {
        ours = compilePattern(ignoreCase ? `(?i)${source}` : source, '').matches
      } catch {
        // Nested endless quantifiers and the like are refused, which other tests are about.
        return
      }
      const theirs = new RegExp(source, ignoreCase ? 'isuy' : 'suy')
      expect(ours(sample, { steps: 100_000 })).toBe(matchesSomewhere(theirs, sample))
    }),
    { numRuns: 2000, examples: [['\\B', 'a💥a', false]] },
  )
})

/** Begins at whole characters only, as ECMAScript says; without the flag y V8 also looks inside of a surrogate pair. */
function matchesSomewhere(sticky: RegExp, sample: string): boolean {
  const starts = [0]
  for (const character of sample) starts.push((starts.at(-1) ?? 0) + character.length)
  return starts.some((start) => {
    sticky.lastIndex = start
    return sticky.test(sample)
  })
}

test.each(['^(a|a)*$', '^(a?){30}a{30}$', '^a*a*a*a*a*a*a*a*$'])(
  'the pattern %s ends, however many ways there are to match',
  (source) => {
    const { matches } = compilePattern(source, '')
    expect(matches(`${'a'.repeat(20_000)}!`, { steps: 10_000_000 })).toBe(false)
  },
)

test('a class of many ranges takes more steps for each character', () => {
  const odd = Array.from({ length: 200 }, (_, at) => String.fromCodePoint(0x4e00 + 2 * at)).join('')
  const take = (pattern: string) => {
    const budget = { steps: 100_000 }
    compilePattern(pattern, '').matches('b'.repeat(1_000), budget)
    return 100_000 - budget.steps
  }
  expect(take(`[${odd}]c`)).toBeGreaterThan(5 * take('[a-b]c'))
  expect(take(`(?i)[${odd}]c`)).toBeGreaterThan(2 * take(`[${odd}]c`))
})

test('matching takes at most the given number of steps', () => {
  const { matches } = compilePattern('[a-z]{200}Z', '')
  expect(() => matches('a'.repeat(100_000), { steps: 100_000 })).toThrow('too long')
})
