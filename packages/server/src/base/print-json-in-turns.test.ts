import { expect, test } from 'vitest'
import { isShortJson, printJsonInTurns } from './print-json-in-turns.ts'
import { wrapJsonText } from './wrap-json-text.ts'

const many = Array.from({ length: 5_000 }, (_, at) => ({ at, text: 'ä"\\\u2028😀'.repeat(5) }))

test('the bytes that are printed are told on the way, and a refusal of them ends it', async () => {
  const told: number[] = []
  const text = await printJsonInTurns(many, (bytes) => told.push(bytes))
  expect(told.length).toBeGreaterThan(3)
  expect(told).toEqual(told.toSorted((a, b) => a - b))
  expect(told.at(-1)).toBeLessThanOrEqual(text.length)
  const refuse = () => {
    throw new Error('too much')
  }
  await expect(printJsonInTurns(many, refuse)).rejects.toThrow('too much')
})

test('a list of few objects with many members is no short one', () => {
  const queries = Array.from({ length: 3 }, () => ({ ...Array.from({ length: 10 }, () => 'x') }))
  expect(isShortJson({ queries })).toBe(false)
  expect(isShortJson({ queries: queries.slice(0, 1) })).toBe(true)
})

test.each([
  ['a wrapped text', { a: wrapJsonText('{"b":[1,"ä"]}') }],
  ['a number', -0],
  ['nothing', null],
  ['a text', 'ä"'],
  ['an empty list', []],
  ['an empty object', {}],
  ['members that are none', { a: undefined, b: () => 1, c: [undefined, Number.NaN], d: 1 }],
  ['a time', { at: new Date(0), list: [new Date(1)] }],
  ['lists in lists', [[[[1], []], {}], [{ a: { b: [{ c: 1 }] } }]]],
  ['a long list', many],
  ['an object of long lists', { count: 2, 'ä"': many, more: { many } }],
])('%s is printed as JSON.stringify prints it', async (_, value) => {
  expect(String(await printJsonInTurns(value))).toBe(JSON.stringify(value))
})
