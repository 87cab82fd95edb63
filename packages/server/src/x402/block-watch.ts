import {
  findTransactionReceipt,
  readBlockHash,
  readFinalHeight,
  readNewestBlock,
  type TransactionReceipt,
} from './evm-chain.ts'
import type { Rpc } from './rpc.ts'

/** The chain as it was just read. */
export type ChainLook = {
  readonly head: bigint
  /** The height up to which the chain says that no block is ever replaced. */
  readonly final: bigint
  /** True where all blocks of the look before are still there. */
  readonly isSame: boolean
}

/** Watches whether blocks that were there are replaced: a hash of one block commits to all before it. */
export class BlockWatch {
  readonly #rpc: Rpc
  #newest: { readonly height: bigint; readonly hash: string } | undefined

  constructor(rpc: Rpc) {
    this.#rpc = rpc
  }

  /** Makes another watch of the same chain: each compares its own looks. */
  open(): BlockWatch {
    return new BlockWatch(this.#rpc)
  }

  /** Throws PAYMENT_NETWORK_UNREACHABLE. */
  async look(): Promise<ChainLook> {
    const before = this.#newest
    // In this order: a block that is replaced between the two is missed by the next look, if not by this one.
    const newest = await readNewestBlock(this.#rpc)
    const [hash, final] = await Promise.all([
      before && readBlockHash(this.#rpc, before.height),
      readFinalHeight(this.#rpc, newest.height),
    ])
    this.#newest = newest
    return { head: newest.height, final, isSame: before !== undefined && hash === before.hash }
  }

  /** Reads the height of the newest block. Throws PAYMENT_NETWORK_UNREACHABLE. */
  async readHeight(): Promise<bigint> {
    return (await readNewestBlock(this.#rpc)).height
  }

  /** Finds the receipt of a transaction in the block that has it now. */
  findReceipt(transaction: string): Promise<TransactionReceipt | undefined> {
    return findTransactionReceipt(this.#rpc, transaction)
  }
}
