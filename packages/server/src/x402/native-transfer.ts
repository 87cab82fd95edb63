import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import { readBalance } from './authorization-use.ts'
import { readBlockTime, readHead, type TransactionReceipt } from './evm-chain.ts'
import type { Settlement } from './facilitator.ts'
import type { PaymentNetwork } from './networks.ts'
import type { NativePayment, NativeTransfer } from './protocol.ts'
import { type ReadReceipt, ReceiptReader, tooManyEvents } from './receipt-reader.ts'
import { type Rpc, toUnreachable } from './rpc.ts'
import type { PaymentLog } from './sender.ts'
import { hasAuthorization, listTransfersTo, type Transfer } from './token.ts'
import { getNowSeconds } from './validity.ts'

export type NativeOptions = {
  readonly network: PaymentNetwork
  readonly rpc: Rpc
  readonly world: World
  readonly log: PaymentLog
  /** The number of blocks that must hold or follow a transfer; 1 is its own. */
  readonly confirmations: number
  readonly pollMs: number
  /** The time to wait for a transaction that the node knows, until its block is deep enough. */
  readonly waitMs?: number
  /** The most requests that wait at once; any beyond them are told at once to come again. */
  readonly waitersMax?: number
  /** The time after its block during which a transfer that is in no block any more may still come back. */
  readonly returnSeconds: bigint
}

/** The default is below the time-outs of clients, which is 30 seconds. */
const waitMsDefault = 15_000
/**
 * The default is far below the number of requests at work: it costs nothing to name a transaction that is never
 * mined.
 */
const waitersMaxDefault = 128

/** The transfer that a payer claims. */
export type ClaimedTransfer = {
  readonly transaction: string
  readonly to: string
  /** The required sender; undefined allows any. */
  readonly sender?: string
}

/** The transfer, or the refusal that the payer is told: the field that does not match, and why. */
export type TransferLookup =
  | {
      readonly transfer: NativeTransfer
      /** True if the address has less than came: its money was moved on. Never true for the network's own address. */
      readonly isSwept: boolean
    }
  | { readonly refusal: string }

/** Transfers that payers make themselves, read from the chain. */
export type NativeTransfers = {
  /**
   * Finds the transfer that the transaction made to the address, once it is confirmed. Throws PAYMENT_PENDING until
   * then, and PAYMENT_NETWORK_UNREACHABLE if the node does not tell: neither says anything about the payment.
   */
  readonly find: (claim: ClaimedTransfer) => Promise<TransferLookup>
  /** Checks that the chain still shows this very transfer; it moves nothing, so it can be called at any time. */
  readonly settle: (payment: NativePayment) => Promise<Settlement>
}

export function makeNativeTransfers(options: NativeOptions): NativeTransfers {
  const waiting = { count: 0 }
  const { rpc, network, confirmations } = options
  const receipts = new ReceiptReader(rpc, network.asset.address, confirmations)
  return {
    find: (claim) => find({ ...options, waiting, receipts }, claim),
    settle: (payment) => settle({ ...options, receipts }, payment),
  }
}

type Finding = NativeOptions & {
  readonly waiting: { count: number }
  readonly receipts: ReceiptReader
}

async function find(options: Finding, claim: ClaimedTransfer): Promise<TransferLookup> {
  const receipt = await awaitReceipt(options, claim)
  if (receipt === undefined) throw makeUnconfirmedFault(claim.transaction)
  if (receipt === 'too large')
    return {
      refusal: `the transaction ${tooManyEvents}; send the transfer in a transaction of its own`,
    }
  if (!receipt.succeeded) return { refusal: 'the transaction was reverted' }
  const moved = sumMoved(receipt, options.network, claim)
  if ('refusal' in moved) return moved
  const { network, rpc } = options
  const { to } = claim
  const [blockTime, head, held] = await Promise.all([
    readBlockTime(rpc, receipt.blockNumber),
    readHead(rpc),
    to === network.payTo ? moved.value : readBalance(rpc, network, to),
  ])
  // One of several nodes behind a URL may lack the block, and so its money.
  if (head < receipt.blockNumber) throw toUnreachable(new Error('the node lags behind'))
  const { hash: transaction, blockNumber } = receipt
  const isSwept = held < moved.value
  // The money is also missing where the chain took its block back after the receipt was read.
  if (isSwept && (await options.receipts.find(transaction, { to })) === undefined)
    throw makeUnconfirmedFault(transaction)
  const transfer = { ...moved, to, transaction, blockNumber, blockTime }
  return { transfer, isSwept }
}

