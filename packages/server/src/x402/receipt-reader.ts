import { LRUCache } from 'lru-cache'
import { type BlockName, findBlockOf, readReceipt, type TransactionReceipt } from './evm-chain.ts'
import { isTooLarge, type Rpc, toUnreachable } from './rpc.ts'
import type { Log } from './token.ts'

/**
 * The most bytes of a receipt that counts. The log of a transfer has 630, so these are 1,600 transfers: about what fits into
 * a transaction of 16,777,216 gas, the most that Ethereum and the chains that follow it take (EIP-7825), and eighty times
 * what a joint transaction of ours has.
 */
export const receiptBytesMax = 1024 * 1024

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

type Known = BlockName & { readonly receipt: ReadReceipt }

/** Stands where another contract's log was, which counts for nothing. */
const otherLog: Log = { address: '', topics: [], data: '', transactionHash: '' }

/**
 * Reads the receipts of transactions that strangers name, as often as they like and for nothing. So a receipt has a bound,
 * and a long one is remembered, with the logs of the token alone, for as long as the same block has the transaction: a
 * block's hash commits to what its transactions did.
 */
export class ReceiptReader {
  readonly #rpc: Rpc
  readonly #token: string
  readonly #known = new LRUCache<string, Known>({
    maxSize: memoryBytesMax,
    sizeCalculation: ({ receipt }) => computeSize(receipt),
  })
  readonly #running = new Map<string, Promise<unknown>>()

  /** `token`: the contract whose logs count. */
  constructor(rpc: Rpc, token: string) {
    this.#rpc = rpc
    this.#token = token
  }

  /**
   * Finds the receipt of a transaction in a block, or in one up to `height` where that is given. Throws
   * PAYMENT_NETWORK_UNREACHABLE.
   */
  async find(transaction: string, height?: bigint): Promise<ReadReceipt | undefined> {
    const found = (await this.#findKnown(transaction)) ?? (await this.#readInTurn(transaction))
    if (found === undefined || (height !== undefined && found.blockNumber > height))
      return undefined
    return found.receipt
  }

  /** Finds what is remembered, where the chain has the transaction in the same block now. */
  async #findKnown(transaction: string): Promise<Known | undefined> {
    const known = this.#known.get(transaction)
    if (known === undefined) return undefined
    const block = await findBlockOf(this.#rpc, transaction)
    return block?.blockHash === known.blockHash ? known : undefined
  }

  /** Reads of one transaction run one after the other: the later ones know more. */
  #readInTurn(transaction: string): Promise<Pick<Known, 'blockNumber' | 'receipt'> | undefined> {
    const before = this.#running.get(transaction) ?? Promise.resolve()
    const run = before
      .catch(() => undefined)
      .then(async () => (await this.#findKnown(transaction)) ?? this.#read(transaction))
      .finally(() => {
        if (this.#running.get(transaction) === run) this.#running.delete(transaction)
      })
    this.#running.set(transaction, run)
    return run
  }

  async #read(transaction: string): Promise<Pick<Known, 'blockNumber' | 'receipt'> | undefined> {
    const receipt = await this.#readBounded(transaction)
    if (receipt === undefined) return undefined
    if (receipt === 'too large') {
      const block = await findBlockOf(this.#rpc, transaction)
      if (block !== undefined) this.#known.set(transaction, { ...block, receipt })
      return block && { ...block, receipt }
    }
    const { blockNumber, blockHash, logs } = receipt
    const kept = logs.map((log) => (log.address === this.#token ? log : otherLog))
    const known = { blockNumber, receipt: { ...receipt, logs: kept } }
    if (blockHash !== undefined && logs.length >= rememberedLogsMin)
      this.#known.set(transaction, { ...known, blockHash })
    return known
  }

  async #readBounded(transaction: string): Promise<ReadReceipt | undefined> {
    try {
      return await readReceipt(this.#rpc, transaction, { answerBytesMax: receiptBytesMax })
    } catch (error) {
      if (isTooLarge(error)) return 'too large'
      throw toUnreachable(error)
    }
  }
}

function computeSize(receipt: ReadReceipt): number {
  if (receipt === 'too large') return sizes.entry
  const own = receipt.logs.filter((log) => log !== otherLog).length
  return sizes.entry + receipt.logs.length * sizes.place + own * sizes.log
}
