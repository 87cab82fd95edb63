import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Fault } from './fault.ts'
import { toJsonSource } from './json-source.ts'
import {
  addMembers,
  findMemberText,
  findMemberTextInTurns,
  listElementTextsInTurns,
  listItemTexts,
  listKeptInTurns,
  mergeObjectTexts,
  mergeObjectTextsInTurns,
  removeMembers,
} from './json-text.ts'
import { parseTextInTurns } from './parse-json-in-turns.ts'

const refusal = (work: () => unknown): Fault => {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('the texts of records', () => {
  test('the text of a record is exactly what was sent: digits, order, spelling and blanks', () => {
    const records = ['{"b" : 1.50, "a":12345678901234567890}', '{ "x":"\\u00e9\\n" }', '{}']
    expect(
      listItemTexts(toJsonSource(`{"root":"a::b", "data" : [ ${records.join(' ,\n')} ]}`), 'data'),
    ).toEqual(records)
  })

  test('the texts of records are found wherever the member stands, and only at the top level', () => {
    expect(
      listItemTexts(toJsonSource('{"x":{"data":[1]},"data":[{"data":[2]}],"y":[[]]}'), 'data'),
    ).toEqual(['{"data":[2]}'])
  })

  test('the text of a record is that of its value, whatever JSON it is', () => {
    const spaces = fc.constantFrom('', ' ', '\n', '\t ')
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 5 }), spaces, (values, space) => {
        const texts = values.map((value) =>
          JSON.stringify(value, undefined, space === ' ' ? 1 : undefined),
        )
        const body = `{${space}"data"${space}:${space}[${space}${texts.join(`${space},${space}`)}${space}]${space}}`
        expect(listItemTexts(toJsonSource(body), 'data')).toEqual(texts)
      }),
    )
  })

  test.each([
    ['a key twice', '{"data":[{"a":1},{"b":{"c":1,"c":2}}]}', '/data/1'],
    ['a key twice in two spellings', '{"data":[{"a":1,"\\u0061":2}]}', '/data/0'],
    ['U+0000', '{"data":[{"a":"x\\u0000"}]}', '/data/0'],
    ['half of a surrogate pair', '{"data":[{"a":"\\ud800"}]}', '/data/0'],
    ['a number past a double', '{"data":[{"a":1e400}]}', '/data/0'],
    ['a number of too many digits', `{"data":[{"a":${'9'.repeat(401)}}]}`, '/data/0'],
    ['nesting past the limit', `{"data":[${'['.repeat(70)}${']'.repeat(70)}]}`, '/data/0'],
  ])('a body is refused with %s, naming the record', (_, text, pointer) => {
    const fault = refusal(() => listItemTexts(toJsonSource(text), 'data'))
    expect(fault.code).toBe('VALIDATION_FAILED')
    expect(fault.details?.field).toBe(pointer)
  })
})

test('members that were put into an object are taken off again, to the byte, in every spelling of JSON', () => {
  const forms = fc.constantFrom(
    (value: object) => JSON.stringify(value),
    (value: object) => JSON.stringify(value, undefined, 2),
    (value: object) => JSON.stringify(value, undefined, '\t'),
    // As Python's json.dumps separates.
    (value: object) => JSON.stringify(value, undefined, 1).replace(/\n */g, ' '),
  )
  const own = fc.dictionary(fc.constantFrom('root', 'data', 'a"b'), fc.jsonValue(), { minKeys: 1 })
  const extra = fc.dictionary(fc.constantFrom('x', 'y', 'z'), fc.jsonValue())
  fc.assert(
    fc.property(fc.tuple(own, extra), forms, fc.boolean(), ([mine, added], write, isFirst) => {
      const both = isFirst ? { ...added, ...mine } : { ...mine, ...added }
      expect(removeMembers(write(both), ['x', 'y', 'z'])).toBe(write(mine))
    }),
  )
  expect(removeMembers('{"x":1,"root":"a", "y":2 ,"data":[]}', ['x', 'y'])).toBe(
    '{"root":"a" ,"data":[]}',
  )
  expect(removeMembers(' { "x": 1 } ', ['x'])).toBe(' {  } ')
})

