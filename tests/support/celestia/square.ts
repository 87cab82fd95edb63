import { createHash } from 'node:crypto'
import { encodeBase64 } from '@tollbase/verify/bytes'
import {
  computeCommitment,
  computeRoot,
  computeSubtreeRoots,
  computeSubtreeWidth,
} from '@tollbase/verify/celestia/commitment'
import type { CommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import {
  compareNamespaces,
  namespaceBytes,
  parityNamespace,
} from '@tollbase/verify/celestia/namespace'
import { computeSubtreeRoot, hashShare } from '@tollbase/verify/celestia/namespaced-tree'
import { shareBytes, splitShares } from '@tollbase/verify/celestia/shares'
import { computeReferenceInclusion } from '@tollbase/verify/reference-tree'
import { hashLeaf } from '@tollbase/verify/tree'

/** A blob in the square of a block, at its first share. */
export type SquareBlob = {
  readonly namespace: Uint8Array
  readonly data: Uint8Array
  readonly commitment: Uint8Array
  readonly start: number
  readonly shares: number
}

/** The data of a block: its shares in a square, extended to twice the width, and the roots of rows and columns. */
export type Square = {
  readonly blobs: readonly SquareBlob[]
  readonly dataRoot: Uint8Array
  readonly prove: (blob: SquareBlob) => CommitmentProof
}

type Share = { readonly namespace: Uint8Array; readonly bytes: Uint8Array }

const makeReserved = (last: number) =>
  Uint8Array.from({ length: namespaceBytes }, (_, at) => (at === 28 ? last : 0))
const payForBlobNamespace = makeReserved(4)
const reservedPaddingNamespace = makeReserved(255)
const tailPaddingNamespace = Uint8Array.from({ length: namespaceBytes }, (_, at) =>
  at === 28 ? 0xfe : 0xff,
)

/**
 * Lays blobs out as the network does: one share of transactions, then the blobs by namespace, each at a multiple of its
 * subtree width, with padding between. The other three quarters are not the erasure code, which no client looks at.
 */
export function buildSquare(blobs: readonly Pick<SquareBlob, 'namespace' | 'data'>[]): Square {
  const shares: Share[] = [makePadding(payForBlobNamespace)]
  const placed: SquareBlob[] = []
  let before: Uint8Array = reservedPaddingNamespace
  for (const { namespace, data } of blobs.toSorted((a, b) =>
    compareNamespaces(a.namespace, b.namespace),
  )) {
    const own = splitShares(namespace, data)
    const width = computeSubtreeWidth(own.length)
    while (shares.length % width !== 0) shares.push(makePadding(before))
    const commitment = computeCommitment(namespace, data)
    placed.push({ namespace, data, commitment, start: shares.length, shares: own.length })
    shares.push(...own.map((bytes) => ({ namespace, bytes })))
    before = namespace
  }
  let width = 1
  while (width * width < shares.length) width *= 2
  while (shares.length < width * width) shares.push(makePadding(tailPaddingNamespace))
  const leaves = extend(shares, width)
  const rows = leaves.map(computeSubtreeRoot)
  const columns = leaves.map((_, at) =>
    computeSubtreeRoot(leaves.map((row) => row[at] ?? new Uint8Array(0))),
  )
  const roots = [...rows, ...columns]
  return {
    blobs: placed,
    dataRoot: computeRoot(roots),
    prove: (blob) => prove(blob, { width, leaves, rows, roots: roots.map(hashLeaf) }),
  }
}

function makePadding(namespace: Uint8Array): Share {
  const bytes = new Uint8Array(shareBytes)
  bytes.set(namespace)
  bytes.set([1], namespaceBytes)
  return { namespace, bytes }
}

/** Hashes the shares of the extended square into the leaves of its rows. */
function extend(shares: readonly Share[], width: number): Uint8Array[][] {
  return Array.from({ length: 2 * width }, (_, row) =>
    Array.from({ length: 2 * width }, (__, column) => {
      const own = row < width && column < width ? shares[row * width + column] : undefined
      if (own !== undefined) return hashShare(own.namespace, own.bytes)
      const seed = createHash('sha512').update(`parity ${row} ${column}`).digest()
      return hashShare(parityNamespace, Buffer.concat(Array.from({ length: 8 }, () => seed)))
    }),
  )
}

type Layout = {
  readonly width: number
  readonly leaves: readonly (readonly Uint8Array[])[]
  readonly rows: readonly Uint8Array[]
  readonly roots: readonly Uint8Array[]
}

function prove(
  { namespace, data, start, shares }: SquareBlob,
  { width, leaves, rows, roots }: Layout,
): CommitmentProof {
  const [first, last] = [Math.floor(start / width), Math.floor((start + shares - 1) / width)]
  const own = Array.from({ length: last - first + 1 }, (_, at) => first + at)
  return {
    subtree_roots: computeSubtreeRoots(namespace, data).map(encodeBase64),
    subtree_root_proofs: own.map((row) => {
      const range = {
        start: Math.max(start, row * width) - row * width,
        end: Math.min(start + shares, (row + 1) * width) - row * width,
      }
      const nodes = listNodes(leaves[row] ?? [], { at: 0, ...range }).map(encodeBase64)
      return {
        ...(range.start > 0 && { start: range.start }),
        end: range.end,
        nodes,
        is_max_namespace_ignored: true,
      }
    }),
    namespace_id: encodeBase64(namespace.subarray(1)),
    row_proof: {
      row_roots: own.map((row) => encodeBase64(rows[row] ?? new Uint8Array(0))),
      proofs: own.map((row) => ({
        total: String(roots.length),
        ...(row > 0 && { index: String(row) }),
        leaf_hash: encodeBase64(roots[row] ?? new Uint8Array(0)),
        aunts: computeReferenceInclusion(row, roots).map(encodeBase64),
      })),
      ...(first > 0 && { start_row: first }),
      ...(last > 0 && { end_row: last }),
    },
    namespace_version: 0,
  }
}

/** Lists the nodes beside a range, from left to right. */
function listNodes(
  leaves: readonly Uint8Array[],
  { at, start, end }: { readonly at: number; readonly start: number; readonly end: number },
): Uint8Array[] {
  if (at + leaves.length <= start || at >= end) return [computeSubtreeRoot(leaves)]
  if (leaves.length === 1 || (at >= start && at + leaves.length <= end)) return []
  const half = leaves.length / 2
  return [
    ...listNodes(leaves.slice(0, half), { at, start, end }),
    ...listNodes(leaves.slice(half), { at: at + half, start, end }),
  ]
}
