import type { ByteLimit } from '../base/byte-limit.ts'
import { Singleflight } from '../base/singleflight.ts'
import type { BlockStore } from './block-store.ts'
import { type Block, parseBlockInTurns } from './parse-block.ts'

/** A block, and what its reader calls once it has no more use for it. */
export type HeldBlock = { readonly block: Block; readonly leave: () => void }

/** Bytes that are held for each byte of a block: its entries are decoded beside it. */
const heldPerByte = 2

/**
 * Reads blocks for requests, each of which may need megabytes. Those of all chains have one bound in memory, so long as
 * nobody who holds a block asks for another one; those who need the same one at the same time share one reading.
 */
export class BlockReader {
  readonly #store: BlockStore
  readonly #limit: ByteLimit
  readonly #chain: string
  readonly #reading = new Singleflight()

  constructor(
    store: BlockStore,
    { limit, chain }: { readonly limit: ByteLimit; readonly chain: string },
  ) {
    this.#store = store
    this.#limit = limit
    this.#chain = chain
  }

  /**
   * Reads a block, and holds its bytes until `leave` is called. Undefined where there is none. UNAVAILABLE where too much
   * is held for too long, or the signal is aborted before its turn.
   */
  async hold(height: number, signal?: AbortSignal): Promise<HeldBlock | undefined> {
    const found = await this.#store.small(height)
    if (found === undefined) return undefined
    if (found.row !== undefined)
      return { block: await parseBlockInTurns(found.row), leave: () => undefined }
    const bytes = found.bytes * heldPerByte
    const leave = await this.#limit.hold({ holder: this.#chain, bytes, signal })
    try {
      const row = await this.#reading.run(String(height), 'read', () => this.#store.block(height))
      if (row !== undefined) return { block: await parseBlockInTurns(row), leave }
    } catch (error) {
      leave()
      throw error
    }
    leave()
    return undefined
  }
}