test('what is left of a long object is the same in turns', async () => {
  const long = JSON.stringify(Array.from({ length: 50_000 }, (_, at) => ({ at, x: 'é' })))
  const text = `{ "x":1, "data": ${long} , "y":[2],"z" : "€" }`
  const kept = await listKeptInTurns(toJsonSource(text), ['x', 'y'])
  expect(kept.map(({ from, to }) => text.slice(from, to)).join('')).toBe(
    removeMembers(text, ['x', 'y']),
  )
})

test('an object over another one keeps the texts of both, and has the values of a spread of both', () => {
  expect(mergeObjectTexts('{"a":1.50, "b":1e2}', '{ "b" : 7.0e0 }')).toBe('{"a":1.50,"b" : 7.0e0}')
  expect(mergeObjectTexts('{}', '{}')).toBe('{}')
  const object = fc.dictionary(fc.string(), fc.jsonValue())
  fc.assert(
    fc.property(object, object, (own, other) => {
      const merged: unknown = JSON.parse(
        mergeObjectTexts(JSON.stringify(own), JSON.stringify(other)),
      )
      expect(merged).toEqual(JSON.parse(JSON.stringify({ ...own, ...other })))
    }),
  )
})

test('long texts are merged, searched and cut in turns as short ones are at once', async () => {
  const flat = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`m${at}`, at / 3]))
  const own = JSON.stringify({ id: 'a', list: [[], {}, [1, { x: 'é' }]], ...flat, last: '€' })
  const other = '{ "m7" : 7.0e0 , "new":[1] }'
  let turns = 0
  const timer = setInterval(() => {
    turns += 1
  })
  expect(await mergeObjectTextsInTurns(own, other)).toBe(mergeObjectTexts(own, other))
  expect(await mergeObjectTextsInTurns('{}', '{"a":1.50}')).toBe('{"a":1.50}')
  for (const name of ['id', 'list', 'm7', 'last', 'none'])
    expect(await findMemberTextInTurns(own, name)).toBe(findMemberText(own, name))
  for (const items of [[own, own, '1', '"a"', '[]'], [], Object.values(flat).map(String), [own]])
    expect(await listElementTextsInTurns(items.join(' , '))).toEqual(items)
  for (const text of [own, other, '7', '[1.0]'])
    expect(await parseTextInTurns(text)).toEqual(JSON.parse(text))
  clearInterval(timer)
  expect(turns).toBeGreaterThan(1)
})

test('a member has its own text, and another name has none', () => {
  const text = '{"b":{"a":1}, "a" : [1.0 , 2] , "c":null}'
  expect(findMemberText(text, 'a')).toBe('[1.0 , 2]')
  expect(findMemberText(text, 'c')).toBe('null')
  expect(findMemberText(text, 'd')).toBeUndefined()
})

test('a value that is no object has no members', () => {
  for (const text of ['[1]', '"a"', '1', 'null']) expect(findMemberText(text, 'a')).toBeUndefined()
  expect(findMemberText(' {"a":1}', 'a')).toBe('1')
})

test('items of an array keep their texts, whatever they are', async () => {
  expect(await listElementTextsInTurns(' {"a" : 1.0},[","],"]" ,-0 ')).toEqual([
    '{"a" : 1.0}',
    '[","]',
    '"]"',
    '-0',
  ])
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue()), async (values) => {
      const texts = values.map((value) => JSON.stringify(value))
      expect(await listElementTextsInTurns(texts.join())).toEqual(texts)
    }),
  )
})

test('members are put behind those of an object, which keep their bytes', () => {
  expect(addMembers('{"a":1.0 }', [['b', 2]])).toBe('{"a":1.0,"b":2}')
  expect(addMembers('{ }', [['b', '}']])).toBe('{"b":"}"}')
  expect(addMembers('{ }', [])).toBe('{ }')
})
