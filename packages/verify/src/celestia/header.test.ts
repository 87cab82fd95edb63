import { recordedHeaders } from '@tollbase/testing/celestia/vectors'
import { describe, expect, test } from 'vitest'
import {
  type CelestiaHeader,
  formatBlockHash,
  getDataRoot,
  hashHeader,
  parseHeader,
  parseHeaderTime,
} from './header.ts'

const [first] = recordedHeaders
if (first === undefined) throw new Error('there are headers')

describe('the header of a block', () => {
  test.each(recordedHeaders.map((one) => [one.header.chain_id, one.header.height, one] as const))(
    'of %s at height %s has the hash that its validators signed',
    (_chain, _height, { header, block_hash }) => {
      expect(formatBlockHash(hashHeader(parseHeader(header)))).toBe(block_hash)
    },
  )

  test('has another hash after a change of any of its members', () => {
    for (const { header, block_hash } of recordedHeaders)
      for (const changed of changeTexts(header)) {
        let hash: string
        try {
          hash = formatBlockHash(hashHeader(parseHeader(changed)))
        } catch (error) {
          expect(error).toMatchObject({ name: 'FormatError' })
          continue
        }
        expect(hash, JSON.stringify(changed)).not.toBe(block_hash)
      }
  })

  test.each<[string, Partial<Record<keyof CelestiaHeader, unknown>>]>([
    ['a number for a height', { height: 7 }],
    ['a height with a zero before it', { height: '01' }],
    ['a height of 20 digits', { height: '9'.repeat(20) }],
    ['a negative height', { height: '-1' }],
    ['a time in another zone', { time: '2023-09-26T11:52:07+00:00' }],
    ['a time with a zero at its end', { time: '2023-09-26T11:52:07.50Z' }],
    ['a day that is none', { time: '2023-02-30T11:52:07Z' }],
    ['a time before 1970', { time: '1969-12-31T23:59:59Z' }],
    ['a hash in lower case', { app_hash: 'ab'.repeat(32) }],
    ['half of a byte', { app_hash: 'ABC' }],
    ['a text without end', { chain_id: 'x'.repeat(100_000) }],
    ['no version', { version: undefined }],
    ['a list for a version', { version: [] }],
    ['null for a hash', { data_hash: null }],
  ])('with %s is refused', (_, change) => {
    expect(() => hashHeader(parseHeader({ ...first.header, ...change }))).toThrow(
      expect.objectContaining({ name: 'FormatError' }),
    )
  })

  test('has a data root of 32 bytes', () => {
    expect(() => getDataRoot({ ...first.header, data_hash: 'AB' })).toThrow('32 bytes')
  })

  test('has a time of which we show milliseconds', () => {
    expect(parseHeaderTime({ time: '2023-06-23T10:47:03.421914336Z' })).toBe(
      '2023-06-23T10:47:03.421Z',
    )
    expect(parseHeaderTime({ time: '2023-06-23T10:47:03Z' })).toBe('2023-06-23T10:47:03.000Z')
  })
})

/** Yields the value with one text, or number, of it changed at a time: a character in the middle, and one at the end. */
function* changeTexts(value: object): Generator<Record<string, unknown>> {
  for (const [name, member] of Object.entries(value)) {
    const put = (changed: unknown) => ({ ...value, [name]: changed })
    if (typeof member === 'object') for (const one of changeTexts(member)) yield put(one)
    else if (typeof member === 'number') yield put(member + 1)
    else if (member !== '') {
      const text = String(member)
      const turn = (at: number) =>
        text.slice(0, at) + (text[at] === '1' ? '2' : '1') + text.slice(at + 1)
      yield put(turn(Math.floor(text.length / 2)))
      yield put(turn(text.length - 1))
      yield put('')
    }
  }
}
