import { anchoredTopic, hashOrigin } from '@tollbase/verify/anchor'
import { decodeHex, FormatError } from '@tollbase/verify/bytes'
import { type Chunk, decodeChunk } from '@tollbase/verify/publication'
import { Fault } from '../../base/fault.ts'
import { readHead, readLogs, readTransactionCall } from '../../x402/evm-chain.ts'
import { encodeHexWord } from '../../x402/hex.ts'
import type { Rpc } from '../../x402/rpc.ts'

export type ReadOptions = {
  /** The contract of contracts/Anchors.sol. */
  readonly contract: string
  /** The name of the application's log: `<service>/<app>`. */
  readonly origin: string
  /** Only what this address sent; of anybody where not given, as signatures tell what is right. */
  readonly sender?: string | undefined
  readonly fromBlock: bigint
  readonly onProgress: (text: string, part: number) => void
}

/** Blocks of the other chain that are asked for at once, as long as the node takes that. */
const rangeMax = 50_000n
/** Selector and three words stand before the chunk. */
const callBytes = 4 + 3 * 32
/** Transactions that are read at once. */
const readsAtOnce = 8

/** A chunk with the address that sent it: what one stranger sends must not take the place of another's. */
export type SentChunk = Chunk & { readonly sender: string }

/**
 * Yields all chunks that the chain has of a log, in the chain's order, and passes over what is none: anybody can call the
 * contract. Faults where the node does not answer.
 */
export async function* readChunks(
  rpc: Rpc,
  options: ReadOptions,
): AsyncGenerator<SentChunk, void, undefined> {
  const { onProgress } = options
  const found = [...(await findTransactions(rpc, options))]
  for (let at = 0; at < found.length; at += readsAtOnce) {
    const some = found.slice(at, at + readsAtOnce)
    const read = await Promise.all(
      some.map(async ([hash, sender]) =>
        findChunk((await readTransactionCall(rpc, hash))?.data).map((chunk) => ({
          ...chunk,
          sender,
        })),
      ),
    )
    yield* read.flat()
    onProgress(`reading transactions: ${at + some.length}`, (at + some.length) / found.length)
  }
}

/** Finds the transactions, each with the topic of its sender. */
async function findTransactions(rpc: Rpc, options: ReadOptions): Promise<Map<string, string>> {
  const { contract: address, origin, sender, fromBlock, onProgress } = options
  const head = await readHead(rpc)
  const who = sender === undefined ? null : `0x${encodeHexWord(sender)}`
  const topics = [anchoredTopic, who, hashOrigin(origin)]
  const found = new Map<string, string>()
  let range = rangeMax
  for (let from = fromBlock; from <= head; ) {
    const toBlock = from + range - 1n < head ? from + range - 1n : head
    try {
      const logs = await readLogs(rpc, { address, topics, fromBlock: from, toBlock })
      for (const {
        transactionHash,
        topics: [, by = ''],
      } of logs)
        found.set(transactionHash, by)
    } catch (error) {
      // Nodes refuse ranges that are too long for them, each with words of its own.
      if (!(error instanceof Fault) || range === 1n) throw error
      range = (range + 1n) / 2n
      continue
    }
    from = toBlock + 1n
    onProgress(`looking through blocks up to ${toBlock}`, Number(toBlock) / Number(head))
  }
  return found
}

function findChunk(data: string | undefined): Chunk[] {
  if (data === undefined || data.length < 2 + 2 * callBytes) return []
  try {
    return [decodeChunk(decodeHex(data.slice(2 + 2 * callBytes), data.length / 2 - 1 - callBytes))]
  } catch (error) {
    if (error instanceof FormatError) return []
    throw error
  }
}
