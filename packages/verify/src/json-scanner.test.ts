import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isValueToken, JsonScanner, type JsonText, type JsonToken } from './json-scanner.ts'

const spaces = fc.constantFrom(0, 1, '\t', '\n')
const json = fc
  .tuple(fc.jsonValue({ maxDepth: 6 }), spaces)
  .map(([value, space]) => JSON.stringify(value, undefined, space))

/** Texts of which most are no longer JSON: a few characters are dropped and put. */
const changed = fc
  .tuple(
    fc.oneof(json, fc.constantFrom('{"a":"\\u00e9\\\\"}', '[-1.5e+3,true,"\\""]', '"\u007f"')),
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat(2),
        fc.oneof(
          fc.constantFrom(...'[]{},:"\\ 01-.eEntu\n\u0000\u007f\u00a0\ufeff'.split('')),
          fc.constantFrom('""', ',,', '[]', '{}', 'null', 'tru', '\\u00', '\\u0061', '"a":'),
        ),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce((all, [place, dropped, put]) => {
      const at = place % (all.length + 1)
      return all.slice(0, at) + put + all.slice(at + dropped)
    }, text),
  )

test('the tokens of a text say what JSON.parse says', () => {
  fc.assert(
    fc.property(json, (text) => {
      const scanner = new JsonScanner(text)
      expect(build(scanner, scanner.next())).toEqual(JSON.parse(text))
      expect([scanner.next(), scanner.start]).toEqual(['end', text.length])
    }),
    { numRuns: 2000 },
  )
})

test('a text is broken, or a token of it misspelled, where JSON.parse refuses it, and nowhere else', () => {
  fc.assert(
    fc.property(changed, (text) => {
      expect(isJson(text), text).toBe(isTakenByParse(text))
    }),
    { numRuns: 5000 },
  )
})

test('a text that is read a part at a time has the same tokens, however short the parts are', () => {
  const blanks = fc.array(fc.constantFrom(' ', '\n', '\t\r '), { maxLength: 30 })
  const spaced = fc
    .tuple(json, blanks)
    .map(([text, some]) => text.replaceAll(/[,:[{]/g, (mark) => mark + some.join('')))
  fc.assert(
    fc.property(
      fc.oneof(json, spaced, changed),
      fc.integer({ min: 1, max: 40 }),
      (text, partMax) => {
        const tokens = listTokens(text)
        const broken = text.length - (tokens.at(-1)?.start ?? 0)
        const tokenMax = Math.max(broken, ...tokens.map(({ start, end }) => end - start))
        const spaceMax = Math.max(
          ...tokens.map(({ start }, at) => start - (tokens[at - 1]?.end ?? 0)),
        )
        const { length } = text
        const read = (from: number, to: number) => text.slice(from, to)
        expect(listTokens({ length, read, partMax, tokenMax, spaceMax })).toEqual(tokens)
      },
    ),
    { numRuns: 3000 },
  )
})

test.each([
  ['string', `["${'a'.repeat(20)}"]`],
  ['scalar', `[${'1'.repeat(20)}]`],
])(
  'a %s that is longer than the longest token is told to be so, and not to be broken',
  (kind, text) => {
    const read = (from: number, to: number) => text.slice(from, to)
    const bounds = { partMax: 4, tokenMax: 10, spaceMax: 10 }
    const scanner = new JsonScanner({ length: text.length, read, ...bounds })
    expect([scanner.next(), scanner.next(), scanner.end - scanner.start]).toEqual(['[', kind, 11])
  },
)

test('a text with more space than there may be is broken in it', () => {
  const text = `[1,${' '.repeat(40)}2]`
  const read = (from: number, to: number) => text.slice(from, to)
  const bounds = { partMax: 4, tokenMax: 10, spaceMax: 10 }
  const scanner = new JsonScanner({ length: text.length, read, ...bounds })
  expect([scanner.next(), scanner.next(), scanner.next()]).toEqual(['[', 'scalar', 'broken'])
  expect(scanner.start).toBeLessThan(20)
})

test('a value is skipped to its end, whatever it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), spaces, (first, second, space) => {
      const text = JSON.stringify([first, second], undefined, space)
      const scanner = new JsonScanner(text)
      scanner.next()
      const found = [first, second].map(() => {
        const token = scanner.next()
        const { start } = scanner
        scanner.skipValue(token)
        return JSON.parse(text.slice(start, scanner.end))
      })
      expect(found).toEqual(JSON.parse(text))
      expect([scanner.next(), scanner.next()]).toEqual([']', 'end'])
    }),
  )
})

test('a broken text stays broken, and skipping in it ends', () => {
  const scanner = new JsonScanner('[[1,')
  scanner.skipValue(scanner.next())
  expect([scanner.next(), scanner.start]).toEqual(['broken', 4])
})

test('nesting of any depth is scanned', () => {
  const depth = 200_000
  const scanner = new JsonScanner('['.repeat(depth) + ']'.repeat(depth))
  scanner.skipValue(scanner.next())
  expect([scanner.depth, scanner.next()]).toEqual([0, 'end'])
})

function build(scanner: JsonScanner, token: JsonToken): unknown {
  if (token === 'string') return scanner.parseString()
  if (token === 'scalar') return JSON.parse(scanner.getTokenText())
  if (token === '[') {
    const list: unknown[] = []
    let inner = scanner.next()
    for (; isValueToken(inner); inner = scanner.next()) list.push(build(scanner, inner))
    expect(inner).toBe(']')
    return list
  }
  expect(token).toBe('{')
  const members: [string, unknown][] = []
  let inner = scanner.next()
  for (; inner === 'key'; inner = scanner.next()) {
    const key = scanner.parseString()
    members.push([key, build(scanner, scanner.next())])
  }
  expect(inner).toBe('}')
  return Object.fromEntries(members)
}

function listTokens(text: string | JsonText) {
  const scanner = new JsonScanner(text)
  const tokens: { token: JsonToken; start: number; end: number; text: string }[] = []
  for (;;) {
    const token = scanner.next()
    const { start } = scanner
    if (token === 'end' || token === 'broken') return [...tokens, { token, start, end: start }]
    tokens.push({ token, start, end: scanner.end, text: scanner.getTokenText() })
  }
}

function isJson(text: string): boolean {
  const scanner = new JsonScanner(text)
  for (;;) {
    const token = scanner.next()
    if (token === 'end' || token === 'broken') return token === 'end'
    const isSpelled = token === 'key' || token === 'string' || token === 'scalar'
    if (isSpelled && !scanner.isWellSpelled()) return false
  }
}

function isTakenByParse(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
