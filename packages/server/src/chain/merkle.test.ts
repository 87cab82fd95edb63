import {
  computeReferenceConsistency,
  computeReferenceInclusion,
  computeReferenceRoot,
} from '@tollbase/verify/reference-tree'
import { hashLeaf } from '@tollbase/verify/tree'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requirePresent } from '../base/assert.ts'
import { hashBytes, MerkleTree, Tile } from './merkle.ts'
import {
  formatTileKey,
  listTiles,
  type ProofPlan,
  planConsistency,
  planInclusion,
  resolvePlan,
} from './proofs.ts'

const leafCount = 1100
const leaves = Array.from({ length: leafCount }, (_, index) =>
  Buffer.from(hashLeaf(Buffer.from(String(index)))),
)
const run = Buffer.concat(leaves)

describe('the growing tree', () => {
  test('the tree has the root of RFC 6962 at every size, however its leaves arrive', () => {
    const tree = new MerkleTree()
    expect(tree.root().equals(computeReferenceRoot([]))).toBe(true)
    for (let size = 1; size <= 600; size += 1) {
      tree.append(run.subarray((size - 1) * hashBytes, size * hashBytes))
      if (size < 20 || size > 500 || (size & (size - 1)) <= 1) {
        expect(
          tree.root().equals(computeReferenceRoot(leaves.slice(0, size))),
          `size ${size}`,
        ).toBe(true)
      }
    }
    const bulk = new MerkleTree()
    bulk.append(run)
    expect(bulk.root().equals(computeReferenceRoot(leaves))).toBe(true)
  })

  test('the tree goes back to any earlier size, over full tiles too, and grows on as if nothing had been appended', () => {
    const size = fc.nat(leafCount)
    const part = (from: number, to: number) => run.subarray(from * hashBytes, to * hashBytes)
    fc.assert(
      fc.property(size, size, size, (before, refused, after) => {
        const tree = new MerkleTree()
        tree.append(part(0, before))
        tree.takeFullTiles()
        const mark = tree.mark()
        tree.append(part(leafCount - refused, leafCount))
        tree.takeFullTiles()
        tree.rollBack(mark)
        expect(tree.size).toBe(before)
        expect(tree.root().equals(computeReferenceRoot(leaves.slice(0, before)))).toBe(true)
        const end = Math.max(before, after)
        tree.append(part(before, end))
        expect(tree.root().equals(computeReferenceRoot(leaves.slice(0, end)))).toBe(true)
        for (const { level, index, hashes } of tree.takeFullTiles())
          if (level === 0) expect(hashes.equals(part(index * 256, (index + 1) * 256))).toBe(true)
      }),
      { numRuns: 40 },
    )
  })

  test('the tree that is rebuilt from its full tiles and the leaves after them is the same tree', () => {
    const tree = new MerkleTree()
    tree.append(run)
    const full = tree.takeFullTiles().filter((each) => each.level === 0)
    expect(full).toHaveLength(4)
    const again = new MerkleTree()
    for (const tile of full) again.appendTile(0, Tile.load(tile.hashes))
    again.append(run.subarray(again.size * hashBytes))
    expect(again.root()).toEqual(tree.root())
  })

  test('a full tile of a higher level has the roots of the tiles below', () => {
    const tree = new MerkleTree()
    const first = run.subarray(0, 256 * hashBytes)
    for (let tile = 0; tile < 256; tile++) tree.append(first)
    const high = requirePresent(
      tree.takeFullTiles().find((each) => each.level === 1),
      'the tile of level 1',
    )
    expect(high.hashes.subarray(0, hashBytes)).toEqual(Tile.load(first).root())
    const again = new MerkleTree()
    again.appendTile(1, Tile.load(high.hashes))
    expect(again.size).toBe(65_536)
    expect(again.root()).toEqual(tree.root())
  })

  test('the proofs of the tree are those of RFC 6962, for every size it ever had', () => {
    const tree = new MerkleTree()
    tree.append(run)
    const tiles = new Map(
      tree.takeFullTiles().map((each) => [formatTileKey(each), Tile.load(each.hashes)]),
    )
    const proof = (plan: ProofPlan) => {
      for (const place of listTiles(plan)) {
        const partial = tree.partial(place)
        if (partial !== undefined) tiles.set(formatTileKey(place), partial)
      }
      return resolvePlan(plan, tiles)
    }
    const place = fc
      .integer({ min: 1, max: leafCount })
      .chain((size) => fc.tuple(fc.constant(size), fc.integer({ min: 1, max: size })))
    fc.assert(
      fc.property(place, ([size, at]) => {
        const part = leaves.slice(0, size)
        expect(
          same(proof(planInclusion(at - 1, size)), computeReferenceInclusion(at - 1, part)),
        ).toBe(true)
        expect(same(proof(planConsistency(at, size)), computeReferenceConsistency(at, part))).toBe(
          true,
        )
      }),
      { numRuns: 60 },
    )
    expect(proof(planConsistency(0, 9))).toEqual([])
  })
})

function same(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return (
    a.length === b.length &&
    a.every((each, index) => Buffer.compare(each, b[index] ?? Buffer.alloc(0)) === 0)
  )
}
