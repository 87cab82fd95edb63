import { hash } from 'node:crypto'
import { emptyRoot } from '@tollbase/verify/tree'
import { assert, requirePresent } from '../base/assert.ts'

export const hashBytes = 32
/**
 * Hashes of one tile; level L, tile n holds the roots of the subtrees of 256^L leaves from n * 256 on (C2SP
 * tlog-tiles).
 */
export const tileWidth = 256
/** Rows of nodes that a tile holds in memory: its hashes (row 0) up to the two below its root. */
const tileRows = 8
const tileNodes = 2 * tileWidth - 2
const storedBytes = tileWidth * hashBytes

export type TileCoordinate = { readonly level: number; readonly index: number }

/** A full tile; `hashes` is its stored row 0. */
export type FullTile = TileCoordinate & { readonly hashes: Buffer }

/** A tile that has just become full. */
export type CompletedTile = FullTile & { readonly tile: Tile }

const leafPrefix = Buffer.alloc(1)
const nodeInput = Buffer.alloc(1 + 2 * hashBytes, 1)

/** SHA-256 as RFC 6962 takes it for an inner node; the arguments are 32 bytes each. */
export function hashNode(left: Buffer, right: Buffer): Buffer {
  left.copy(nodeInput, 1)
  right.copy(nodeInput, 1 + hashBytes)
  return hash('sha256', nodeInput, 'buffer')
}

/** SHA-256 as RFC 6962 takes it for a leaf. */
export function hashLeaf(entry: Uint8Array): Buffer {
  return sha256(Buffer.concat([leafPrefix, entry]))
}

/** All bytes in one buffer. */
export function concatHashes(parts: readonly Buffer[]): Buffer {
  const [only] = parts
  return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
}

export function sha256(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer')
}

/**
 * The nodes of one tile: row r has the roots of its subtrees of 2^r hashes. Rows lie one after the other, so
 * that siblings are neighbours in memory.
 */
export class Tile {
  readonly #nodes = Buffer.alloc(tileNodes * hashBytes)

  /** A full tile from its stored hashes. */
  static load(hashes: Buffer): Tile {
    assert(hashes.length === storedBytes, 'a tile has 256 hashes')
    const tile = new Tile()
    hashes.copy(tile.#nodes)
    for (let row = 1; row < tileRows; row++) {
      for (let index = 0; index < tileWidth >> row; index++) {
        tile.set(row, index, tile.join(row - 1, 2 * index))
      }
    }
    return tile
  }

  get(row: number, index: number): Buffer {
    const start = offset(row, index)
    return this.#nodes.subarray(start, start + hashBytes)
  }

  set(row: number, index: number, node: Buffer): void {
    node.copy(this.#nodes, offset(row, index))
  }

  /** The parent of this node and its right neighbour. */
  join(row: number, index: number): Buffer {
    const start = offset(row, index)
    this.#nodes.copy(nodeInput, 1, start, start + 2 * hashBytes)
    return hash('sha256', nodeInput, 'buffer')
  }

  /** The root of a full tile. */
  root(): Buffer {
    return this.join(tileRows - 1, 0)
  }

  /** Row 0. */
  hashes(): Buffer {
    return this.#nodes.subarray(0, storedBytes)
  }
}

/** The state of the tree at a moment; see MerkleTree.rollBack. */
export type TreeMark = { readonly size: number; readonly tiles: readonly Tile[] }

/** The right edge of a growing tree: of each level the tile that is not full yet. */
export class MerkleTree {
  #size = 0
  #tiles: Tile[] = []
  #full: CompletedTile[] = []

  get size(): number {
    return this.#size
  }

  /** Returns a mark to roll back to. */
  mark(): TreeMark {
    return { size: this.#size, tiles: [...this.#tiles] }
  }

  /**
   * Forgets everything appended since the mark: its nodes stand beyond the older ones, and later appends overwrite
   * them.
   */
  rollBack({ size, tiles }: TreeMark): void {
    this.#size = size
    this.#tiles = [...tiles]
    this.#full = []
  }

  /** Appends leaf hashes, given as one run of 32 bytes each. */
  append(leafHashes: Buffer): void {
    for (let at = 0; at < leafHashes.length; at += hashBytes) {
      this.#add(0, this.#size, leafHashes.subarray(at, at + hashBytes))
      this.#size += 1
    }
  }

  /** Takes over a stored full tile whose leaves come next; there must be no smaller partial tile. */
  appendTile(level: number, tile: Tile): void {
    const leaves = tileWidth ** (level + 1)
    assert(this.#size % leaves === 0, 'a stored tile begins where a tile of its level begins')
    this.#size += leaves
    this.#add(level + 1, this.#size / leaves - 1, tile.root())
  }

  /** The tiles that became full since the last call, in the order in which they did. */
  takeFullTiles(): readonly CompletedTile[] {
    const full = this.#full
    this.#full = []
    return full
  }

  root(): Buffer {
    let root: Buffer | undefined
    for (let height = 0, rest = this.#size; rest > 0; height++, rest = Math.floor(rest / 2)) {
      if (rest % 2 === 0) continue
      const node = this.#node(height, rest - 1)
      root = root === undefined ? node : hashNode(node, root)
    }
    return Buffer.from(root ?? emptyRoot)
  }

  /** Returns the partial tile at the right edge, if this is one. */
  partial({ level, index }: TileCoordinate): Tile | undefined {
    return index === Math.floor(this.#size / tileWidth ** (level + 1))
      ? this.#tiles[level]
      : undefined
  }

  #node(height: number, index: number): Buffer {
    const { level, row, place } = locateNode(height, index)
    return requirePresent(this.#tiles[level], 'a tile of the right edge').get(row, place)
  }

  /** Puts hash number `index` of `level` in its tile and joins the subtrees that it completes. */
  #add(level: number, index: number, hash: Buffer): void {
    const tile = this.#tiles[level] ?? new Tile()
    this.#tiles[level] = tile
    let node = hash
    let place = index % tileWidth
    for (let row = 0; row < tileRows; row++) {
      tile.set(row, place, node)
      if (place % 2 === 0) return
      node = tile.join(row, place - 1)
      place = (place - 1) / 2
    }
    this.#full.push({ level, index: Math.floor(index / tileWidth), hashes: tile.hashes(), tile })
    this.#tiles[level] = new Tile()
    this.#add(level + 1, Math.floor(index / tileWidth), node)
  }
}

/** Locates the root of the subtree number `index` of 2^height leaves. */
export function locateNode(height: number, index: number) {
  const level = Math.floor(height / tileRows)
  const row = height % tileRows
  const width = tileWidth >> row
  return { level, row, tile: Math.floor(index / width), place: index % width }
}

function offset(row: number, index: number): number {
  return (2 * tileWidth - ((2 * tileWidth) >> row) + index) * hashBytes
}
