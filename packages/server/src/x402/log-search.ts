import { LRUCache } from 'lru-cache'
import { chooseLarger } from '../base/bigint.ts'
import { readHead, readLogs } from './evm-chain.ts'
import { TransportError } from './http-json.ts'
import { type CallOptions, isTooLarge, type Rpc, toUnreachable } from './rpc.ts'
import type { Log } from './token.ts'

/** The events that are looked for. */
export type LogFilter = {
  readonly address: string
  readonly topics: readonly (string | readonly string[] | null)[]
}

/** The number of blocks per request; public nodes refuse larger ranges. */
export const rangeBlocks = 2_000n
/** Ranges to look back: a day on a chain with a block every two seconds. */
export const rangesMax = 22
/** The most bytes of a range's answer that travels with those of other searches: some 800 logs. */
const sharedBytesMax = 512 * 1024
/** The most filters that are remembered, the most logs of one, and of all: some 60 MB. */
const filtersMax = 10_000
const logsMax = 1_000
const logsOfAllMax = 100_000
/** Searches for one filter that wait: a payer may have many permits, and anybody may bring all of them. */
const waitingMax = 32

/** Blocks that were read without a gap, and their logs, those of newer ranges first. */
type Known = { readonly top: bigint; readonly bottom: bigint; readonly logs: readonly Log[] }

/**
 * Finds the newest log of a filter within a day of blocks, range by range. Anybody can send a payment whose use is long
 * ago, or was never, as often as he likes. So what was read of older ranges is remembered: a repeated search asks the node
 * for the newest range alone. A reorganization changes only the newest range.
 */
export class LogSearch {
  readonly #rpc: Rpc
  readonly #isMeant: (log: Log) => boolean
  readonly #known = new LRUCache<string, Known>({
    max: filtersMax,
    maxSize: logsOfAllMax,
    sizeCalculation: ({ logs }) => 1 + logs.length,
  })
  /** The searches for each filter that are under way: their number, and the last one. */
  readonly #lines = new Map<string, { count: number; last: Promise<unknown> }>()

  /** `isMeant`: tells those that are never looked for, which take no room in memory. */
  constructor(rpc: Rpc, isMeant: (log: Log) => boolean = () => true) {
    this.#rpc = rpc
    this.#isMeant = isMeant
  }

  /**
   * Finds the first log that matches. Searches for one filter run one after the other: the later ones know more. One that
   * finds too many of them fails as if the node said nothing.
   */
  async find(
    filter: LogFilter,
    isMatch: (log: Log) => boolean | Promise<boolean>,
  ): Promise<Log | undefined> {
    const key = JSON.stringify([filter.address, filter.topics])
    const line = this.#lines.get(key) ?? { count: 0, last: Promise.resolve() }
    if (line.count > waitingMax)
      throw toUnreachable(new TransportError('too many searches for these logs are under way'))
    const run = line.last
      .catch(() => undefined)
      .then(() => this.#search(key, filter, isMatch))
      .finally(() => {
        line.count -= 1
        if (line.count === 0) this.#lines.delete(key)
      })
    line.count += 1
    line.last = run
    this.#lines.set(key, line)
    return run
  }

  async #search(
    key: string,
    filter: LogFilter,
    isMatch: (log: Log) => boolean | Promise<boolean>,
  ): Promise<Log | undefined> {
    const head = await readHead(this.#rpc)
    const newest = floorAtZero(head - rangeBlocks + 1n)
    const floor = floorAtZero(head - rangeBlocks * BigInt(rangesMax) + 1n)
    const read = (from: bigint, to: bigint) => this.#read(filter, from, to)
    const fresh = await findMatch(await read(newest, head), isMatch)
    if (fresh !== undefined || newest === 0n) return fresh
    const known = this.#known.get(key)
    const isUseful = known !== undefined && known.top < newest && known.top >= floor
    let { top, bottom, logs }: Known = isUseful
      ? known
      : { top: newest - 1n, bottom: newest, logs: [] }
    const gap: Log[] = []
    for (let to = newest - 1n; to > top; to -= rangeBlocks)
      gap.push(...(await read(chooseLarger(to - rangeBlocks + 1n, top + 1n), to)))
    top = newest - 1n
    logs = [...gap, ...logs]
    let found = await findMatch(logs, isMatch)
    while (found === undefined && bottom > floor) {
      const from = chooseLarger(bottom - rangeBlocks, floor)
      const older = await read(from, bottom - 1n)
      bottom = from
      logs = [...logs, ...older]
      found = await findMatch(older, isMatch)
    }
    if (logs.length <= logsMax) this.#known.set(key, { top, bottom, logs })
    return found
  }

  /**
   * Reads a range, by halves where one answer would be too large: anybody can make as many events as he pays gas for.
   * Nobody else's search waits for what is large.
   */
  async #read(filter: LogFilter, fromBlock: bigint, toBlock: bigint): Promise<readonly Log[]> {
    const range = [fromBlock, toBlock] as const
    const logs = await this.#find(filter, range, { answerBytesMax: sharedBytesMax })
    return logs ?? this.#readHeavy(filter, fromBlock, toBlock)
  }

  async #readHeavy(filter: LogFilter, fromBlock: bigint, toBlock: bigint): Promise<readonly Log[]> {
    const logs = await this.#find(filter, [fromBlock, toBlock], { isHeavy: true })
    if (logs !== undefined) return logs
    const middle = (fromBlock + toBlock) / 2n
    const older = await this.#readHeavy(filter, fromBlock, middle)
    return [...older, ...(await this.#readHeavy(filter, middle + 1n, toBlock))]
  }

  /** Reads the logs of a range that are meant; undefined where the answer is too large and the range has more blocks than one. */
  async #find(
    filter: LogFilter,
    [fromBlock, toBlock]: readonly [bigint, bigint],
    options: CallOptions,
  ): Promise<readonly Log[] | undefined> {
    try {
      const logs = await readLogs(this.#rpc, { ...filter, fromBlock, toBlock }, options)
      return logs.filter(this.#isMeant)
    } catch (error) {
      if (!isTooLarge(error) || (options.isHeavy === true && fromBlock === toBlock)) throw error
      return undefined
    }
  }
}

async function findMatch(
  logs: readonly Log[],
  isMatch: (log: Log) => boolean | Promise<boolean>,
): Promise<Log | undefined> {
  for (const log of logs) if (await isMatch(log)) return log
  return undefined
}

function floorAtZero(block: bigint): bigint {
  return chooseLarger(block, 0n)
}
