import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import { balanceOf } from './authorization-use.ts'
import { blockTimeOf, headOf, isKnown, type Receipt, receiptOf } from './evm-chain.ts'
import { nowSeconds, type Settlement } from './facilitator.ts'
import type { PaymentNetwork } from './networks.ts'
import type { NativePayment, NativeTransfer } from './protocol.ts'
import { type Rpc, unreachable } from './rpc.ts'
import type { PaymentLog } from './sender.ts'
import { showsAuthorizationOf, type Transfer, transfersTo } from './token.ts'

export type NativeOptions = {
  readonly network: PaymentNetwork
  readonly rpc: Rpc
  readonly world: World
  readonly log: PaymentLog
  /** Blocks that must hold or follow a transfer; 1 is its own. */
  readonly confirmations: number
  readonly pollMs: number
  /** How long a transaction that the node knows is waited for, until its block is deep enough. */
  readonly waitMs?: number
  /** Requests that wait so at once; who comes beyond them is told at once to come again. */
  readonly waitersMax?: number
  /** How long after its block a transfer that is in no block any more may still come back. */
  readonly returnSeconds: bigint
}

/** Below the time-outs of clients, which is 30 seconds. */
const waitMsDefault = 15_000
/** Far below the requests that may be at work: it costs nothing to name a transaction that is never mined. */
const waitersMaxDefault = 128

/** The transfer that a payer speaks of. */
export type Wanted = {
  readonly transaction: string
  readonly to: string
  /** Who must have sent it; anybody where it is not said. */
  readonly sender?: string
}

/** The transfer, or what the payer is told instead: the field that does not fit, and why. */
export type Found =
  | {
      readonly transfer: NativeTransfer
      /** The address has less than came: its money was moved on. Never so of the network's own address. */
      readonly isSwept: boolean
    }
  | { readonly refusal: string }

/** Transfers that payers make themselves, read from the chain. */
export type NativeTransfers = {
  /**
   * What the transaction has moved to the address, once it is confirmed. Throws PAYMENT_PENDING until then, and
   * PAYMENT_NETWORK_UNREACHABLE where the node does not tell: neither says anything about the payment.
   */
  readonly find: (wanted: Wanted) => Promise<Found>
  /** Whether the chain still shows this very transfer; it moves nothing, so it may be asked at any time. */
  readonly settle: (payment: NativePayment) => Promise<Settlement>
}

export function nativeTransfers(options: NativeOptions): NativeTransfers {
  const waiting = { count: 0 }
  return {
    find: (wanted) => find({ ...options, waiting }, wanted),
    settle: (payment) => settle(options, payment),
  }
}

type Waiting = { readonly waiting: { count: number } }

async function find(options: NativeOptions & Waiting, wanted: Wanted): Promise<Found> {
  const receipt = await awaitReceipt(options, wanted.transaction)
  if (receipt === undefined) {
    throw new Fault('PAYMENT_PENDING', {
      message:
        'The transaction is not confirmed yet; repeat the same request with the same payment.',
      retryAfterSeconds: 2,
      details: { transaction: wanted.transaction, status: 'pending' },
    })
  }
  if (!receipt.succeeded) return { refusal: 'the transaction was reverted' }
  const moved = movedBy(receipt, options.network, wanted)
  if ('refusal' in moved) return moved
  const { network, rpc } = options
  const { to } = wanted
  const [blockTime, head, held] = await Promise.all([
    blockTimeOf(rpc, receipt.blockNumber),
    headOf(rpc),
    to === network.payTo ? moved.value : balanceOf(rpc, network, to),
  ])
  // One of several nodes behind a URL may not have the block yet, and so not its money.
  if (head < receipt.blockNumber) throw unreachable(new Error('the node lags behind'))
  const { hash: transaction, blockNumber } = receipt
  const transfer = { ...moved, to, transaction, blockNumber, blockTime }
  return { transfer, isSwept: held < moved.value }
}

async function settle(options: NativeOptions, payment: NativePayment): Promise<Settlement> {
  const { payload } = payment
  let receipt: Receipt | undefined
  try {
    receipt = await confirmedReceipt(options, payload.transaction)
  } catch (error) {
    options.log.warn({ error }, 'the payment network did not tell what became of a transfer')
    return { state: 'pending', reason: 'network_unreachable' }
  }
  if (receipt === undefined) {
    // A reorganized chain forgot it; most such transactions come back in another block.
    const isGone = nowSeconds(options.world) > payload.blockTime + options.returnSeconds
    if (isGone) return { state: 'failed', reason: 'transaction_gone', final: true }
    return { state: 'pending', transaction: payload.transaction, reason: 'not_confirmed' }
  }
  if (!receipt.succeeded) return { state: 'failed', reason: 'transaction_reverted', final: true }
  const { from, to, transaction } = payload
  const moved = movedBy(receipt, options.network, { transaction, to, sender: from })
  if ('refusal' in moved || moved.value !== payload.value) {
    return { state: 'failed', reason: 'no_transfer', final: true }
  }
  return { state: 'settled', transaction, blockNumber: receipt.blockNumber }
}

/** What one sender moved to the address: all of the transaction's logs that say so, as one transfer. */
function movedBy(
  { logs }: Receipt,
  network: PaymentNetwork,
  { to, sender }: Wanted,
): Transfer | { readonly refusal: string } {
  const all = transfersTo(logs, network, to)
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
  if (to === network.payTo && showsAuthorizationOf(logs, network, from)) {
    // It counts, or has counted, under the authorization's nonce.
    return { refusal: 'the transfer was made by an authorization; send the authorization itself' }
  }
  return { ...head, value: own.reduce((sum, { value }) => sum + value, 0n) }
}

async function awaitReceipt(
  options: NativeOptions & Waiting,
  hash: string,
): Promise<Receipt | undefined> {
  const { waiting, waitersMax = waitersMaxDefault, waitMs = waitMsDefault } = options
  const isFull = waiting.count >= waitersMax
  waiting.count += 1
  try {
    return await pollReceipt(options, hash, options.world.now() + (isFull ? 0 : waitMs))
  } finally {
    waiting.count -= 1
  }
}

async function pollReceipt(
  options: NativeOptions,
  hash: string,
  deadline: number,
): Promise<Receipt | undefined> {
  const { rpc, world, pollMs } = options
  let isComing = await isKnown(rpc, hash)
  for (;;) {
    const receipt = await confirmedReceipt(options, hash)
    // What no node knows may never come; that it may is for the client to find out.
    if (receipt !== undefined || !isComing || world.now() >= deadline) return receipt
    await world.sleep(pollMs)
    isComing = await isKnown(rpc, hash)
  }
}

async function confirmedReceipt(
  { rpc, confirmations }: NativeOptions,
  hash: string,
): Promise<Receipt | undefined> {
  const receipt = await receiptOf(rpc, hash)
  if (receipt === undefined || confirmations <= 1) return receipt
  const depth = (await headOf(rpc)) - receipt.blockNumber + 1n
  return depth >= BigInt(confirmations) ? receipt : undefined
}
