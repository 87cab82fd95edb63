import { LRUCache } from 'lru-cache'
import { findConfirmed } from './confirmed.ts'
import {
  type BlockName,
  findBlockOf,
  findTransactionReceipt,
  isKnown,
  readLogs,
  type TransactionReceipt,
} from './evm-chain.ts'
import { encodeHexWord } from './hex.ts'
import { isTooLarge, type Rpc, toUnreachable } from './rpc.ts'
import { SharedReads } from './shared-reads.ts'
import { type Log, topics } from './token.ts'
import { type SaidUse, UseReader } from './use-reader.ts'

/**
 * The most bytes of a receipt that is read for everybody; a longer one only where it moved money as is said. The log of a
 * transfer has 630, so these are 1,600 transfers: about what fits into a transaction of 16,777,216 gas, the most that
 * Ethereum and the chains that follow it take (EIP-7825), and eighty times what a joint transaction of ours has.
 */
export const receiptBytesMax = 1024 * 1024

/** The most bytes of the logs that tell of such moves in one block; a hundred of them are no payment. */
const moveBytesMax = 64 * 1024
/** The bytes that the memory has, roughly. */
const memoryBytesMax = 32 * 1024 * 1024
/** A receipt of fewer logs is as cheap to read again as to compare. */
const rememberedLogsMin = 32
/** Bytes of an entry, of a place among its logs, and of a log of the token. */
const sizes = { entry: 1_000, place: 8, log: 1_000 }

/** The words of a refusal, after "the transaction". */
export const tooManyEvents = 'has too many events to be looked at'

/** A receipt; or that it has more bytes than are read. */
export type ReadReceipt = TransactionReceipt | 'too large'

/** A move of the token that somebody speaks of; from anybody where `from` is not given. */
export type SaidMove = { readonly from?: string; readonly to: string }

/** `isEndless`: it has more bytes than are ever read. */
type Read = {
  readonly blockNumber: bigint
  /** Undefined where the node does not say. */
  readonly blockHash: string | undefined
  readonly receipt: ReadReceipt
  readonly isEndless?: boolean
}
type Known = BlockName & Read
type Found = Read | undefined

/** The most bytes that are read of a receipt: those of everybody, or all that are read of anything. */
type Extent = 'bounded' | 'whole'

/** Stands where another contract's log was, which counts for nothing. */
const otherLog: Log = { address: '', topics: [], data: '', transactionHash: '' }

/**
 * Reads the receipts of transactions that strangers name, as often as they like and for nothing. So a receipt has a bound
 * unless it moved money to us, and a long one is remembered, with the logs of the token alone, for as long as the same block
 * has the transaction: a block's hash commits to what its transactions did.
 */
