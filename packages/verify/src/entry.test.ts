import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeHex } from './bytes.ts'
import { decodeEntry, type EntryHeader, encodeEntry } from './entry.ts'
import { hashLeaf } from './tree.ts'

type Vector = { name: string; header: EntryHeader; body: string; bytes: string; leaf_hash: string }

const file = new URL('../vectors/leaf-encoding.json', import.meta.url)
const { vectors }: { vectors: Vector[] } = JSON.parse(readFileSync(file, 'utf8'))

describe('the encoding of entries', () => {
  test.each(vectors)(
    'the encoding of an entry is the published one: $name',
    ({ header, body, bytes, leaf_hash }) => {
      const encoded = encodeEntry(header, body)
      expect(encodeHex(encoded)).toBe(bytes)
      expect(encodeHex(hashLeaf(encoded))).toBe(leaf_hash)
      expect(decodeEntry(encoded)).toEqual({ header, body })
    },
  )

  test('the encoding gives back header and body exactly, whatever they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), (key, body) => {
        const header = { type: 'record', key }
        expect(decodeEntry(encodeEntry(header, body))).toEqual({ header, body })
      }),
    )
  })

  test.each([
    '',
    'x',
    '{}\n',
    '[]\n',
    '{"type":1}\n',
    '{"a":1,"type":"record"}\n',
    '{"type":"record"}',
  ])('the decoder refuses bytes that are no entry: %j', (text) =>
    expect(() => decodeEntry(Buffer.from(text))).toThrow(/entry/),
  )

  test('the decoder refuses bytes that are not UTF-8', () => {
    expect(() => decodeEntry(Buffer.from('7b2274797065223a2278227d0aff', 'hex'))).toThrow(
      'not UTF-8',
    )
  })
})
