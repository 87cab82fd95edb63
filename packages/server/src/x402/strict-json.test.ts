import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OtherNumber, parseStrictJson, StrictJsonError } from './strict-json.ts'

test('the parser reads every JSON value as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(0, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent)
      if (/__proto__|constructor|prototype/.test(text)) return
      expect(plain(parseStrictJson(text))).toEqual(plain(JSON.parse(text)))
    }),
  )
})

test('the parser accepts no text that JSON.parse refuses', () => {
  const pieces = fc.constantFrom('{', '}', '[', ']', ',', ':', '"', 'a', '\\', '0', '1', '-', '.')
  const words = fc.constantFrom('e', 'true', 'null', ' ', '\n', '\u0001', '"k"', '\\u00', '\ufeff')
  const texts = fc.array(fc.oneof(pieces, words), { maxLength: 12 }).map((all) => all.join(''))
  fc.assert(
    fc.property(texts, (text) => {
      const strict = outcome(() => parseStrictJson(text))
      const loose = outcome(() => JSON.parse(text))
      if (!loose) expect(strict).toBe(false)
      // The other way round it differs only by what is refused on purpose.
      if (loose && !strict) expect(() => parseStrictJson(text)).toThrow(/twice|deeper/)
    }),
    { numRuns: 3000 },
  )
})

test('the parser reads and refuses a text that it can read natively as it does token by token', () => {
  const pieces = fc.constantFrom('{', '}', '[', ']', ',', '{"a":', '"b":', '"a"', '"__proto__":')
  const scalars = fc.constantFrom('0', '-0', '1.0', '1e3', '9007199254740993', 'true', 'null')
  const deep = fc.integer({ min: 14, max: 18 }).map((n) => '['.repeat(n) + ']'.repeat(n))
  const parts = fc.array(fc.oneof(pieces, scalars, deep), { maxLength: 9 })
  const words = fc.constantFrom('\ud800', 'a\udc00', '\u{1f600}', '7', 'toJSON', '__proto__')
  const spelled = fc.dictionary(words, fc.oneof(words, fc.jsonValue({ maxDepth: 2 })))
  const texts = fc.oneof(
    parts.map((all) => all.join('')),
    spelled.map((value) => JSON.stringify(value)),
  )
  const read = (text: string) => {
    try {
      return JSON.stringify(parseStrictJson(text))
    } catch (error) {
      return String(error).replace(/ at character \d+/, '')
    }
  }
  fc.assert(
    fc.property(texts, (text) => {
      // With a space at its end it is not spelled as JSON.stringify does.
      expect(read(text)).toBe(read(`${text} `))
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['{"a":1,"a":1}', /"a" twice/],
  ['{"a":1,"\\u0061":2}', /"a" twice/],
  ['{"__proto__":{}}', /__proto__/],
  ['{"a":{"constructor":1}}', /constructor/],
  ['"\\ud800"', /surrogate/],
  ['{"\\ud800":1}', /surrogate/],
  ['[01]', /not valid JSON/],
  ['\ufeff{}', /not valid JSON/],
  ['{} {}', /not valid JSON/],
  ['{"a":1,}', /not valid JSON/],
  ['', /not valid JSON/],
  [`${'['.repeat(50)}${']'.repeat(50)}`, /nested deeper/],
  [`"${'a'.repeat(16_000)}`, /not valid JSON/],
])('the parser refuses %s', (text, problem) => {
  expect(() => parseStrictJson(text)).toThrow(StrictJsonError)
  expect(() => parseStrictJson(text)).toThrow(problem)
})

test.each(['1.0', '1e3', '-0', '9007199254740993', '1E400'])(
  'the parser keeps %s as its digits, so that no field takes it for an integer',
  (text) => {
    expect(parseStrictJson(text)).toEqual(new OtherNumber(text))
  },
)

/** Numbers of both readers made alike, prototypes and minus zero aside. */
function plain(value: unknown): unknown {
  if (value instanceof OtherNumber) return Number(value.text) + 0
  if (typeof value === 'number') return value + 0
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]))
}

function outcome(run: () => unknown): boolean {
  try {
    run()
    return true
  } catch {
    return false
  }
}
