import { anchoredTopic, hashOrigin } from '@tollbase/verify/anchor'
import { decodeHex, FormatError } from '@tollbase/verify/bytes'
import { type Chunk, decodeChunk } from '@tollbase/verify/publication'
import { Fault } from '../../base/fault.ts'
import { SetupError } from '../../base/setup-error.ts'
import { readLogs, readTransactionCall } from '../../x402/evm-chain.ts'
import { encodeHexWord } from '../../x402/hex.ts'
import { AnswerTooLarge } from '../../x402/http-json.ts'
import { type Rpc, RpcError } from '../../x402/rpc.ts'
import { readSearchedHead } from '../impossible-head.ts'

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
/** Ranges in a row that the node takes, after which it is asked for a longer one: its trouble may be over. */
const takenMin = 16
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
  const head = await readSearchedHead(rpc)
  const who = sender === undefined ? null : `0x${encodeHexWord(sender)}`
  const topics = [anchoredTopic, who, hashOrigin(origin)]
  const found = new Map<string, string>()
  let range = rangeMax
  let taken = 0
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
      if (!(error instanceof Fault)) throw error
      const blocks = toBlock - from + 1n
      if (blocks === 1n) throw sender === undefined ? explainManyEvents(error, from) : error
      range = (blocks + 1n) / 2n
      taken = 0
      continue
    }
    taken += 1
    if (taken % takenMin === 0) range = range * 2n < rangeMax ? range * 2n : rangeMax
    from = toBlock + 1n
    onProgress(`looking through blocks up to ${toBlock}`, Number(toBlock) / Number(head))
  }
  return found
}

/** Explains an answer that is too large, or was refused, for one block: anybody can fill it with events of this log. */
function explainManyEvents(error: Fault, block: bigint): Error {
  const { cause, internal } = error
  if (!(cause instanceof AnswerTooLarge || cause instanceof RpcError)) return error
  const text = `the node cannot give all events of block ${block} for this log (${internal}); anybody can send some`
  return new SetupError(`${text}: read what one sender sent, with --sender`, { cause: error })
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
