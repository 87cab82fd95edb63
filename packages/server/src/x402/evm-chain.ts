import { Fault } from '../base/fault.ts'
import { isAddress, isHash, quantity } from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import { isRecord, type Rpc, RpcError, unreachable } from './rpc.ts'
import type { Log } from './token.ts'

/**
 * Typed reads of an EVM chain. A node that answers with something else than it must, or with an
 * error that is no revert, counts as unreachable: it says nothing about a payment.
 */

export type Receipt = {
  readonly hash: string
  readonly succeeded: boolean
  readonly blockNumber: bigint
  readonly logs: readonly Log[]
}

export type Fees = { readonly baseFee: bigint; readonly priorityFee: bigint }

/** The node serves another chain: its money is not what is taken here. */
export class WrongChain extends Fault {
  constructor(internal: string) {
    super('PAYMENT_NETWORK_UNREACHABLE', { internal })
  }
}

/** Refuses a node of another chain, or of a test chain that only wears the same id. */
export async function checkChain(rpc: Rpc, network: PaymentNetwork): Promise<void> {
  const [chainId, genesis] = await Promise.all([
    read(rpc, 'eth_chainId', []).then(number),
    genesisHashOf(rpc),
  ])
  if (chainId !== BigInt(network.chainId)) {
    throw new WrongChain(`the node of ${network.id} serves chain ${chainId}`)
  }
  if (network.genesisHash !== undefined && network.genesisHash !== genesis) {
    throw new WrongChain(`${network.id} begins with ${genesis}, not with ${network.genesisHash}`)
  }
}

/** Hash of block 0, which tells chains of one id apart. */
export function genesisHashOf(rpc: Rpc): Promise<string> {
  return read(rpc, 'eth_getBlockByNumber', ['0x0', false]).then((block) => hash(record(block).hash))
}

/** The data that a call of a contract returns, or the reason for which it reverts. */
export async function simulate(
  rpc: Rpc,
  call: { readonly from?: string; readonly to: string; readonly data: string },
): Promise<{ ok: true; data: string } | { ok: false; reason: string }> {
  try {
    // Against the next block: the time of the latest one may be long ago on a chain with little to do.
    return { ok: true, data: text(await rpc.call('eth_call', [call, 'pending'])) }
  } catch (error) {
    if (!(error instanceof RpcError) || !error.reverted) throw unreachable(error)
    return { ok: false, reason: revertReason(error) }
  }
}

/** The number that a view of a contract returns, as of the latest block. */
export async function readCall(
  rpc: Rpc,
  call: { readonly to: string; readonly data: string },
): Promise<bigint> {
  return number(await read(rpc, 'eth_call', [call, 'latest']))
}

export async function receiptOf(rpc: Rpc, transaction: string): Promise<Receipt | undefined> {
  const value = await read(rpc, 'eth_getTransactionReceipt', [transaction])
  if (value === null || value === undefined) return undefined
  const receipt = record(value)
  if (receipt.blockNumber === null) return undefined
  if (!Array.isArray(receipt.logs)) throw garbage('a receipt without logs')
  return {
    hash: hash(receipt.transactionHash),
    succeeded: number(receipt.status) === 1n,
    blockNumber: number(receipt.blockNumber),
    logs: receipt.logs.map(log),
  }
}

/** Whether the node has the transaction, in a block or waiting for one. */
export async function isKnown(rpc: Rpc, transaction: string): Promise<boolean> {
  const value = await read(rpc, 'eth_getTransactionByHash', [transaction])
  return value !== null && value !== undefined
}

/** When the block was made, in seconds since 1970. */
export async function blockTimeOf(rpc: Rpc, blockNumber: bigint): Promise<bigint> {
  const block = await read(rpc, 'eth_getBlockByNumber', [quantity(blockNumber), false])
  return number(record(block).timestamp)
}

export async function logsOf(
  rpc: Rpc,
  filter: {
    readonly address: string
    readonly topics: readonly (string | readonly string[])[]
    readonly fromBlock: bigint
    readonly toBlock: bigint
  },
): Promise<Log[]> {
  const { address, topics } = filter
  const fromBlock = quantity(filter.fromBlock)
  const toBlock = quantity(filter.toBlock)
  const value = await read(rpc, 'eth_getLogs', [{ address, topics, fromBlock, toBlock }])
  if (!Array.isArray(value)) throw garbage('logs that are no list')
  return value.map(log)
}

export async function headOf(rpc: Rpc): Promise<bigint> {
  return number(await read(rpc, 'eth_blockNumber', []))
}

/** How many transactions of the address are in blocks; the nonce of the next one. */
export async function transactionCount(rpc: Rpc, address: string): Promise<bigint> {
  return number(await read(rpc, 'eth_getTransactionCount', [address, 'latest']))
}

/** Native coin of the address, in wei. */
export async function nativeBalance(rpc: Rpc, address: string): Promise<bigint> {
  return number(await read(rpc, 'eth_getBalance', [address, 'latest']))
}

export async function feesOf(rpc: Rpc): Promise<Fees> {
  const [block, tip] = await Promise.all([
    read(rpc, 'eth_getBlockByNumber', ['latest', false]),
    read(rpc, 'eth_maxPriorityFeePerGas', []),
  ])
  return { baseFee: number(record(block).baseFeePerGas), priorityFee: number(tip) }
}

async function read(rpc: Rpc, method: string, params: readonly unknown[]): Promise<unknown> {
  try {
    return await rpc.call(method, params)
  } catch (error) {
    throw unreachable(error)
  }
}

/** The text of Solidity's Error(string), or what the node says. */
function revertReason(error: RpcError): string {
  const data = error.data
  if (data === undefined || !/^0x08c379a0[0-9a-f]{128,}$/.test(data)) return error.message
  const bytes = Buffer.from(data.slice(10), 'hex')
  const length = Number(`0x${bytes.toString('hex', 32, 64)}`)
  return bytes.toString('utf8', 64, Math.min(64 + length, bytes.length))
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

function garbage(problem: string): Fault {
  return unreachable(new Error(`the node answered with ${problem}`))
}
