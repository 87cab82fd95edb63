import { LRUCache } from 'lru-cache'
import { hourMs } from '../base/durations.ts'
import { type PlacedLog, readBlockLogs } from './evm-chain.ts'
import { encodeHexWord } from './hex.ts'
import { type CallOptions, hasTooManyLogs, type Rpc, toUnreachable } from './rpc.ts'
import { SharedReads } from './shared-reads.ts'
import { type Log, topics } from './token.ts'

/** An authorization of the token, lower case. */
export type SaidUse = { readonly from: string; readonly to: string; readonly nonce: string }

/** The log of a use, and the one right after it. */
type Use = { readonly transaction: string; readonly logs: readonly Log[] }
type ByNonce = ReadonlyMap<string, Use>

/** The most bytes of a short answer: the logs of a use have 1,300. */
const shortBytesMax = 64 * 1024
/** The bytes that the memory has, roughly; those of a block of a payer, and of a use. */
const memoryBytesMax = 32 * 1024 * 1024
const sizes = { block: 1_000, use: 2_000 }
/** Stands for more uses, and moves among them, than are read. */
const tooMany: ByNonce = new Map()

type Place = { readonly blockHash: string; readonly from: string }

/**
 * Reads the uses of authorizations from the logs of their blocks, where the receipt of their transaction is too long.
 * Anybody can have the token tell of moves of nothing in a payer's name, which need nobody's leave. So where a use is among
 * many of them the logs are read as far as anything is: once for a payer in a block, whatever the nonces that strangers
 * name, and beside all other calls.
 */
export class UseReader {
  readonly #rpc: Rpc
  readonly #token: string
  readonly #known = new LRUCache<string, ByNonce>({
    maxSize: memoryBytesMax,
    sizeCalculation: ({ size }) => sizes.block + size * sizes.use,
  })
  readonly #reads = new SharedReads<ByNonce>()

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
    use: SaidUse,
    blockHash: string,
  ): Promise<readonly Log[] | 'too large' | undefined> {
    const place = { blockHash, from: use.from }
    const byNonce =
      this.#findKnown(place, use.nonce) ??
      (await this.#read({ ...place, use }, { answerBytesMax: shortBytesMax, isAlone: true })) ??
      (await this.#findAll(place, use.nonce))
    if (byNonce === tooMany) return 'too large'
    const found = byNonce.get(use.nonce)
    return found?.transaction === transaction ? found.logs : undefined
  }

  /** A node that did not have all of the block may have more by now. */
  #findKnown(place: Place, nonce: string): ByNonce | undefined {
    const known = this.#known.get(formatPlace(place))
    return known === tooMany || known?.has(nonce) === true ? known : undefined
  }

  /** Reads all uses of a payer in a block, this one among them, once for all who ask. */
  #findAll(place: Place, nonce: string): Promise<ByNonce> {
    const key = formatPlace(place)
    return this.#reads.run(key, async () => {
      const known = this.#findKnown(place, nonce)
      if (known !== undefined) return known
      const read = (await this.#read(place, { isHeavy: true })) ?? tooMany
      this.#known.set(key, read, read === tooMany ? { ttl: hourMs } : {})
      return read
    })
  }

  /** Reads the uses of a payer, or the one that is meant; undefined where the answer is too large. */
  async #read(
    { blockHash, from, use }: Place & { readonly use?: SaidUse },
    options: CallOptions,
  ): Promise<ByNonce | undefined> {
    const payer = `0x${encodeHexWord(from)}`
    const ends = use === undefined ? [] : [[use.nonce, `0x${encodeHexWord(use.to)}`]]
    const wanted = [[topics.used, topics.transfer], payer, ...ends]
    const filter = { address: this.#token, topics: wanted, blockHash }
    try {
      return listUses(await readBlockLogs(this.#rpc, filter, options))
    } catch (error) {
      if (hasTooManyLogs(error)) return undefined
      throw toUnreachable(error)
    }
  }
}

function formatPlace({ blockHash, from }: Place): string {
  return `${blockHash} ${from}`
}

/** Lists uses by their nonces: the token takes each once. */
function listUses(logs: readonly PlacedLog[]): ByNonce {
  const byPlace = new Map(logs.map((log) => [log.logIndex, log]))
  const uses = new Map<string, Use>()
  for (const log of logs) {
    const [event, , nonce = ''] = log.topics
    const transaction = log.transactionHash
    if (event !== topics.used || uses.has(nonce)) continue
    const next = byPlace.get(log.logIndex + 1n)
    const isOwn = next?.transactionHash === transaction
    uses.set(nonce, { transaction, logs: isOwn ? [log, next] : [log] })
  }
  return uses
}
