import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findBreak } from './json-break.ts'

describe('the place at which a text stops being JSON', () => {
  test.each([
    ['{"a":1,', 1, 8],
    ['{"a":x}', 1, 6],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
    ["{'a': 1}", 1, 2],
    ['[1, 2,]', 1, 7],
    ['{"a": tru}', 1, 7],
    ['{"a": 01}', 1, 7],
    ['{"a":1}}', 1, 8],
    ['{"a":"b\nc"}', 1, 6],
    ['{"a" 1}', 1, 6],
    ['[1 2]', 1, 4],
    ['{"a":1]', 1, 7],
    ['', 1, 1],
  ])('the text %j stops being JSON at line %d, column %d', (text, line, column) => {
    expect(() => JSON.parse(text)).toThrow()
    expect(findBreak(text)).toEqual({ line, column })
  })

  test('the place is found in every text that JSON.parse refuses, and after all of a text that it takes', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', '"', '}', ']', ',', ':', 'x', '\\'),
        (json, cut, more) => {
          const at = cut % (json.length + 1)
          const text = json.slice(0, at) + more + json.slice(at + 1)
          const found = findBreak(text)
          const whole = { line: 1, column: text.length + 1 }
          try {
            JSON.parse(text)
            expect(found).toEqual(whole)
          } catch (error) {
            expect(error).toBeInstanceOf(SyntaxError)
            expect(found?.column).toBeLessThanOrEqual(text.length + 1)
          }
        },
      ),
    )
  })

  test('the search for the place has an end', () => {
    expect(findBreak(`[${'1,'.repeat(300_000)}`)).toBeUndefined()
  })
})
