import type { BlockReader, HeldBlock } from './block-reader.ts'
import type { LogParts } from './log-parts.ts'
import { hashLeaf } from './merkle.ts'
import type { Block } from './parse-block.ts'
import type { BlockIndex, ChainProofCache } from './proof-cache.ts'

/** An entry of a committed block; `read` gives its bytes, undefined where they were erased. */
export type FoundEntry = Pick<BlockIndex, 'headerText' | 'signature' | 'firstLeaf'> & {
  readonly read: () => Promise<ReadEntry>
}

/** An entry's place in the log. */
export type EntryPlace = { readonly height: number; readonly sequence: number }

/** The bytes of an entry that is not erased. */
export type FoundBytes = { readonly bytes: Buffer; readonly leafIndex: number }

export type ReadEntry = { readonly bytes: Buffer | undefined; readonly leafHash: Buffer }

/** Bytes of a body from which on an entry is read by its place: less are read whole as fast. */
const largeBytes = 16 * 1024
const lengthBytes = 4

/**
 * Reads single entries. The first one of a large block reads the block, checks it and keeps where its entries are;
 * each later one reads its own bytes alone, which its leaf hash vouches for.
 */
export class EntryReader {
  readonly #blocks: BlockReader
  readonly #parts: LogParts
  readonly #indexes: ChainProofCache['indexes']

  constructor(
    blocks: BlockReader,
    { parts, indexes }: Pick<ChainProofCache, 'indexes'> & { readonly parts: LogParts },
  ) {
    this.#blocks = blocks
    this.#parts = parts
    this.#indexes = indexes
  }

  /**
   * Finds an entry of a block that is committed; undefined where the block has no such entry. Its caller holds no block
   * (see BlockReader).
   */
  async find(place: EntryPlace, signal?: AbortSignal): Promise<FoundEntry | undefined> {
    const { height, sequence } = place
    const known = this.#indexes.get(String(height))
    if (known !== undefined) {
      if (!hasEntry(known, sequence)) return undefined
      return { ...known, read: () => this.#readPart(known, place, signal) }
    }
    const held = await this.#open(height, signal)
    if (held === undefined) return undefined
    try {
      const { block } = held
      if (!hasEntry(block.header, sequence)) return undefined
      // Named one by one: a spread would decode all entries of the block.
      const { headerText, signature, firstLeaf } = block
      const entry = copyFrom(block, sequence)
      return { headerText, signature, firstLeaf, read: async () => entry }
    } finally {
      held.leave()
    }
  }

  async #open(height: number, signal: AbortSignal | undefined): Promise<HeldBlock | undefined> {
    const held = await this.#blocks.hold(height, signal)
    if (held === undefined) return undefined
    const { block } = held
    if (block.bodyBytes >= largeBytes) this.#indexes.set(String(height), makeIndex(block))
    return held
  }

  async #readPart(
    index: BlockIndex,
    { height, sequence }: EntryPlace,
    signal: AbortSignal | undefined,
  ): Promise<ReadEntry> {
    const start = (index.starts[sequence] ?? 0) + lengthBytes
    const length = (index.starts[sequence + 1] ?? start) - start
    const part = await this.#parts.readEntry({ height, sequence, start, length })
    // A shorter body has lost entries since, and the others are elsewhere.
    if (part?.bodyBytes !== index.bodyBytes) {
      this.#indexes.delete(String(height))
      const held = await this.#open(height, signal)
      if (held === undefined) throw new Error(`block ${height} is gone; run the audit`)
      try {
        return copyFrom(held.block, sequence)
      } finally {
        held.leave()
      }
    }
    const { entry, leafHash } = part
    if (length === 0) return { bytes: undefined, leafHash }
    if (!hashLeaf(entry).equals(leafHash))
      throw new Error(
        `block ${height} is damaged: entry ${sequence} is not that of its hash; run the audit`,
      )
    return { bytes: entry, leafHash }
  }
}

function hasEntry({ entryCount }: { readonly entryCount: number }, sequence: number): boolean {
  return sequence >= 0 && sequence < entryCount
}

/** Copies an entry, whose bytes in the block would keep all of it in memory. */
function copyFrom(block: Block, sequence: number): ReadEntry {
  const bytes = block.entryBytes(sequence)
  return { bytes: bytes && Buffer.from(bytes), leafHash: Buffer.from(block.leafHash(sequence)) }
}

/** An erased entry has no bytes; every other one has its header's. */
function makeIndex(block: Block): BlockIndex {
  const { headerText, signature, firstLeaf, header, bodyBytes } = block
  const { entryCount } = header
  const starts = new Uint32Array(entryCount + 1)
  for (let at = 0; at < entryCount; at++)
    starts[at + 1] = (starts[at] ?? 0) + lengthBytes + (block.entryBytes(at)?.length ?? 0)
  return { headerText, signature, firstLeaf, entryCount, bodyBytes, starts }
}
