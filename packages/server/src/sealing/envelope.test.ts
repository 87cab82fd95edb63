import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deriveKeyToken, makeNonce, openText, type SealedPlace, sealText } from './envelope.ts'

const key = { epoch: 3, key: randomBytes(32) }
const place: SealedPlace = { app: 'shop', collection: 'col_1', token: 'a token' }
const findKey = (epoch: number) => (epoch === key.epoch ? key.key : undefined)
const seal = (text: string) => sealText(key, text, { place, nonce: makeNonce(randomBytes) })

describe('envelopes', () => {
  test('every text comes back as it was sealed, and no two envelopes of it are alike', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const [one, other] = [seal(text), seal(text)]
        expect(openText(findKey, one, place)).toBe(text)
        expect(one).not.toBe(other)
      }),
    )
  })

  test('an envelope whose bytes, epoch or place differ in anything is not opened', () => {
    const envelope = JSON.parse(seal('{"id":"1"}'))
    const open = (changed: object, at: SealedPlace = place) =>
      openText(() => key.key, JSON.stringify({ ...envelope, ...changed }), at)
    expect(open({})).toBe('{"id":"1"}')
    for (const at of [{ app: 'other' }, { collection: 'col_2' }, { token: 'another' }])
      expect(() => open({}, { ...place, ...at })).toThrow()
    const bytes = Buffer.from(envelope.ciphertext, 'base64url')
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => open({ ciphertext: changed.toString('base64url') })).toThrow()
    }
    const nonce = Buffer.from(envelope.nonce, 'base64url')
    const flipped = Buffer.concat([nonce.subarray(0, 11), Buffer.from([(nonce[11] ?? 0) ^ 1])])
    expect(() => open({ nonce: flipped.toString('base64url') })).toThrow()
    expect(() => open({ nonce: '' })).toThrow()
    expect(() => open({ ciphertext: envelope.ciphertext.slice(0, 8) })).toThrow()
    expect(() => open({ epoch: 4 })).toThrow()
    expect(() => open({ v: 2 })).toThrow()
    expect(() => openText(() => undefined, seal('x'), place)).toThrow(
      'the data key of epoch 3 is gone',
    )
  })

  test('a key has one token under one key of tokens, and others under others', () => {
    const [one, other] = [randomBytes(32), randomBytes(32)]
    expect(deriveKeyToken(one, 'a')).toBe(deriveKeyToken(one, 'a'))
    expect(deriveKeyToken(one, 'a')).not.toBe(deriveKeyToken(one, 'b'))
    expect(deriveKeyToken(one, 'a')).not.toBe(deriveKeyToken(other, 'a'))
  })
})
