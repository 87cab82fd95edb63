import { hashLeaf, hashNode } from '../tree.ts'
import { computeSubtreeRoot, hashShare } from './namespaced-tree.ts'
import { splitShares } from './shares.ts'

/** Subtree roots of a blob at which subtrees begin to grow; fixed by the network. */
const subtreeRootThreshold = 64

/** Computes the number of shares below each subtree root of a blob of so many shares, but the last ones. */
export function computeSubtreeWidth(shares: number): number {
  const byThreshold = roundUp(Math.ceil(shares / subtreeRootThreshold))
  return Math.min(byThreshold, computeSquareWidthMin(shares))
}

/** Computes the width of the smallest square that has room for so many shares. */
export function computeSquareWidthMin(shares: number): number {
  return roundUp(Math.ceil(Math.sqrt(shares)))
}

/** Splits a range of shares into those below each subtree root: the largest powers of two up to the width. */
export function splitRange(shares: number, width: number): number[] {
  const sizes: number[] = []
  for (let rest = shares; rest > 0; rest -= sizes.at(-1) ?? rest)
    sizes.push(rest >= width ? width : roundUp((rest + 1) / 2))
  return sizes
}

/**
 * Computes the commitment of a blob of share version 0, by which a node finds it: the RFC 6962 root over its subtree
 * roots. Throws a FormatError where the data cannot be a blob.
 */
export function computeCommitment(namespace: Uint8Array, data: Uint8Array): Uint8Array {
  return computeRoot(computeSubtreeRoots(namespace, data))
}

/** Computes the subtree roots of a blob, the nodes of its rows' trees that make up its commitment. */
export function computeSubtreeRoots(namespace: Uint8Array, data: Uint8Array): Uint8Array[] {
  const leaves = splitShares(namespace, data).map((share) => hashShare(namespace, share))
  let at = 0
  return splitRange(leaves.length, computeSubtreeWidth(leaves.length)).map((size) => {
    at += size
    return computeSubtreeRoot(leaves.slice(at - size, at))
  })
}

/** Computes the RFC 6962 root over one or more values. */
export function computeRoot(values: readonly Uint8Array[]): Uint8Array {
  let level = values.map(hashLeaf)
  while (level.length > 1)
    level = Array.from({ length: Math.ceil(level.length / 2) }, (_, at) => {
      const pair = level.slice(2 * at, 2 * at + 2)
      return pair.reduce(hashNode)
    })
  return level[0] ?? new Uint8Array(0)
}

/** Returns the smallest power of two that is not smaller. */
function roundUp(value: number): number {
  let power = 1
  while (power < value) power *= 2
  return power
}
