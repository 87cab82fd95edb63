import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeBase64, encodeUtf8 } from './bytes.ts'
import {
  computeKeyId,
  formatCheckpoint,
  formatNote,
  formatVerifierKey,
  parseCheckpoint,
  parseVerifierKey,
  verifyCheckpoint,
  verifySignature,
} from './checkpoint.ts'
import { hashLeaf } from './tree.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const publicKey = Buffer.from(
  String(createPublicKey(privateKey).export({ format: 'jwk' }).x),
  'base64url',
)
const name = 'data.example/app'
const vkey = formatVerifierKey(name, publicKey)

describe('checkpoints', () => {
  test('a verifier key printed by another implementation is read, and one whose id is wrong refused', () => {
    expect(parseVerifierKey(knownKey).name).toBe('PeterNeumann')
    expect(formatVerifierKey('PeterNeumann', parseVerifierKey(knownKey).publicKey)).toBe(knownKey)
    expect(() => parseVerifierKey(knownKey.replace('c74f', 'c74e'))).toThrow('id does not belong')
  })

  test('a written checkpoint reads back equal and verifies, for every origin, size and root', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z.]{1,20}\/[a-z-]{1,20}$/),
        fc.maxSafeNat(),
        fc.uint8Array(),
        (origin, size, seed) => {
          const root = hashLeaf(seed)
          const note = signedNote(formatCheckpoint({ origin, size, root }), origin)
          expect(parseCheckpoint(note)).toMatchObject({ origin, size })
          const own = formatVerifierKey(origin, publicKey)
          expect(verifyCheckpoint(note, own)).toMatchObject({ ok: true, checkpoint: { root } })
        },
      ),
      { numRuns: 30 },
    )
  })

  test('no note verifies after one character was changed', () => {
    const note = signedNote(
      formatCheckpoint({ origin: 'data.example/app', size: 7, root: hashLeaf(encodeUtf8('x')) }),
    )
    for (let index = 0; index < note.length; index++) {
      const other = note[index] === 'A' ? 'B' : 'A'
      const changed = note.slice(0, index) + other + note.slice(index + 1)
      expect(verifyCheckpoint(changed, vkey).ok, `character ${index}`).toBe(false)
    }
  })

  test('signatures of witnesses beside ours do not disturb, and do not count alone', () => {
    const text = formatCheckpoint({
      origin: 'data.example/app',
      size: 7,
      root: hashLeaf(encodeUtf8('x')),
    })
    const witness = {
      name: 'witness',
      keyId: computeKeyId('witness', hashLeaf(encodeUtf8('w'))),
      signature: new Uint8Array(72),
    }
    const ours = {
      name,
      keyId: computeKeyId(name, publicKey),
      signature: sign(null, encodeUtf8(text), privateKey),
    }
    expect(verifyCheckpoint(formatNote(text, [witness, ours]), vkey).ok).toBe(true)
    expect(verifyCheckpoint(formatNote(text, [ours, witness, ours]), vkey)).toEqual({
      ok: false,
      problem: `the checkpoint has several signatures of ${name}`,
    })
    expect(verifyCheckpoint(formatNote(text, [witness]), vkey)).toEqual({
      ok: false,
      problem: `the checkpoint is not signed by ${name}`,
    })
  })

  test.each([
    '',
    'x',
    'a\n1\n',
    'a\n01\nAA==\n\n— k AAAAAAA=\n',
    'a\n1\nAA==\n\n',
    '\n\n\n\n— k AAAAAAA=\n',
  ])('a note of another form is refused and never thrown over: %j', (note) =>
    expect(verifyCheckpoint(note, vkey).ok).toBe(false),
  )

  test('a signature that was found right stays right for its own text and key alone', () => {
    const other = ed25519.keygen().publicKey
    const message = encodeUtf8('the text that was signed')
    const signature = sign(null, message, privateKey)
    for (let time = 0; time < 2; time++) {
      expect(verifySignature(signature, message, publicKey)).toBe(true)
      expect(verifySignature(signature, encodeUtf8('another text'), publicKey)).toBe(false)
      expect(verifySignature(signature, message, other)).toBe(false)
      expect(verifySignature(signature.subarray(1), message, publicKey)).toBe(false)
      expect(verifySignature(Buffer.concat([signature, signature]), message, publicKey)).toBe(false)
    }
  })

  test('a signature made by the pure implementation is the one of node:crypto', () => {
    const { d } = privateKey.export({ format: 'jwk' })
    const message = encodeUtf8('same')
    const pure = ed25519.sign(message, Buffer.from(String(d), 'base64url'))
    expect(Buffer.from(pure).equals(sign(null, message, privateKey))).toBe(true)
    expect(decodeBase64('')).toEqual(new Uint8Array(0))
  })
})

/** The key of golang.org/x/mod/sumdb/note's documentation. */
const knownKey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'

function signedNote(text: string, by = name): string {
  const signature = sign(null, encodeUtf8(text), privateKey)
  return formatNote(text, [{ name: by, keyId: computeKeyId(by, publicKey), signature }])
}
