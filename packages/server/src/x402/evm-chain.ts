import { awaitTurn } from '../base/await-turn.ts'
import { Fault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { encodeQuantity, isAddress, isHash } from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import {
  type CallOptions,
  isTagUnknown,
  isTooLarge,
  type Rpc,
  RpcError,
  toUnreachable,
} from './rpc.ts'
import type { Log } from './token.ts'

/**
 * Typed reads of an EVM chain. A node that answers with a wrong form, or with an error that is no revert, counts as
 * unreachable: it says nothing about a payment.
 */

export type TransactionReceipt = {
  readonly hash: string
  readonly succeeded: boolean
  readonly blockNumber: bigint
  /** Undefined where the node does not say. */
  readonly blockHash: string | undefined
  readonly logs: readonly Log[]
  /** The address that it called, in lower case; undefined where it made a contract. */
  readonly to: string | undefined
  /** The price of its gas, in the smallest unit of the chain's own coin; 0 where the node does not say. */
  readonly gas: bigint
}

export type Fees = { readonly baseFee: bigint; readonly priorityFee: bigint }

/** The fault of a node that serves another chain: that chain's money is not accepted here. */
export class WrongChain extends Fault {
  constructor(internal: string) {
    super('PAYMENT_NETWORK_UNREACHABLE', { internal })
  }
}

/** Refuses a node of another chain, or of a test chain that only has the same id. */
export async function checkChain(
  rpc: Rpc,
  network: Pick<PaymentNetwork, 'id' | 'chainId' | 'genesisHash'>,
): Promise<void> {
  const [chainId, genesis] = await Promise.all([readChainId(rpc), readGenesisHash(rpc)])
  if (chainId !== BigInt(network.chainId)) {
    throw new WrongChain(`the node of ${network.id} serves chain ${chainId}`)
  }
  if (network.genesisHash !== undefined && network.genesisHash !== genesis) {
    throw new WrongChain(`${network.id} begins with ${genesis}, not with ${network.genesisHash}`)
  }
}

export async function readChainId(rpc: Rpc): Promise<bigint> {
  return count(await read(rpc, 'eth_chainId', []))
}

/** Reads the hash of block 0, which distinguishes chains of one id. */
export function readGenesisHash(rpc: Rpc): Promise<string> {
  return read(rpc, 'eth_getBlockByNumber', ['0x0', false]).then((block) => hash(record(block).hash))
}

/** Simulates a call of a contract: returns its data, or the reason for which it reverts. */
export async function simulate(
  rpc: Rpc,
  call: { readonly from?: string; readonly to: string; readonly data: string },
): Promise<{ ok: true; data: string } | { ok: false; reason: string }> {
  try {
    // The call runs against the next block: the time of the latest one may be long ago on a quiet chain.
    return { ok: true, data: text(await rpc.call('eth_call', [call, 'pending'])) }
  } catch (error) {
    // A call that succeeds gives little: what is long is the data with which code of a stranger reverts.
    if (isTooLarge(error)) return { ok: false, reason: 'it reverts, with very much data' }
    if (!(error instanceof RpcError) || !error.reverted) throw toUnreachable(error)
    return { ok: false, reason: revertReason(error) }
  }
}

/**
 * Reads the number that a view function of a contract returns, as of this block or the latest one. Throws where the node
 * does not have the block.
 */
export async function readCall(
  rpc: Rpc,
  call: { readonly to: string; readonly data: string },
  height?: bigint,
): Promise<bigint> {
  return number(await read(rpc, 'eth_call', [call, nameBlock(height)]))
}

/** Reads the two numbers that a view function of a contract returns, as of this block or the latest one. */
export async function readWords(
  rpc: Rpc,
  call: { readonly to: string; readonly data: string },
  height: bigint | undefined,
): Promise<readonly [bigint, bigint]> {
  const data = text(await read(rpc, 'eth_call', [call, nameBlock(height)]))
  if (!/^0x[0-9a-f]{128}$/.test(data)) throw garbage('other than two words')
  return [BigInt(data.slice(0, 66)), BigInt(`0x${data.slice(66)}`)]
}

/**
 * Finds the receipt of a transaction in a block. Above `answerBytesMax` it throws, see `isTooLarge`: anybody can make a
 * transaction with as many events as he pays gas for.
 */
export async function findTransactionReceipt(
  rpc: Rpc,
  transaction: string,
  options?: CallOptions,
): Promise<TransactionReceipt | undefined> {
  const value = await rpc.call('eth_getTransactionReceipt', [transaction], options).catch(refuse)
  return value === null || value === undefined ? undefined : parseReceipt(record(value))
}

/** The block of a transaction. */
export type BlockName = { readonly blockNumber: bigint; readonly blockHash: string }

/** Finds the block that has a transaction, without what the transaction did there. */
export async function findBlockOf(rpc: Rpc, transaction: string): Promise<BlockName | undefined> {
  const value = await read(rpc, 'eth_getTransactionByHash', [transaction])
  if (!isRecord(value) || typeof value.blockHash !== 'string') return undefined
  return { blockNumber: count(value.blockNumber), blockHash: hash(value.blockHash) }
}

/** Reads the height up to which blocks have so many confirmations (their own is the first); undefined where one is enough. */
export async function readConfirmedHeight(
  rpc: Rpc,
  confirmations: number,
): Promise<bigint | undefined> {
  return confirmations > 1 ? (await readHead(rpc)) - BigInt(confirmations) + 1n : undefined
}

/** A transaction in a block, with what only its block knows. */
export type Mined = TransactionReceipt & { readonly blockHash: string; readonly gasUsed: bigint }

/** Finds the receipt of a transaction in a block, with the block's hash. */
export async function findMined(rpc: Rpc, transaction: string): Promise<Mined | undefined> {
  const value = await read(rpc, 'eth_getTransactionReceipt', [transaction])
  if (!isRecord(value)) return undefined
  const receipt = await parseReceipt(value)
  if (receipt === undefined) return undefined
  return { ...receipt, blockHash: hash(value.blockHash), gasUsed: count(value.gasUsed) }
}

/** Finds the one of these transactions that is in a block; they have one nonce, so there is one at most. */
export async function findMinedOf(
  rpc: Rpc,
  transactions: readonly string[],
): Promise<Mined | undefined> {
  const found = await Promise.all(transactions.map((one) => findMined(rpc, one)))
  return found.find((mined) => mined !== undefined)
}

/** Reads the code of an address; `0x` where it has none. */
export async function readCode(rpc: Rpc, address: string): Promise<string> {
  return text(await read(rpc, 'eth_getCode', [address, 'latest']))
}

/** Returns true if the node has the transaction, in a block or waiting for one. */
export async function isKnown(rpc: Rpc, transaction: string): Promise<boolean> {
  const value = await read(rpc, 'eth_getTransactionByHash', [transaction])
  return value !== null && value !== undefined
}

/** The address that a transaction calls (undefined where it makes a contract), and its data, 0x hex. */
export type TransactionCall = { readonly to: string | undefined; readonly data: string }

/** Reads what a transaction calls; undefined where the node does not have it. */
export async function readTransactionCall(
  rpc: Rpc,
  transaction: string,
): Promise<TransactionCall | undefined> {
  const value = await read(rpc, 'eth_getTransactionByHash', [transaction])
  if (!isRecord(value)) return undefined
  const to = typeof value.to === 'string' ? text(value.to) : undefined
  return { to, data: text(value.input) }
}

/** Reads the time of the block, in seconds since 1970. */
export async function readBlockTime(rpc: Rpc, blockNumber: bigint): Promise<bigint> {
  const block = await read(rpc, 'eth_getBlockByNumber', [encodeQuantity(blockNumber), false])
  return count(record(block).timestamp)
}

/** Reads the time of the newest block, in seconds since 1970. */
export async function readChainTime(rpc: Rpc): Promise<bigint> {
  const block = await read(rpc, 'eth_getBlockByNumber', ['latest', false])
  return count(record(block).timestamp)
}

/** The newest block of a node; its time in seconds since 1970. */
export type NewestBlock = {
  readonly height: bigint
  readonly hash: string
  readonly seconds: bigint
}

export async function readNewestBlock(rpc: Rpc): Promise<NewestBlock> {
  const block = record(await read(rpc, 'eth_getBlockByNumber', ['latest', false]))
  return {
    height: count(block.number),
    hash: hash(block.hash),
    seconds: count(block.timestamp),
  }
}

/**
 * Reads the hash of the block of this height; undefined where the chain is shorter. Nodes of some chains answer with an
 * error then, as they do when they are busy: that is thrown, since it does not say that the block is gone.
 */
export async function readBlockHash(rpc: Rpc, height: bigint): Promise<string | undefined> {
  const block = await read(rpc, 'eth_getBlockByNumber', [encodeQuantity(height), false])
  return isRecord(block) ? hash(block.hash) : undefined
}

/** Blocks over one that is taken for final where the node does not say which are. */
const finalDepth = 256n

/** Reads the height up to which the chain itself says that no block is replaced any more. */
export async function readFinalHeight(rpc: Rpc, head: bigint): Promise<bigint> {
  try {
    const block = await rpc.call('eth_getBlockByNumber', ['finalized', false])
    if (isRecord(block)) return count(block.number)
  } catch (error) {
    // An older node, or a chain without such a state.
    if (!(error instanceof RpcError && isTagUnknown(error))) throw toUnreachable(error)
  }
  return head > finalDepth ? head - finalDepth : 0n
}

/** Reads the time of a transaction's block, in seconds since 1970; throws where no block has it. */
export async function readTransactionTime(rpc: Rpc, transaction: string): Promise<bigint> {
  const block = await findBlockOf(rpc, transaction)
  if (block === undefined) throw toUnreachable(new Error(`no block has ${transaction} now`))
  return readBlockTime(rpc, block.blockNumber)
}

/** The logs that are meant: of one contract, each topic one or one of several, or any. */
type Wanted = {
  readonly address: string
  readonly topics: readonly (string | readonly string[] | null)[]
}

export async function readLogs(
  rpc: Rpc,
  filter: Wanted & { readonly fromBlock: bigint; readonly toBlock: bigint },
  options?: CallOptions,
): Promise<Log[]> {
  const { address, topics } = filter
  const fromBlock = encodeQuantity(filter.fromBlock)
  const toBlock = encodeQuantity(filter.toBlock)
  return parseLogs(await readLogValues(rpc, { address, topics, fromBlock, toBlock }, options))
}

/** A log with its place among all of its block. */
export type PlacedLog = Log & { readonly logIndex: bigint }

/** Reads the logs of the one block that has this hash; throws where the node does not have it. */
export async function readBlockLogs(
  rpc: Rpc,
  filter: Wanted & { readonly blockHash: string },
  options?: CallOptions,
): Promise<PlacedLog[]> {
  const values = await readLogValues(rpc, filter, options)
  const logs = await parseLogs(values)
  return logs.map((log, at) => ({ ...log, logIndex: count(record(values[at]).logIndex) }))
}

async function readLogValues(
  rpc: Rpc,
  filter: object,
  options: CallOptions | undefined,
): Promise<readonly unknown[]> {
  const value = await rpc.call('eth_getLogs', [filter], options).catch(refuse)
  if (!Array.isArray(value)) throw garbage('logs that are no list')
  return value
}

export async function readHead(rpc: Rpc): Promise<bigint> {
  return count(await read(rpc, 'eth_blockNumber', []))
}

/** Reads the number of the address's transactions in blocks, which is the nonce of the next one. */
export async function readTransactionCount(rpc: Rpc, address: string): Promise<bigint> {
  return count(await read(rpc, 'eth_getTransactionCount', [address, 'latest']))
}

/** Reads the address's balance of the native coin, in wei. */
export async function readNativeBalance(rpc: Rpc, address: string): Promise<bigint> {
  return number(await read(rpc, 'eth_getBalance', [address, 'latest']))
}

export async function readFees(rpc: Rpc): Promise<Fees> {
  const [block, tip] = await Promise.all([
    read(rpc, 'eth_getBlockByNumber', ['latest', false]),
    read(rpc, 'eth_maxPriorityFeePerGas', []),
  ])
  return { baseFee: number(record(block).baseFeePerGas), priorityFee: number(tip) }
}

function nameBlock(height: bigint | undefined): string {
  return height === undefined ? 'latest' : encodeQuantity(height)
}

function read(rpc: Rpc, method: string, params: readonly unknown[]): Promise<unknown> {
  return rpc.call(method, params).catch(refuse)
}

function refuse(error: unknown): never {
  throw toUnreachable(error)
}

/** Parses a receipt; undefined where the transaction is in no block yet. */
async function parseReceipt(
  receipt: Readonly<Record<string, unknown>>,
): Promise<TransactionReceipt | undefined> {
  if (receipt.blockNumber === null) return undefined
  if (!Array.isArray(receipt.logs)) throw garbage('a receipt without logs')
  return {
    hash: hash(receipt.transactionHash),
    succeeded: number(receipt.status) === 1n,
    blockNumber: count(receipt.blockNumber),
    blockHash: typeof receipt.blockHash === 'string' ? hash(receipt.blockHash) : undefined,
    logs: await parseLogs(receipt.logs),
    to: typeof receipt.to === 'string' ? text(receipt.to) : undefined,
    gas: count(receipt.gasUsed ?? '0x0') * number(receipt.effectiveGasPrice ?? '0x0'),
  }
}

/** The longest data of a revert that is read: code of a stranger may have made it. */
const reasonCharsMax = 4_096

/** Returns the text of Solidity's Error(string), or the node's message. */
function revertReason(error: RpcError): string {
  const data = error.data
  if (data === undefined || data.length > reasonCharsMax) return error.message
  if (!/^0x08c379a0[0-9a-f]{128,}$/.test(data)) return error.message
  const bytes = Buffer.from(data.slice(10), 'hex')
  const length = Number(`0x${bytes.toString('hex', 32, 64)}`)
  return bytes.toString('utf8', 64, Math.min(64 + length, bytes.length))
}

/** Logs that are read without a pause. */
const logsAtOnce = 500

async function parseLogs(values: readonly unknown[]): Promise<Log[]> {
  const logs: Log[] = []
  for (const value of values) {
    logs.push(log(value))
    if (logs.length % logsAtOnce === 0) await awaitTurn()
  }
  return logs
}

function log(value: unknown): Log {
  const given = record(value)
  if (!Array.isArray(given.topics)) throw garbage('a log without topics')
  const address = text(given.address)
  if (!isAddress(address)) throw garbage('a log without an address')
  return {
    address,
    topics: given.topics.map(text),
    data: text(given.data),
    transactionHash: hash(given.transactionHash),
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw garbage('no object where one belongs')
  return value
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw garbage('no text where it belongs')
  return value.toLowerCase()
}

function hash(value: unknown): string {
  const given = text(value)
  if (!isHash(given)) throw garbage('no hash where one belongs')
  return given
}

function number(value: unknown): bigint {
  const given = text(value)
  if (!/^0x[0-9a-f]{1,64}$/.test(given)) throw garbage('no number where one belongs')
  return BigInt(given)
}

/** The highest height, time or count that is believed: tables and JSON numbers hold no higher one exactly. */
const countMax = BigInt(Number.MAX_SAFE_INTEGER)

/** Reads a number of something that is counted one by one: blocks, seconds, transactions, units of gas. */
function count(value: unknown): bigint {
  const given = number(value)
  if (given > countMax) throw garbage('a number that nobody can have counted to')
  return given
}

function garbage(problem: string): Fault {
  return toUnreachable(new Error(`the node answered with ${problem}`))
}
