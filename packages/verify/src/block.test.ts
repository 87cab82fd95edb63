import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeBlockBody,
  encodeBlockBody,
  encodeGroupStarts,
  formatBlockHeader,
  noBlockHash,
  parseBlockHeader,
} from './block.ts'
import { hashLeaf } from './tree.ts'

const header = {
  origin: 'data.example/app',
  height: 1,
  previousHash: noBlockHash,
  time: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  treeSize: 3,
  root: hashLeaf(Uint8Array.of(1)),
  bodyHash: hashLeaf(Uint8Array.of(2)),
  groupsHash: hashLeaf(encodeGroupStarts([0, 2])),
  entryCount: 3,
  epoch: 4,
}

describe('blocks', () => {
  test('a header is written line by line and reads back equal', () => {
    const text = formatBlockHeader(header)
    expect(text.split('\n').slice(0, 6)).toEqual([
      'tollbase-block-v1',
      'data.example/app',
      '1',
      '0'.repeat(64),
      '2026-01-02T03:04:05.006Z',
      '3',
    ])
    expect(parseBlockHeader(text)).toEqual(header)
  })

  test('a header has one form, and every other form is refused', () => {
    const text = formatBlockHeader(header)
    const others = [
      '',
      text.trimEnd(),
      `${text}\n`,
      text.replace('-v1', '-v2'),
      text.replace('\n1\n', '\n01\n'),
      text.replace('Z', '+00:00'),
      text.replace('\n1\n', '\n0\n'),
      text.replace('\n4\n', '\n4.0\n'),
      text.replace('2026', '1e3'),
      text.toUpperCase(),
    ]
    for (const other of others)
      expect(() => parseBlockHeader(other), JSON.stringify(other)).toThrow()
  })

  test('a body gives back its entries, and a cut one is refused', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 9 }),
        fc.nat(),
        (entries, cut) => {
          const body = encodeBlockBody(entries)
          expect(decodeBlockBody(body)).toEqual(entries)
          const short = body.subarray(0, cut % body.length)
          const whole = () => encodeBlockBody(decodeBlockBody(short))
          // A cut between two entries leaves a shorter body, which the body hash refuses; any other one is no body.
          try {
            expect(whole()).toEqual(short)
          } catch (error) {
            expect(String(error)).toMatch('ends inside entry')
          }
        },
      ),
    )
  })
})
