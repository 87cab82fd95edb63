import { findBlockOf, readBlockHash, readFinalHeight, readNewestBlock } from './evm-chain.ts'
import { type ReadReceipt, ReceiptReader } from './receipt-reader.ts'
import type { Rpc } from './rpc.ts'
import type { SaidUse } from './use-reader.ts'

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
  readonly #token: string
  readonly #receipts: ReceiptReader
  #newest: { readonly height: bigint; readonly hash: string } | undefined

  /** `token`: the contract whose logs count. */
  constructor(rpc: Rpc, token: string) {
    this.#rpc = rpc
    this.#token = token
    this.#receipts = new ReceiptReader(rpc, token)
  }

  /** Makes another watch of the same chain: each compares its own looks. */
  open(): BlockWatch {
    return new BlockWatch(this.#rpc, this.#token)
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
  findReceipt(transaction: string): Promise<ReadReceipt | undefined> {
    return this.#receipts.findMade(transaction)
  }

  /** Finds the height of the block that has a transaction now. */
  async findHeight(transaction: string): Promise<bigint | undefined> {
    return (await findBlockOf(this.#rpc, transaction))?.blockNumber
  }

  /** The same where an authorization was used, by whomever: of a long receipt it has what tells of this use. */
  findUse(transaction: string, use: SaidUse): Promise<ReadReceipt | undefined> {
    return this.#receipts.findUse(transaction, use)
  }
}
