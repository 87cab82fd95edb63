import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ResultCache } from './result-cache.ts'

const at = (height: number) => [{ height, sequence: 0, leaf: height }]

function makeCache(bytesMax: number) {
  const results: string[] = []
  const answers = new ResultCache({ bytesMax, onLookup: (result) => results.push(result) })
  return { answers, results }
}

test('the counted memory stays below the bound and a found answer is the kept one, whatever is kept and asked for', () => {
  const bytesMax = 20_000
  const step = fc.record({
    key: fc.integer({ min: 0, max: 60 }),
    text: fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.nat(4_000).map((length) => 'x'.repeat(length)),
    ),
    isRead: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 200 }), (steps) => {
      const { answers } = makeCache(bytesMax)
      const positions = at(1)
      const kept = new Map<string, string>()
      for (const { key: number, text, isRead } of steps) {
        const key = `key ${number}`
        if (isRead) {
          const found = answers.find(key, positions)
          if (found !== undefined) expect(found).toEqual(Buffer.from(kept.get(key) ?? ''))
        } else {
          answers.put(key, positions, text)
          kept.set(key, text)
        }
        expect(answers.bytes).toBeLessThanOrEqual(bytesMax)
        expect(answers.bytes).toBeGreaterThanOrEqual(0)
      }
    }),
    { numRuns: 30 },
  )
})

test('the answer that was unused the longest goes first', () => {
  const { answers } = makeCache(16_000)
  const positions = at(1)
  const text = 'x'.repeat(1_000)
  const keys = 'abcdefghij'.split('')
  for (const key of keys) answers.put(key, positions, text)
  answers.find('a', positions)
  answers.put('k', positions, text)
  const found = [...keys, 'k'].filter((key) => answers.find(key, positions) !== undefined)
  expect(found.join('')).toBe('acdefghijk')
})

test('an answer past an eighth of the room is not kept, and takes no other along', () => {
  const { answers } = makeCache(16_000)
  answers.put('small', at(1), 'x')
  const before = answers.bytes
  answers.put('large', at(1), 'x'.repeat(2_000))
  expect(answers.bytes).toBe(before)
  answers.put('just', at(1), 'x'.repeat(16_000 / 8 - 512 - 2 * 'just'.length))
  expect(answers.bytes).toBe(before + 2_000)
})

test('an answer is found at its positions alone: not after a change, and not for a chain that was opened anew at the same height', () => {
  const { answers, results } = makeCache(16_000)
  const [positions, others] = [at(1), at(1)]
  answers.put('a', positions, 'one')
  expect(answers.find('a', positions)).toEqual(Buffer.from('one'))
  expect(answers.find('a', others)).toBeUndefined()
  expect(answers.find('a', [...positions, ...others])).toBeUndefined()
  expect(answers.find('a', [])).toBeUndefined()
  answers.put('a', others, 'two')
  expect(answers.find('a', others)).toEqual(Buffer.from('two'))
  expect(answers.find('a', positions)).toBeUndefined()
  expect(results).toEqual(['hit', 'miss', 'miss', 'miss', 'hit', 'miss'])
})

test('a cache with no room keeps nothing', () => {
  const { answers } = makeCache(0)
  answers.put('a', at(1), '')
  expect(answers.isOff).toBe(true)
  expect(answers.bytes).toBe(0)
})
