import { LRUCache } from 'lru-cache'
import type { BlockStore } from './block-store.ts'
import { type CompletedTile, type MerkleTree, Tile, type TileCoordinate } from './merkle.ts'
import { formatTileKey, listTiles, type ProofPlan, resolvePlan } from './proofs.ts'

/** Tiles in the cache, of 16 KiB each. */
const cachedTilesMax = 32

/** Finds a proof's tiles: at the tree's edge, among those being committed, in the cache, or in the database. */
export class TileReader {
  readonly #store: BlockStore
  readonly #tree: MerkleTree
  readonly #uncommitted = new Map<string, Tile>()
  readonly #cached = new LRUCache<string, Tile>({ max: cachedTilesMax })

  constructor(store: BlockStore, tree: MerkleTree) {
    this.#store = store
    this.#tree = tree
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
    const tiles = new Map<string, Tile>()
    const missing: TileCoordinate[] = []
    for (const place of listTiles(plan)) {
      const key = formatTileKey(place)
      const tile = this.#tree.partial(place) ?? this.#uncommitted.get(key) ?? this.#cached.get(key)
      if (tile === undefined) missing.push(place)
      else tiles.set(key, tile)
    }
    if (missing.length > 0) {
      for (const stored of await this.#store.tilesAt(missing)) {
        const tile = Tile.load(stored.hashes)
        tiles.set(formatTileKey(stored), tile)
        this.#cached.set(formatTileKey(stored), tile)
      }
    }
    return resolvePlan(plan, tiles)
  }
}
