import { LRUCache } from 'lru-cache'
import { requirePresent } from '../base/assert.ts'
import type { BlockStore } from './block-store.ts'
import type { LogParts } from './log-parts.ts'
import { type CompletedTile, type MerkleTree, Tile, type TileCoordinate } from './merkle.ts'
import type { ChainProofCache } from './proof-cache.ts'
import {
  formatEdgeKey,
  formatTileKey,
  listTiles,
  type PlannedTile,
  type ProofPlan,
  resolvePlan,
} from './proofs.ts'
import { findGroup, groupWidth, joinParts, makeCrown, type TileNodes } from './tile-part.ts'

/** Whole tiles in the cache, of 16 KiB each: those that became full lately, and those above others. */
const cachedTilesMax = 32
/** Two sizes of a tree have fewer such hashes. */
const edgeHashesMax = 64

/**
 * Finds a proof's tiles: at the tree's edge, among those being committed, in the cache, or in the database, of which it
 * reads a part where it knows the rest.
 */
export class TileReader {
  readonly #store: BlockStore
  readonly #parts: LogParts
  readonly #tree: MerkleTree
  readonly #uncommitted = new Map<string, Tile>()
  readonly #cached = new LRUCache<string, Tile>({ max: cachedTilesMax })
  readonly #crowns: ChainProofCache['crowns']
  /** Hashes of ranges that end at the edge of a tree: all proofs of one size share them. */
  readonly #edge = new LRUCache<string, Buffer>({ max: edgeHashesMax })

  constructor(
    store: BlockStore,
    {
      parts,
      tree,
      cache,
    }: { readonly parts: LogParts; readonly tree: MerkleTree; readonly cache: ChainProofCache },
  ) {
    this.#store = store
    this.#parts = parts
    this.#tree = tree
    this.#crowns = cache.crowns
  }

  /** Keeps tiles that left the tree's edge and are not in the database yet. */
  hold(tiles: readonly CompletedTile[]): void {
    for (const each of tiles) this.#uncommitted.set(formatTileKey(each), each.tile)
  }

  /** Releases tiles that are in the database now. */
  release(tiles: readonly CompletedTile[]): void {
    for (const each of tiles) {
      this.#uncommitted.delete(formatTileKey(each))
      this.#cached.set(formatTileKey(each), each.tile)
    }
  }

  /** Forgets tiles that are in no tree. */
  drop(tiles: readonly CompletedTile[]): void {
    for (const each of tiles) this.#uncommitted.delete(formatTileKey(each))
  }

  /** The hashes of a proof over committed leaves. */
  async hashes(plan: ProofPlan): Promise<Buffer[]> {
    const known = plan.map((range) => this.#edge.get(formatEdgeKey(range) ?? ''))
    const unknown = plan.filter((_, at) => known[at] === undefined)
    const found = resolvePlan(unknown, await this.#findTiles(unknown))
    unknown.forEach((range, at) => {
      const key = formatEdgeKey(range)
      if (key !== undefined) this.#edge.set(key, requirePresent(found[at], 'a hash of each range'))
    })
    return known.map((hash) => hash ?? requirePresent(found.shift(), 'a hash of each range'))
  }

  async #findTiles(plan: ProofPlan): Promise<Map<string, TileNodes>> {
    const tiles = new Map<string, TileNodes>()
    const missing: PlannedTile[] = []
    for (const place of listTiles(plan)) {
      const key = formatTileKey(place)
      const tile = this.#tree.partial(place) ?? this.#uncommitted.get(key) ?? this.#cached.get(key)
      if (tile === undefined) missing.push(place)
      else tiles.set(key, tile)
    }
    const parts = await Promise.all(missing.map((place) => this.#readParts(place)))
    const unread = missing.filter((place, at) => {
      const part = parts[at]
      if (part !== undefined) tiles.set(formatTileKey(place), part)
      return part === undefined
    })
    for (const [key, tile] of await this.#readWhole(unread)) tiles.set(key, tile)
    return tiles
  }

  /** Reads what a plan needs of a tile whose crown is known: one group at most. Undefined for all others. */
  async #readParts({ level, index, nodes }: PlannedTile): Promise<TileNodes | undefined> {
    const crown = this.#crowns.get(formatTileKey({ level, index }))
    if (crown === undefined) return undefined
    const groups = new Set(nodes.flatMap(({ row, place }) => findGroup(row, place) ?? []))
    const [group, ...others] = groups
    if (others.length > 0) return undefined
    if (group === undefined) return joinParts(crown, undefined)
    const range = { from: group * groupWidth, count: groupWidth }
    const hashes = await this.#parts.readTile({ level, index }, range)
    return hashes && joinParts(crown, { at: group, hashes })
  }

  /** Reads whole tiles. Their crowns are kept, as are those that stand above all others and are few. */
  async #readWhole(places: readonly TileCoordinate[]): Promise<[string, Tile][]> {
    if (places.length === 0) return []
    const stored = await this.#store.tilesAt(places)
    return stored.map((each) => {
      const key = formatTileKey(each)
      const tile = Tile.load(each.hashes)
      if (each.level > 0) this.#cached.set(key, tile)
      else this.#crowns.set(key, makeCrown(tile))
      return [key, tile]
    })
  }
}