export class ReceiptReader {
  readonly #rpc: Rpc
  readonly #token: string
  readonly #known = new LRUCache<string, Known>({
    maxSize: memoryBytesMax,
    sizeCalculation: ({ receipt }) => computeSize(receipt),
  })
  readonly #reads = new SharedReads<Found>()
  readonly #looks = new SharedReads<boolean>()
  readonly #uses: UseReader
  readonly #confirmations: number

  /** `token`: the contract whose logs count; `confirmations`: the blocks that must hold or follow what is found. */
  constructor(rpc: Rpc, token: string, confirmations = 1) {
    this.#rpc = rpc
    this.#token = token
    this.#uses = new UseReader(rpc, token)
    this.#confirmations = confirmations
  }

  /** Returns true if the node has the transaction, whose data may be long, in a block or waiting for one. */
  isKnown(transaction: string): Promise<boolean> {
    return this.#looks.run(transaction, () => isKnown(this.#rpc, transaction))
  }

  /** Finds the receipt of a transaction whose block is deep enough. Throws PAYMENT_NETWORK_UNREACHABLE. */
  async find(transaction: string, moved: SaidMove): Promise<ReadReceipt | undefined> {
    const found = await this.#findShared(transaction, 'bounded')
    if (!isCut(found) || !(await this.#hasMoved(transaction, moved, found.blockNumber)))
      return found?.receipt
    return this.findMade(transaction)
  }

  /** Finds the receipt of a transaction that is known to have moved money to us: it is read as far as anything is. */
  async findMade(transaction: string): Promise<ReadReceipt | undefined> {
    const found = await this.#findShared(transaction, 'bounded')
    return (isCut(found) ? await this.#findShared(transaction, 'whole') : found)?.receipt
  }

  /**
   * Finds the receipt of a transaction that used an authorization, whoever sent it. Where the receipt is too long, it has
   * the logs of that use alone, as the node has them of the block.
   */
  async findUse(transaction: string, use: SaidUse): Promise<ReadReceipt | undefined> {
    const found = await this.#findShared(transaction, 'bounded')
    const { blockNumber, blockHash } = found ?? {}
    const isWhole = found?.receipt !== 'too large'
    if (isWhole || blockNumber === undefined || blockHash === undefined) return found?.receipt
    const logs = await this.#uses.find(transaction, use, blockHash)
    if (logs === undefined || logs === 'too large') return logs
    return makeUseReceipt(transaction, { blockNumber, blockHash }, logs)
  }

  /** Returns true where the transaction made such a move in the block, which is real money. */
  async #hasMoved(
    transaction: string,
    { from, to }: SaidMove,
    blockNumber: bigint,
  ): Promise<boolean> {
    const sender = from === undefined ? null : `0x${encodeHexWord(from)}`
    const filter = {
      ...{ address: this.#token, fromBlock: blockNumber, toBlock: blockNumber },
      topics: [topics.transfer, sender, `0x${encodeHexWord(to)}`],
    }
    try {
      const logs = await readLogs(this.#rpc, filter, { answerBytesMax: moveBytesMax })
      // A move of nothing costs its sender nothing but gas.
      return logs.some(
        (log) => log.transactionHash === transaction && /[1-9a-f]/.test(log.data.slice(2)),
      )
    } catch (error) {
      if (isTooLarge(error)) return false
      throw toUnreachable(error)
    }
  }

  /** Finds what is remembered, where the chain has the transaction in the same block now. */
  async #findKnown(transaction: string): Promise<Known | undefined> {
    const known = this.#known.get(transaction)
    if (known === undefined) return undefined
    const block = await findBlockOf(this.#rpc, transaction)
    return block?.blockHash === known.blockHash ? known : undefined
  }

  /** Finds what is remembered, or reads it, once for all who ask at once; undefined where its block is not deep enough. */
  #findShared(transaction: string, extent: Extent): Promise<Found> {
    return this.#reads.run(`${transaction} ${extent}`, () =>
      findConfirmed(this.#rpc, this.#confirmations, async () => {
        const known = await this.#findKnown(transaction)
        const isEnough = known !== undefined && (extent === 'bounded' || !isCut(known))
        return isEnough ? known : this.#read(transaction, extent)
      }),
    )
  }

  async #read(transaction: string, extent: Extent): Promise<Found> {
    const receipt = await this.#readExtent(transaction, extent)
    if (receipt === undefined) return undefined
    if (receipt === 'too large') {
      const block = await findBlockOf(this.#rpc, transaction)
      if (block === undefined) return undefined
      const known = { ...block, receipt, isEndless: extent === 'whole' }
      this.#known.set(transaction, known)
      return known
    }
    const { blockNumber, blockHash, logs } = receipt
    const kept = logs.map((log) => (log.address === this.#token ? log : otherLog))
    const known = { blockNumber, blockHash, receipt: { ...receipt, logs: kept } }
    if (blockHash !== undefined && logs.length >= rememberedLogsMin)
      this.#known.set(transaction, { ...known, blockHash })
    return known
  }

  async #readExtent(transaction: string, extent: Extent): Promise<ReadReceipt | undefined> {
    const options = extent === 'bounded' ? { answerBytesMax: receiptBytesMax } : { isHeavy: true }
    try {
      return await findTransactionReceipt(this.#rpc, transaction, options)
    } catch (error) {
      if (isTooLarge(error)) return 'too large'
      throw toUnreachable(error)
    }
  }
}

/** Returns true where more of it can be read. */
function isCut(found: Found): found is Read {
  return found?.receipt === 'too large' && found.isEndless !== true
}

function computeSize(receipt: ReadReceipt): number {
  if (receipt === 'too large') return sizes.entry
  const own = receipt.logs.filter((log) => log !== otherLog).length
  return sizes.entry + receipt.logs.length * sizes.place + own * sizes.log
}

/** Makes a receipt of a few of its logs: a transaction that was reverted has none. */
function makeUseReceipt(hash: string, block: BlockName, logs: readonly Log[]): TransactionReceipt {
  return { hash, succeeded: true, ...block, logs, to: undefined, gas: 0n }
}
