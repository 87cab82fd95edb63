import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeHex } from './bytes.ts'
import {
  computeReferenceConsistency,
  computeReferenceInclusion,
  computeReferenceRoot,
} from './reference-tree.ts'
import { emptyRoot, hashLeaf, verifyConsistency, verifyInclusion } from './tree.ts'

/** Inputs and roots of the Certificate Transparency reference tests (merkle_tree_test of RFC 6962's authors). */
const ctLeaves = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
]
const ctRoots = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

describe('the Merkle tree', () => {
  test('the Merkle tree has the roots that RFC 6962 gives for its eight known leaves', () => {
    const leaves = ctLeaves.map((each) => hashLeaf(Buffer.from(each, 'hex')))
    expect(
      ctLeaves.map((_, index) => encodeHex(computeReferenceRoot(leaves.slice(0, index + 1)))),
    ).toEqual(ctRoots)
    expect(encodeHex(emptyRoot)).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
  })

  test('every inclusion proof verifies, and none does after any one-bit change', () => {
    fc.assert(
      fc.property(treeWithTwoPlaces, fc.nat(), ({ leaves, first }, bit) => {
        const good = {
          index: first,
          size: leaves.length,
          leaf: at(leaves, first),
          proof: computeReferenceInclusion(first, leaves),
          root: computeReferenceRoot(leaves),
        }
        expect(verifyInclusion(good)).toBe(true)
        expect(verifyInclusion({ ...good, leaf: flip(good.leaf, bit) })).toBe(false)
        expect(verifyInclusion({ ...good, root: flip(good.root, bit) })).toBe(false)
        expect(verifyInclusion({ ...good, proof: [...good.proof, good.root] })).toBe(false)
        expect(verifyInclusion({ ...good, index: leaves.length })).toBe(false)
        for (const proof of mutations(good.proof, bit))
          expect(verifyInclusion({ ...good, proof })).toBe(false)
        if (leaves.length > 1) {
          const other = (first + 1) % leaves.length
          expect(verifyInclusion({ ...good, index: other })).toBe(false)
        }
      }),
      { numRuns: 150 },
    )
  })

  test('every consistency proof verifies, and none does after any one-bit change', () => {
    fc.assert(
      fc.property(treeWithTwoPlaces, fc.nat(), ({ leaves, first }, bit) => {
        const from = first + 1
        const good = {
          from,
          to: leaves.length,
          fromRoot: computeReferenceRoot(leaves.slice(0, from)),
          toRoot: computeReferenceRoot(leaves),
          proof: computeReferenceConsistency(from, leaves),
        }
        expect(verifyConsistency(good)).toBe(true)
        expect(verifyConsistency({ ...good, fromRoot: flip(good.fromRoot, bit) })).toBe(false)
        expect(verifyConsistency({ ...good, toRoot: flip(good.toRoot, bit) })).toBe(false)
        expect(verifyConsistency({ ...good, proof: [...good.proof, good.toRoot] })).toBe(false)
        for (const proof of mutations(good.proof, bit))
          expect(verifyConsistency({ ...good, proof })).toBe(false)
      }),
      { numRuns: 150 },
    )
  })

  test('sizes beyond 32 bits are judged, and sizes that are not whole numbers are refused', () => {
    const hash = hashLeaf(new Uint8Array(1))
    const proof = Array.from({ length: 40 }, () => hash)
    const check = { index: 0, size: 2 ** 40, leaf: hash, proof, root: hash }
    expect(verifyInclusion(check)).toBe(false)
    for (const size of [-1, 0, 1.5, Number.NaN, 2 ** 53])
      expect(verifyInclusion({ ...check, size })).toBe(false)
    const empty = { from: 0, to: 5, fromRoot: emptyRoot, toRoot: hash, proof: [] }
    expect(verifyConsistency(empty)).toBe(true)
    expect(verifyConsistency({ ...empty, fromRoot: hash })).toBe(false)
    expect(verifyConsistency({ ...empty, from: 6 })).toBe(false)
  })
})

const treeWithTwoPlaces = fc
  .integer({ min: 1, max: 70 })
  .chain((size) =>
    fc.record({ size: fc.constant(size), first: fc.integer({ min: 0, max: size - 1 }) }),
  )
  .map(({ size, first }) => ({
    first,
    leaves: Array.from({ length: size }, (_, index) => hashLeaf(Uint8Array.of(index))),
  }))

/** Each hash of the proof with one bit changed, and the proof with each of its hashes left out. */
function mutations(proof: readonly Uint8Array[], bit: number): Uint8Array[][] {
  return proof.flatMap((hash, index) => [
    proof.toSpliced(index, 1, flip(hash, bit)),
    proof.toSpliced(index, 1),
  ])
}

function flip(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = Uint8Array.from(bytes)
  const place = (bit >> 3) % copy.length
  copy[place] = (copy[place] ?? 0) ^ (1 << (bit & 7))
  return copy
}

function at(leaves: readonly Uint8Array[], index: number): Uint8Array {
  const leaf = leaves[index]
  if (leaf === undefined) throw new Error(`no leaf ${index}`)
  return leaf
}
