import { LRUCache } from 'lru-cache'
import type { BlockStore } from './block-store.ts'
import { type CompletedTile, type MerkleTree, Tile, type TileCoordinate } from './merkle.ts'
import type { ChainProofCache } from './proof-cache.ts'
import {
  formatTileKey,
  listTiles,
  type PlannedTile,
  type ProofPlan,
  resolvePlan,
} from './proofs.ts'
import { findGroup, groupWidth, joinParts, makeCrown, type TileNodes } from './tile-part.ts'

/** Whole tiles in the cache, of 16 KiB each: those that became full lately, and those above others. */
const cachedTilesMax = 32

/**
 * Finds a proof's tiles: at the tree's edge, among those being committed, in the cache, or in the database, of which it
 * reads a part where it knows the rest.
 */
export class TileReader {
  readonly #store: BlockStore
  readonly #tree: MerkleTree
  readonly #uncommitted = new Map<string, Tile>()
  readonly #cached = new LRUCache<string, Tile>({ max: cachedTilesMax })
  readonly #crowns: ChainProofCache['crowns']

  constructor(
    store: BlockStore,
    { tree, cache }: { readonly tree: MerkleTree; readonly cache: ChainProofCache },
  ) {
    this.#store = store
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
    return resolvePlan(plan, tiles)
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
    const hashes = await this.#store.tilePart({ level, index }, range)
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
