import { join } from 'node:path'
import { expect, test } from 'vitest'

const script = join(import.meta.dirname, '../../scripts/write-spreads.mjs')
const { writeSpreads }: { writeSpreads: (text: string) => string } = await import(script)

test.each([
  ['f({ ...a, b: 1 })', 'f({ ...null, ...a, b: 1 })'],
  ['f({ ...a, ...b })', 'f({ ...null, ...a, ...b })'],
  ['f({ ...{ ...a, b }, c })', 'f({ ...null, ...{ ...null, ...a, b }, c })'],
  ['f([{ ...a, b }], { ...a })', 'f([{ ...null, ...a, b }], { ...a })'],
  ['f({ b: 1, ...a }, [...a, 1], "{ ...a, b }")', 'f({ b: 1, ...a }, [...a, 1], "{ ...a, b }")'],
  ['const { ...a } = { b: 1, c: 2 }', 'const { ...a } = { b: 1, c: 2 }'],
])('%s is written as %s', (text, written) => {
  expect(writeSpreads(text)).toBe(written)
})

test('an object has the same members in the same order, own and enumerable, and one that is called __proto__ is none', () => {
  const given = JSON.parse('{"b":1,"__proto__":{"c":2},"a":3}')
  const make = (text: string) => new Function('given', `return ${text}`)(given)
  for (const text of ['{ ...given, b: 4, d: 5 }', '{ ...undefined, ...given, ...{ a: 6 } }']) {
    const [before, after] = [text, writeSpreads(`(${text})`)].map((one) => make(`(${one})`))
    expect(JSON.stringify(after)).toBe(JSON.stringify(before))
    expect(Object.getPrototypeOf(after)).toBe(Object.prototype)
    expect(Object.getOwnPropertyDescriptors(after)).toEqual(
      Object.getOwnPropertyDescriptors(before),
    )
  }
})
