import { assert, requirePresent } from '../base/assert.ts'
import { hashNode, locateNode, type TileCoordinate } from './merkle.ts'
import type { TileNodes } from './tile-part.ts'

/** The perfect subtree number `index` of 2^height leaves. */
type Subtree = { readonly height: number; readonly index: number }
/** Subtrees from left to right whose join is one hash of a proof. */
type Range = readonly Subtree[]

/** A proof before its hashes are read: one range for each hash, in the proof's order. */
export type ProofPlan = readonly Range[]

/** Plans PATH(index, D[size]) of RFC 6962 section 2.1.1. */
export function planInclusion(index: number, size: number): ProofPlan {
  assert(index >= 0 && index < size, 'a proof is for a leaf of the tree')
  const plan: Range[] = []
  let low = 0
  let high = size
  while (high - low > 1) {
    const split = low + computeSplit(high - low)
    if (index < split) {
      plan.push(range(split, high))
      high = split
    } else {
      plan.push(range(low, split))
      low = split
    }
  }
  return plan.reverse()
}

/** Plans PROOF(from, D[to]) of RFC 6962 section 2.1.2; empty for from = 0 and from = to. */
export function planConsistency(from: number, to: number): ProofPlan {
  assert(from >= 0 && from <= to, 'a consistency proof goes from a smaller tree to a larger one')
  if (from === 0 || from === to) return []
  const plan: Range[] = []
  let low = 0
  let high = to
  // As long as the path goes left, the old tree's own root is known to the verifier and not part of the proof.
  while (high !== from) {
    const split = low + computeSplit(high - low)
    if (from <= split) {
      plan.push(range(split, high))
      high = split
    } else {
      plan.push(range(low, split))
      low = split
    }
  }
  if (low > 0) plan.push(range(low, high))
  return plan.reverse()
}

/** A tile with the nodes that a plan reads of it. */
export type PlannedTile = TileCoordinate & {
  readonly nodes: readonly { readonly row: number; readonly place: number }[]
}

/** The tiles that the plan reads, each once. */
export function listTiles(plan: ProofPlan): PlannedTile[] {
  const tiles = new Map<string, TileCoordinate & { nodes: { row: number; place: number }[] }>()
  for (const { height, index } of plan.flat()) {
    const { level, tile, row, place } = locateNode(height, index)
    const key = formatTileKey({ level, index: tile })
    const planned = tiles.get(key) ?? { level, index: tile, nodes: [] }
    planned.nodes.push({ row, place })
    tiles.set(key, planned)
  }
  return [...tiles.values()]
}

/** Computes the proof's hashes; `tiles` has every tile of `listTiles`, by `formatTileKey`. */
export function resolvePlan(plan: ProofPlan, tiles: ReadonlyMap<string, TileNodes>): Buffer[] {
  return plan.map((subtrees) =>
    subtrees
      .map(({ height, index }): Buffer => {
        const { level, row, tile, place } = locateNode(height, index)
        const nodes = tiles.get(formatTileKey({ level, index: tile }))
        return requirePresent(nodes, 'a tile of the plan').get(row, place)
      })
      .reduceRight((right, left) => hashNode(left, right)),
  )
}

export function formatTileKey({ level, index }: TileCoordinate): string {
  return `${level}/${index}`
}

/** Names a range of several subtrees, which always ends at the edge of a tree; undefined for one subtree alone. */
export function formatEdgeKey(range: Range): string | undefined {
  const [first, last] = [range[0], range.at(-1)]
  if (first === undefined || last === undefined || range.length === 1) return undefined
  return `${first.height}/${first.index}-${last.height}/${last.index}`
}

/** Splits the leaves from low to high into perfect subtrees that get smaller to the right. */
function range(low: number, high: number): Range {
  const subtrees: Subtree[] = []
  let at = low
  while (at < high) {
    let height = 0
    while (2 ** (height + 1) <= high - at) height += 1
    subtrees.push({ height, index: at / 2 ** height })
    at += 2 ** height
  }
  return subtrees
}

/** Returns the largest power of two smaller than n. */
function computeSplit(n: number): number {
  let split = 1
  while (split * 2 < n) split *= 2
  return split
}

/** Encodes hashes in base64; node's own encoder takes a fraction of the time of the one that browsers share. */
export function encodeHashes(hashes: readonly Buffer[]): string[] {
  return hashes.map((one) => one.toString('base64'))
}
