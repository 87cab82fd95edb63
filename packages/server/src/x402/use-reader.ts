import { LRUCache } from 'lru-cache'
import { type PlacedLog, readBlockLogs } from './evm-chain.ts'
import { encodeHexWord } from './hex.ts'
import { hasTooManyLogs, type Rpc, toUnreachable } from './rpc.ts'
import { SharedReads } from './shared-reads.ts'
import { type Log, topics } from './token.ts'

/** An authorization of the token, lower case. */
export type SaidUse = { readonly from: string; readonly to: string; readonly nonce: string }

/** The log of a use, and the one right after it, where that is a move by the same payer. */
type Use = { readonly transaction: string; readonly logs: readonly Log[] }
/** By their nonces; `areTooMany`: they, and the moves among them, are more than are read. */
type Uses = { readonly byNonce: ReadonlyMap<string, Use>; readonly areTooMany: boolean }

/** The bytes that the memory has, roughly; those of a block of a payer, and of a use. */
const memoryBytesMax = 32 * 1024 * 1024
const sizes = { block: 1_000, use: 2_000 }

/**
 * Reads the uses of authorizations from the logs of their blocks, where the receipt of their transaction is too long.
 * Anybody can have the token tell of moves of nothing in a payer's name, which need nobody's leave, so the logs are read
 * as far as anything is: once for a payer in a block, whatever the nonces that strangers name, and beside all other calls.
 */
export class UseReader {
  readonly #rpc: Rpc
  readonly #token: string
  readonly #known = new LRUCache<string, Uses>({
    maxSize: memoryBytesMax,
    sizeCalculation: ({ byNonce }) => sizes.block + byNonce.size * sizes.use,
  })
  readonly #reads = new SharedReads<Uses>()

  /** `token`: the contract whose logs count. */
  constructor(rpc: Rpc, token: string) {
    this.#rpc = rpc
    this.#token = token
  }

  /**
   * Finds the logs of a use in its transaction's block; undefined where they tell of none. Throws
   * PAYMENT_NETWORK_UNREACHABLE.
   */
  async find(
    transaction: string,
    { from, nonce }: Pick<SaidUse, 'from' | 'nonce'>,
    blockHash: string,
  ): Promise<readonly Log[] | 'too large' | undefined> {
    const key = `${blockHash} ${from}`
    const { byNonce, areTooMany } = await this.#reads.run(key, async () => {
      const known = this.#known.get(key)
      if (known !== undefined) return known
      const read = await this.#read(from, blockHash)
      this.#known.set(key, read)
      return read
    })
    if (areTooMany) return 'too large'
    const use = byNonce.get(nonce)
    return use?.transaction === transaction ? use.logs : undefined
  }

  async #read(from: string, blockHash: string): Promise<Uses> {
    const wanted = [[topics.used, topics.transfer], `0x${encodeHexWord(from)}`]
    const filter = { address: this.#token, topics: wanted, blockHash }
    try {
      const logs = await readBlockLogs(this.#rpc, filter, { isHeavy: true })
      return { byNonce: listUses(logs), areTooMany: false }
    } catch (error) {
      if (hasTooManyLogs(error)) return { byNonce: new Map(), areTooMany: true }
      throw toUnreachable(error)
    }
  }
}

function listUses(logs: readonly PlacedLog[]): ReadonlyMap<string, Use> {
  return new Map(
    logs.flatMap((log, at): [string, Use][] => {
      const [event, , nonce = ''] = log.topics
      if (event !== topics.used) return []
      const next = logs[at + 1]
      const isRightAfter = next?.logIndex === log.logIndex + 1n
      const transaction = log.transactionHash
      return [[nonce, { transaction, logs: isRightAfter ? [log, next] : [log] }]]
    }),
  )
}
