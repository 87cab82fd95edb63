import { emptyRoot, nodeHash } from './tree.ts'

/*
 * The tree exactly as RFC 6962 section 2.1 defines it, by recursion over leaf hashes: slow, obviously right,
 * and what the tests hold the fast trees against.
 */

/** MTH(D[n]). */
export function referenceRoot(leaves: readonly Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (only === undefined) return emptyRoot
  if (leaves.length === 1) return only
  const split = splitOf(leaves.length)
  return nodeHash(referenceRoot(leaves.slice(0, split)), referenceRoot(leaves.slice(split)))
}

/** PATH(m, D[n]). */
export function referenceInclusion(
  index: number,
  leaves: readonly Uint8Array[],
): readonly Uint8Array[] {
  if (leaves.length <= 1) return []
  const split = splitOf(leaves.length)
  const left = leaves.slice(0, split)
  const right = leaves.slice(split)
  return index < split
    ? [...referenceInclusion(index, left), referenceRoot(right)]
    : [...referenceInclusion(index - split, right), referenceRoot(left)]
}

/** PROOF(m, D[n]) for 0 < m; empty for m = n. */
export function referenceConsistency(
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
  if (from === leaves.length) return whole ? [] : [referenceRoot(leaves)]
  const split = splitOf(leaves.length)
  const left = leaves.slice(0, split)
  const right = leaves.slice(split)
  return from <= split
    ? [...subproof(from, left, whole), referenceRoot(right)]
    : [...subproof(from - split, right, false), referenceRoot(left)]
}

/** The largest power of two smaller than n. */
function splitOf(n: number): number {
  let split = 1
  while (split * 2 < n) split *= 2
  return split
}