function makeUnconfirmedFault(transaction: string): Fault {
  return new Fault('PAYMENT_PENDING', {
    message: 'The transaction is not confirmed yet; repeat the same request with the same payment.',
    retryAfterSeconds: 2,
    details: { transaction, status: 'pending' },
  })
}

async function settle(
  options: NativeOptions & Pick<Finding, 'receipts'>,
  payment: NativePayment,
): Promise<Settlement> {
  const { payload } = payment
  let receipt: TransactionReceipt | undefined
  try {
    const found = await options.receipts.findMade(payload.transaction)
    if (found === 'too large') throw toUnreachable(new Error(`it ${tooManyEvents}`))
    receipt = found
  } catch (error) {
    options.log.warn({ error }, 'the payment network did not tell what became of a transfer')
    return { state: 'pending', reason: 'network_unreachable' }
  }
  if (receipt === undefined) {
    // A reorganized chain forgot it; most such transactions come back in another block.
    const isGone = getNowSeconds(options.world) > payload.blockTime + options.returnSeconds
    if (isGone) return { state: 'failed', reason: 'transaction_gone', final: true }
    return { state: 'pending', transaction: payload.transaction, reason: 'not_confirmed' }
  }
  if (!receipt.succeeded) return { state: 'failed', reason: 'transaction_reverted', final: true }
  if (!isTransferMade(receipt, options.network, payment))
    return { state: 'failed', reason: 'no_transfer', final: true }
  const { hash: transaction, blockNumber } = receipt
  return { state: 'settled', transaction, blockNumber }
}

/** Returns true where this transaction, in the block that has it now, made exactly this transfer. */
export function isTransferMade(
  receipt: TransactionReceipt,
  network: PaymentNetwork,
  { payload }: NativePayment,
): boolean {
  const { from: sender, to, transaction, value } = payload
  const moved = sumMoved(receipt, network, { transaction, to, sender })
  return !('refusal' in moved) && moved.value === value
}

/**
 * Adds up the value that one sender moved to the address: all matching logs of the transaction count as one
 * transfer.
 */
function sumMoved(
  { logs, to: called }: TransactionReceipt,
  network: PaymentNetwork,
  { to, sender }: ClaimedTransfer,
): Transfer | { readonly refusal: string } {
  const all = listTransfersTo(logs, network, to)
  const [first] = all
  if (first === undefined) {
    const { symbol, address } = network.asset
    return { refusal: `the transaction moved no ${symbol} (${address}) to ${to}` }
  }
  const from = sender ?? first.from
  const own = all.filter((one) => one.from === from)
  const [head] = own
  if (head === undefined) return { refusal: 'the transfer has another sender' }
  if (from === network.payTo) return { refusal: 'the transfer came from the payee itself' }
  if (to === network.payTo && hasAuthorization(logs, network, from)) {
    // The value counts, or has counted, under the authorization's nonce.
    return { refusal: 'the transfer was made by an authorization; send the authorization itself' }
  }
  // A permit of the scheme upto, say, moves money through contracts, and counts by its own nonce.
  if (to === network.payTo && called !== network.asset.address) {
    return { refusal: 'the transfer was not made by a call of the token itself' }
  }
  return { ...head, value: own.reduce((sum, { value }) => sum + value, 0n) }
}

async function awaitReceipt(
  options: Finding,
  claim: ClaimedTransfer,
): Promise<ReadReceipt | undefined> {
  const { waiting, waitersMax = waitersMaxDefault, waitMs = waitMsDefault } = options
  const isFull = waiting.count >= waitersMax
  waiting.count += 1
  try {
    return await pollReceipt(options, claim, options.world.now() + (isFull ? 0 : waitMs))
  } finally {
    waiting.count -= 1
  }
}

async function pollReceipt(
  options: Finding,
  { transaction: hash, to, sender }: ClaimedTransfer,
  deadline: number,
): Promise<ReadReceipt | undefined> {
  const { world, pollMs, receipts } = options
  const moved = { to, ...(sender !== undefined && { from: sender }) }
  let isComing = await receipts.isKnown(hash)
  for (;;) {
    const receipt = await receipts.find(hash, moved)
    // A transaction that no node knows may never come; the client has to find that out.
    if (receipt !== undefined || !isComing || world.now() >= deadline) return receipt
    await world.sleep(pollMs)
    isComing = await receipts.isKnown(hash)
  }
}
