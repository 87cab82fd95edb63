import { sha256 } from '@noble/hashes/sha2.js'
import { areBytesEqual, concat } from './bytes.ts'
import { isCount } from './fields.ts'

/** Bytes of a SHA-256 hash. */
export const hashBytes = 32

/** The root of the tree without leaves: SHA-256 of nothing (RFC 6962 section 2.1). */
export const emptyRoot: Uint8Array = sha256(new Uint8Array(0))

export type InclusionCheck = {
  /** Index of the leaf, from 0. */
  readonly index: number
  /** Leaves of the tree that `root` belongs to. */
  readonly size: number
  /** The leaf's hash, see `hashLeaf`. */
  readonly leaf: Uint8Array
  /** The audit path, from the leaf up. */
  readonly proof: readonly Uint8Array[]
  readonly root: Uint8Array
}

export type ConsistencyCheck = {
  /** Size of the older tree. */
  readonly from: number
  /** Size of the newer tree, not smaller. */
  readonly to: number
  readonly fromRoot: Uint8Array
  readonly toRoot: Uint8Array
  readonly proof: readonly Uint8Array[]
}

/** Computes SHA-256(0x00 || bytes), RFC 6962 section 2.1. */
export function hashLeaf(bytes: Uint8Array): Uint8Array {
  return sha256(concat(Uint8Array.of(0), bytes))
}

/** Holds 0x01 and two hashes: a proof joins so many that bytes of their own for each would take longer than its hash. */
const nodeInput = new Uint8Array(1 + 2 * hashBytes).fill(1, 0, 1)

/** Computes SHA-256(0x01 || left || right), RFC 6962 section 2.1; the arguments are 32 bytes each. */
export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  nodeInput.set(left, 1)
  nodeInput.set(right, 1 + hashBytes)
  return sha256(nodeInput)
}

/** Verifies by RFC 9162 section 2.1.3.2. Sizes are not limited to 32 bits, so no bit operators here. */
export function verifyInclusion(check: InclusionCheck): boolean {
  const { index, size, leaf, proof, root } = check
  if (!isCount(index) || !isCount(size) || index >= size) return false
  if (!allHashes([leaf, root, ...proof])) return false
  let node = index
  let last = size - 1
  let hash = leaf
  for (const sibling of proof) {
    if (last === 0) return false
    if (isOdd(node) || node === last) {
      hash = hashNode(sibling, hash)
      while (!isOdd(node) && node !== 0) {
        node = half(node)
        last = half(last)
      }
    } else {
      hash = hashNode(hash, sibling)
    }
    node = half(node)
    last = half(last)
  }
  return last === 0 && areBytesEqual(hash, root)
}

/** Verifies by RFC 9162 section 2.1.4.2; every tree is consistent with the empty one. */
export function verifyConsistency(check: ConsistencyCheck): boolean {
  const { from, to, fromRoot, toRoot, proof } = check
  if (!isCount(from) || !isCount(to) || from > to) return false
  if (!allHashes([fromRoot, toRoot, ...proof])) return false
  if (from === 0) return proof.length === 0 && areBytesEqual(fromRoot, emptyRoot)
  if (from === to) return proof.length === 0 && areBytesEqual(fromRoot, toRoot)
  const path = isPowerOfTwo(from) ? [fromRoot, ...proof] : proof
  const [first, ...rest] = path
  return first !== undefined && proof.length > 0 && climb({ ...check, first, rest })
}

function climb(
  check: ConsistencyCheck & { readonly first: Uint8Array; readonly rest: readonly Uint8Array[] },
): boolean {
  let node = check.from - 1
  let last = check.to - 1
  while (isOdd(node)) {
    node = half(node)
    last = half(last)
  }
  let older = check.first
  let newer = check.first
  for (const sibling of check.rest) {
    if (last === 0) return false
    if (isOdd(node) || node === last) {
      older = hashNode(sibling, older)
      newer = hashNode(sibling, newer)
      while (!isOdd(node) && node !== 0) {
        node = half(node)
        last = half(last)
      }
    } else {
      newer = hashNode(newer, sibling)
    }
    node = half(node)
    last = half(last)
  }
  return last === 0 && areBytesEqual(older, check.fromRoot) && areBytesEqual(newer, check.toRoot)
}

function allHashes(hashes: readonly Uint8Array[]): boolean {
  return hashes.every((hash) => hash.length === hashBytes)
}

function half(value: number): number {
  return Math.floor(value / 2)
}

function isOdd(value: number): boolean {
  return value % 2 === 1
}

function isPowerOfTwo(value: number): boolean {
  let rest = value
  while (rest > 1 && !isOdd(rest)) rest = half(rest)
  return rest === 1
}
