import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { type Hex, hashTypedData, recoverAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { type Curve, nativeCurve, portableCurve } from './curve.ts'
import { decodeHex, encodeHex } from './hex.ts'
import { makePaymentNetwork } from './networks.ts'
import { deriveAddress, digestTransfer, recoverSigner, signDigest } from './signature.ts'

const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'b1'.repeat(20)}` })
const curves: [string, Curve][] = [['portable', portableCurve]]
if (nativeCurve !== undefined) curves.push(['native', nativeCurve])

const word = (value: bigint) => value.toString(16).padStart(64, '0')
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((raw) => encodeHex(raw))

const authorizations = fc.record({
  from: hex(20),
  to: hex(20),
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: hex(32),
})

const typedData = {
  domain: {
    name: network.asset.name,
    version: network.asset.version,
    chainId: network.chainId,
    verifyingContract: network.asset.address as Hex,
  },
  types: {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ],
  },
  primaryType: 'TransferWithAuthorization',
} as const

function toMessage(a: { from: string; to: string; nonce: string }) {
  return { ...a, from: a.from as Hex, to: a.to as Hex, nonce: a.nonce as Hex } as never
}

describe('the digest of an authorization', () => {
  test('the digest is the EIP-712 hash that viem computes, for any authorization', () => {
    fc.assert(
      fc.property(authorizations, (authorization) => {
        const expected = hashTypedData({ ...typedData, message: toMessage(authorization) })
        expect(encodeHex(digestTransfer(network, authorization))).toBe(expected)
      }),
      { numRuns: 100 },
    )
  })

  test('the digest differs between chains and assets', () => {
    const other = makePaymentNetwork({ chainId: 8453, payTo: network.payTo })
    const [sample] = fc.sample(authorizations, { numRuns: 1, seed: 1 })
    expect(digestTransfer(network, sample!)).not.toEqual(digestTransfer(other, sample!))
  })
})

test('the native curve is there, so that checks are fast where tests run', () => {
  expect(nativeCurve).toBeDefined()
})

describe.each(curves)('recoverSigner on the %s curve', (_, curve) => {
  test('recoverSigner finds the signer of what a wallet signed', async () => {
    for (let round = 0; round < 20; round++) {
      const account = privateKeyToAccount(encodeHex(randomBytes(32)) as Hex)
      const [authorization] = fc.sample(authorizations, 1)
      const signed = { ...authorization!, from: account.address.toLowerCase() }
      const signature = await account.signTypedData({ ...typedData, message: toMessage(signed) })
      const digest = digestTransfer(network, signed)
      expect(recoverSigner(digest, decodeHex(signature), curve)).toBe(signed.from)
    }
  })

  test('recoverSigner agrees with viem on damaged signatures', async () => {
    const digest = randomBytes(32)
    const key = randomBytes(32)
    const good = decodeHex(signDigest(digest, key))
    for (let bit = 0; bit < 520; bit += 3) {
      const damaged = Buffer.from(good)
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const ours = recoverSigner(digest, damaged, curve)
      expect(ours).not.toBe(deriveAddress(key))
      if (ours === undefined) continue
      const theirs = await recoverAddress({
        hash: encodeHex(digest) as Hex,
        signature: encodeHex(damaged) as Hex,
      })
      expect(ours).toBe(theirs.toLowerCase())
    }
  })

  test.each([
    ['r of zero', `${word(0n)}${word(5n)}1b`],
    ['s of zero', `${word(5n)}${word(0n)}1b`],
    ['r of the order', `${word(n)}${word(5n)}1b`],
    ['r past the order', `${word(2n ** 256n - 1n)}${word(5n)}1b`],
    ['s just above half of the order', `${word(1n)}${word(n / 2n + 1n)}1b`],
    ['s of the order', `${word(1n)}${word(n)}1b`],
    ['v of 0', `${word(1n)}${word(1n)}00`],
    ['v of 1', `${word(1n)}${word(1n)}01`],
    ['v of 26', `${word(1n)}${word(1n)}1a`],
    ['v of 29', `${word(1n)}${word(1n)}1d`],
    ['v of 255', `${word(1n)}${word(1n)}ff`],
  ])('recoverSigner refuses %s', (_name, signature) => {
    expect(recoverSigner(Buffer.alloc(32, 7), decodeHex(`0x${signature}`), curve)).toBeUndefined()
  })

  test('recoverSigner accepts s of half of the order, the last low one', () => {
    const signature = decodeHex(`0x${word(1n)}${word(n / 2n)}1b`)
    expect(recoverSigner(Buffer.alloc(32, 7), signature, curve)).toMatch(/^0x[0-9a-f]{40}$/)
  })

  test('recoverSigner refuses the twin (n - s) of a good signature and every other length', () => {
    const digest = randomBytes(32)
    const good = decodeHex(signDigest(digest, randomBytes(32)))
    const s = BigInt(encodeHex(good.subarray(32, 64)))
    const v = good[64] === 27 ? '1c' : '1b'
    const twin = decodeHex(`${encodeHex(good.subarray(0, 32))}${word(n - s)}${v}`)
    expect(recoverSigner(digest, twin, curve)).toBeUndefined()
    expect(recoverSigner(digest, good.subarray(0, 64), curve)).toBeUndefined()
    expect(recoverSigner(digest, Buffer.concat([good, good]), curve)).toBeUndefined()
    expect(recoverSigner(digest, Buffer.alloc(0), curve)).toBeUndefined()
  })
})

test('both curves sign the same bytes and know the same keys', () => {
  for (const [, curve] of curves) {
    for (let seed = 1; seed < 20; seed++) {
      const [digest, key] = [Buffer.alloc(32, seed), Buffer.alloc(32, 255 - seed)]
      expect(Buffer.from(curve.sign(digest, key).compact)).toEqual(
        Buffer.from(portableCurve.sign(digest, key).compact),
      )
      expect(curve.sign(digest, key).recovery).toBe(portableCurve.sign(digest, key).recovery)
      expect(Buffer.from(curve.publicKey(key) ?? [])).toEqual(
        Buffer.from(portableCurve.publicKey(key) ?? []),
      )
    }
    expect(curve.publicKey(Buffer.alloc(32))).toBeUndefined()
    expect(curve.publicKey(decodeHex(`0x${word(n)}`))).toBeUndefined()
  }
})
