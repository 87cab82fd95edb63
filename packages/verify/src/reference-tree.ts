import { emptyRoot, hashNode } from './tree.ts'

/*
 * The tree exactly as RFC 6962 section 2.1 defines it, by recursion over leaf hashes: slow, obviously right,
 * and what the tests hold the fast trees against.
 */

/** Computes MTH(D[n]). */
export function computeReferenceRoot(leaves: readonly Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (only === undefined) return emptyRoot
  if (leaves.length === 1) return only
  const split = computeSplit(leaves.length)
  return hashNode(
    computeReferenceRoot(leaves.slice(0, split)),
    computeReferenceRoot(leaves.slice(split)),
  )
}

/** Computes PATH(m, D[n]). */
export function computeReferenceInclusion(
  index: number,
  leaves: readonly Uint8Array[],
): readonly Uint8Array[] {
  if (leaves.length <= 1) return []
  const split = computeSplit(leaves.length)
  const left = leaves.slice(0, split)
  const right = leaves.slice(split)
  return index < split
    ? [...computeReferenceInclusion(index, left), computeReferenceRoot(right)]
    : [...computeReferenceInclusion(index - split, right), computeReferenceRoot(left)]
}

/** Computes PROOF(m, D[n]) for 0 < m; empty for m = n. */
export function computeReferenceConsistency(
  from: number,
  leaves: readonly Uint8Array[],
): readonly Uint8Array[] {
  return subproof(from, leaves, true)
}

function subproof(
  from: number,
  leaves: readonly Uint8Array[],
  whole: boolean,
): readonly Uint8Array[] {
  if (from === leaves.length) return whole ? [] : [computeReferenceRoot(leaves)]
  const split = computeSplit(leaves.length)
  const left = leaves.slice(0, split)
  const right = leaves.slice(split)
  return from <= split
    ? [...subproof(from, left, whole), computeReferenceRoot(right)]
    : [...subproof(from - split, right, false), computeReferenceRoot(left)]
}

/** Returns the largest power of two smaller than n. */
function computeSplit(n: number): number {
  let split = 1
  while (split * 2 < n) split *= 2
  return split
}
