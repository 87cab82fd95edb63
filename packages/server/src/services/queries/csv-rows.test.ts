import { describe, expect, test } from 'vitest'
import { pieceChars } from '../../base/encode-in-turns.ts'
import { toListSource } from '../../base/json-source.ts'
import { iterateCsv, locateCells } from './csv-rows.ts'

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at))

/** Returns the lengths of the parts that a CSV of these records is made of, beside the whole. */
async function cut(records: readonly string[]) {
  const list = toListSource(records.join(','))
  const cells = await locateCells(list, undefined, () => undefined)
  const parts = [...iterateCsv(list, cells, () => undefined)]
  return { whole: parts.join(''), longest: Math.max(...parts.map(({ length }) => length)) }
}

describe('no part of a CSV is more than a cell, or than a piece of a long one, as others have turns between parts', () => {
  const texts: readonly (readonly [kind: string, text: string])[] = [
    ['plain text', 'x'.repeat(pieceChars - 2)],
    ['quotation marks', '"'.repeat(pieceChars * 2)],
    ['a little more than a piece', ','.repeat(pieceChars - 1)],
  ]

  test.each(texts)('cells of one row: %s', async (_, text) => {
    const row = Object.fromEntries(many(8, (at) => [`c${at}`, text]))
    const { whole, longest } = await cut([JSON.stringify(row)])
    expect(longest).toBeLessThanOrEqual(2 * pieceChars + 8)
    const cell = /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
    const expected = `${Object.keys(row).join()}\r\n${many(8, () => cell).join()}\r\n`
    expect(whole === expected).toBe(true)
  })

  test.each(texts)('names of the header: %s', async (_, text) => {
    const records = many(8, (at) => JSON.stringify({ [`${at}${text}`]: at }))
    const { whole, longest } = await cut(records)
    expect(longest).toBeLessThanOrEqual(2 * pieceChars + 8)
    const [header = ''] = whole.split('\r\n')
    const cells = many(8, (at) => {
      const name = `${at}${text.replaceAll('"', '""')}`
      return /[",]/.test(text) || name.length > pieceChars ? `"${name}"` : name
    })
    expect(header === cells.join()).toBe(true)
  })
})
