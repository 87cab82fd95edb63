import type { BlockStore } from './block-store.ts'
import type { LogParts } from './log-parts.ts'
import { hashLeaf } from './merkle.ts'
import { type Block, parseBlockInTurns } from './parse-block.ts'
import type { BlockIndex, ChainProofCache } from './proof-cache.ts'

/** An entry of a committed block; `read` gives its bytes, undefined where they were erased. */
export type FoundEntry = Pick<BlockIndex, 'headerText' | 'signature' | 'firstLeaf'> & {
  readonly read: () => Promise<ReadEntry>
}

export type ReadEntry = { readonly bytes: Buffer | undefined; readonly leafHash: Buffer }

/** Bytes of a body from which on an entry is read by its place: less are read whole as fast. */
const largeBytes = 16 * 1024
const lengthBytes = 4

/**
 * Reads single entries. The first one of a large block reads the block, checks it and keeps where its entries are;
 * each later one reads its own bytes alone, which its leaf hash vouches for.
 */
export class EntryReader {
  readonly #store: BlockStore
  readonly #parts: LogParts
  readonly #indexes: ChainProofCache['indexes']

  constructor(
    store: BlockStore,
    { parts, indexes }: Pick<ChainProofCache, 'indexes'> & { readonly parts: LogParts },
  ) {
    this.#store = store
    this.#parts = parts
    this.#indexes = indexes
  }

  /** Finds an entry of a block that is committed; undefined where the block has no such entry. */
  async find(height: number, sequence: number): Promise<FoundEntry | undefined> {
    const known = this.#indexes.get(String(height))
    if (known !== undefined) {
      if (!hasEntry(known, sequence)) return undefined
      return { ...known, read: () => this.#readPart(known, height, sequence) }
    }
    const block = await this.#open(height)
    if (block === undefined || !hasEntry(block.header, sequence)) return undefined
    // Named one by one: a spread would decode all entries of the block.
    const { headerText, signature, firstLeaf } = block
    return { headerText, signature, firstLeaf, read: async () => readFrom(block, sequence) }
  }

  async #open(height: number): Promise<Block | undefined> {
    const row = await this.#store.block(height)
    if (row === undefined) return undefined
    const block = await parseBlockInTurns(row)
    if (row.body.length >= largeBytes)
      this.#indexes.set(String(height), makeIndex(block, row.body.length))
    return block
  }

  async #readPart(index: BlockIndex, height: number, sequence: number): Promise<ReadEntry> {
    const start = (index.starts[sequence] ?? 0) + lengthBytes
    const length = (index.starts[sequence + 1] ?? start) - start
    const part = await this.#parts.readEntry({ height, sequence, start, length })
    // A shorter body has lost entries since, and the others are elsewhere.
    if (part?.bodyBytes !== index.bodyBytes) {
      this.#indexes.delete(String(height))
      const block = await this.#open(height)
      if (block === undefined) throw new Error(`block ${height} is gone; run the audit`)
      return readFrom(block, sequence)
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

function readFrom(block: Block, sequence: number): ReadEntry {
  return { bytes: block.entryBytes(sequence), leafHash: block.leafHash(sequence) }
}

/** An erased entry has no bytes; every other one has its header's. */
function makeIndex(block: Block, bodyBytes: number): BlockIndex {
  const { headerText, signature, firstLeaf, header } = block
  const { entryCount } = header
  const starts = new Uint32Array(entryCount + 1)
  for (let at = 0; at < entryCount; at++)
    starts[at + 1] = (starts[at] ?? 0) + lengthBytes + (block.entryBytes(at)?.length ?? 0)
  return { headerText, signature, firstLeaf, entryCount, bodyBytes, starts }
}
