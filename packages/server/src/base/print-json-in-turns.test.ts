import { expect, test } from 'vitest'
import { printJsonInTurns } from './print-json-in-turns.ts'

const many = Array.from({ length: 5_000 }, (_, at) => ({ at, text: 'ä"\\\u2028😀'.repeat(5) }))

test.each([
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
