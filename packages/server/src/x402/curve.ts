import { createRequire } from 'node:module'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { assert } from '../base/assert.ts'

/** ECDSA on secp256k1 over 32-byte digests; compact signatures (r, s) have 64 bytes. */
export type Curve = {
  /** Recovers the public key without its leading 4, 64 bytes; undefined if there is none. */
  readonly recover: (
    digest: Uint8Array,
    compact: Uint8Array,
    recovery: 0 | 1,
  ) => Uint8Array | undefined
  /** Signs deterministically (RFC 6979), with low s. */
  readonly sign: (
    digest: Uint8Array,
    key: Uint8Array,
  ) => { readonly compact: Uint8Array; readonly recovery: 0 | 1 }
  /** Returns the public key, 64 bytes; undefined if the private key is zero or past the order. */
  readonly publicKey: (key: Uint8Array) => Uint8Array | undefined
}

/** The part of the package secp256k1 that is used; it has no types of its own. */
type Bindings = {
  readonly ecdsaRecover: (
    compact: Uint8Array,
    recovery: number,
    digest: Uint8Array,
    compressed: boolean,
  ) => Uint8Array
  readonly ecdsaSign: (
    digest: Uint8Array,
    key: Uint8Array,
  ) => { readonly signature: Uint8Array; readonly recid: number }
  readonly publicKeyCreate: (key: Uint8Array, compressed: boolean) => Uint8Array
}

/** The implementation in JavaScript: it runs on every platform, about forty times slower. */
export const portableCurve: Curve = {
  recover: (digest, compact, recovery) =>
    orUndefined(() =>
      new secp256k1.Signature(...halves(compact), recovery)
        .recoverPublicKey(digest)
        .toBytes(false)
        .subarray(1),
    ),
  sign: (digest, key) => {
    const bytes = secp256k1.sign(digest, key, { prehash: false, format: 'recovered' })
    return { recovery: bit(bytes[0]), compact: bytes.subarray(1) }
  },
  publicKey: (key) => orUndefined(() => secp256k1.getPublicKey(key, false).subarray(1)),
}

/** libsecp256k1, if a build for this platform is installed. */
export const nativeCurve: Curve | undefined = loadNative()

export const curve: Curve = nativeCurve ?? portableCurve

function loadNative(): Curve | undefined {
  let bindings: Bindings
  try {
    // The package's main file would silently fall back to another JavaScript implementation.
    bindings = createRequire(import.meta.url)('secp256k1/bindings')
  } catch {
    return undefined
  }
  return {
    recover: (digest, compact, recovery) =>
      orUndefined(() => bindings.ecdsaRecover(compact, recovery, digest, false).subarray(1)),
    sign: (digest, key) => {
      const { signature, recid } = bindings.ecdsaSign(digest, key)
      return { compact: signature, recovery: bit(recid) }
    },
    publicKey: (key) => orUndefined(() => bindings.publicKeyCreate(key, false).subarray(1)),
  }
}

/** Returns undefined for an exception, by which both libraries report an invalid signature or key. */
function orUndefined<T>(compute: () => T): T | undefined {
  try {
    return compute()
  } catch {
    return undefined
  }
}

function halves(compact: Uint8Array): [bigint, bigint] {
  assert(compact.length === 64, 'a compact signature has 64 bytes')
  const hex = Buffer.from(compact).toString('hex')
  return [BigInt(`0x${hex.slice(0, 64)}`), BigInt(`0x${hex.slice(64)}`)]
}

/** A recovery of 2 or 3 needs an r past the group order, which nobody can find. */
function bit(recovery: number | undefined): 0 | 1 {
  assert(recovery === 0 || recovery === 1, 'a recovery is 0 or 1')
  return recovery
}
