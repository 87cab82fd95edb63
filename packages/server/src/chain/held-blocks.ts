import type { AppliedBlock } from './applier.ts'

/** A freshly committed block; `open` makes its entries when their turn comes. */
export type CommittedBlock = {
  readonly height: number
  readonly bytes: number
  readonly entries: number
  /** Time of its commit, milliseconds since 1970. */
  readonly time: number
  readonly open: () => AppliedBlock
}

/** Limits of one transaction. With more entries, whoever waits for the first would wait for the last. */
export const stepBounds = { blocksMax: 64, entriesMax: 1_000, bytesMax: 16 * 1024 * 1024 } as const
/** Limits of the blocks waiting in memory; blocks beyond them are read from the log again. */
const heldBytesMax = 32 * 1024 * 1024
const heldBlocksMax = 4_096

/** The committed blocks that wait in memory to be applied, in their order; after the first gap none is used. */
export class HeldBlocks {
  #blocks: CommittedBlock[] = []
  #bytes = 0

  /** Returns the height of the first block; infinite where there is none. */
  get firstHeight(): number {
    return this.#blocks[0]?.height ?? Number.POSITIVE_INFINITY
  }

  /** Adds a block if there is room for it. */
  add(block: CommittedBlock): void {
    if (this.#blocks.length >= heldBlocksMax || this.#bytes + block.bytes > heldBytesMax) return
    this.#blocks.push(block)
    this.#bytes += block.bytes
  }

  /** Opens the blocks of one transaction from this height on; undefined where the first one is not here. */
  next(from: number, blocksMax: number): readonly AppliedBlock[] | undefined {
    if (this.firstHeight !== from) return undefined
    const blocks: AppliedBlock[] = []
    let [bytes, entries] = [0, 0]
    for (const held of this.#blocks) {
      bytes += held.bytes
      entries += held.entries
      const follows = held.height === from + blocks.length
      const isFull = bytes > stepBounds.bytesMax || entries > stepBounds.entriesMax
      if (!follows || blocks.length === blocksMax || (blocks.length > 0 && isFull)) break
      blocks.push(held.open())
    }
    return blocks
  }

  /** Lets go of the blocks up to this height, which are applied. */
  release(applied: number): void {
    let count = 0
    for (const { height, bytes } of this.#blocks) {
      if (height > applied) break
      this.#bytes -= bytes
      count += 1
    }
    this.#blocks.splice(0, count)
  }

  clear(): void {
    this.#blocks = []
    this.#bytes = 0
  }
}
