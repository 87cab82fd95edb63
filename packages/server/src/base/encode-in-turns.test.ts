import { expect, test } from 'vitest'
import { charsAtOnce, encodeInTurns, iteratePieces } from './encode-in-turns.ts'

test('a text whose pieces all end in the midst of a character is encoded in turns, and whole', async () => {
  const one = `\u{1f600}${'"'.repeat(charsAtOnce - 2)}`
  const text = '"'.repeat(charsAtOnce - 1) + one.repeat(16)
  const pieces = [...iteratePieces(text)]
  expect(pieces.filter((piece) => /[\ud800-\udbff]$/.test(piece)).length).toBe(16)
  const noted: number[] = []
  const encoded = await encodeInTurns(pieces, (bytes) => noted.push(bytes))
  expect(encoded.toString()).toBe(text)
  expect(noted.length).toBeGreaterThanOrEqual(16)
})
