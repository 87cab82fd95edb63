import { LRUCache } from 'lru-cache'

/** The parts of a committed block that never change, and where its entries were in its body. */
export type BlockIndex = {
  readonly headerText: string
  readonly signature: Buffer
  readonly firstLeaf: number
  readonly entryCount: number
  /** Bytes of the body when it was read; entries that are erased later make it shorter. */
  readonly bodyBytes: number
  /** Offset of each entry with its length in front, and the body's end. */
  readonly starts: Uint32Array
}

/** Bytes of the indexes of blocks that are kept: those of about two million entries. */
const indexBytesMax = 8 * 1024 * 1024
/** Bytes that an index has beside its offsets. */
const indexBytesMin = 1024
/** Number of crowns that are kept, of about 2 KiB each: those of two million entries. */
const crownsMax = 8 * 1024

/**
 * The memory of proofs, for all chains of a process: where entries stand in their blocks, and the upper nodes of tiles.
 * Both are parts of a log, which changes only where entries are erased: `bodyBytes` shows that.
 */
export class ProofCache {
  readonly #indexes = new LRUCache<string, BlockIndex>({
    maxSize: indexBytesMax,
    sizeCalculation: ({ starts }) => indexBytesMin + starts.byteLength,
  })
  readonly #crowns = new LRUCache<string, Buffer>({ max: crownsMax })
  #chains = 0

  /** Makes the part of one opened chain. */
  openChain(): ChainProofCache {
    const chain = ++this.#chains
    const named = <T extends object>(kept: LRUCache<string, T>): Kept<T> => ({
      get: (key) => kept.get(`${chain}/${key}`),
      set: (key, value) => void kept.set(`${chain}/${key}`, value),
      delete: (key) => void kept.delete(`${chain}/${key}`),
    })
    return { indexes: named(this.#indexes), crowns: named(this.#crowns) }
  }
}

type Kept<T> = {
  readonly get: (key: string) => T | undefined
  readonly set: (key: string, value: T) => void
  readonly delete: (key: string) => void
}

/** One chain's part of the cache; indexes by height, crowns by `formatTileKey`. */
export type ChainProofCache = { readonly indexes: Kept<BlockIndex>; readonly crowns: Kept<Buffer> }
