import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalizeJson } from './canonical.ts'

describe('canonical JSON', () => {
  test('canonical JSON sorts members by UTF-16 code units and writes no white space', () => {
    const value = {
      '€': 1,
      '\r': 2,
      '1': 3,
      '😂': 4,
      ö: 5,
      '\ufb33': 6,
      list: [true, null, 'a"b'],
      a: { z: 0, b: -0 },
    }
    expect(canonicalizeJson(value)).toBe(
      '{"\\r":2,"1":3,"a":{"b":0,"z":0},"list":[true,null,"a\\"b"],"ö":5,"€":1,"😂":4,"\ufb33":6}',
    )
  })

  test('canonical JSON is one text for a value, however its members were ordered, and means the same', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.maxSafeInteger(), fc.boolean())),
        (value) => {
          const reversed = Object.fromEntries(Object.entries(value).reverse())
          expect(canonicalizeJson(reversed)).toBe(canonicalizeJson(value))
          expect(canonicalizeJson(JSON.parse(canonicalizeJson(value)))).toBe(
            canonicalizeJson(value),
          )
        },
      ),
    )
  })

  test.each([1.5, Number.NaN, 2 ** 53, '\ud800', undefined, 1n, [undefined]])(
    'canonical JSON refuses a value that has no single form: %s',
    (value) => {
      expect(() => canonicalizeJson(value)).toThrow()
    },
  )

  test('canonical JSON refuses nesting that would exhaust the stack', () => {
    let deep: unknown = 0
    for (let level = 0; level < 100; level++) deep = [deep]
    expect(() => canonicalizeJson(deep)).toThrow('nested deeper')
  })
})
