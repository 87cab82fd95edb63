import type { World } from '../base/world.ts'
import { readCall, readNewestBlock, type TransactionReceipt } from './evm-chain.ts'
import type { PaymentDue, Settlement } from './facilitator.ts'
import type { LogSearch } from './log-search.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment } from './protocol.ts'
import { type ReadReceipt, tooManyEvents } from './receipt-reader.ts'
import type { Rpc } from './rpc.ts'
import {
  encodeBalanceCall,
  encodeStateCall,
  hasPayment,
  listAuthorizationTopics,
  topics,
} from './token.ts'
import { isExpired, isOverBy } from './validity.ts'

export type Evidence = {
  readonly rpc: Rpc
  readonly search: LogSearch
  readonly world: World
  /** Reads a receipt of anybody once it is as deep as the service requires; the payment is what is said to be used in it. */
  readonly confirm: (transaction: string, payment: ExactPayment) => Promise<ReadReceipt | undefined>
}

/**
 * Reads the outcome of a payment from the token itself: used (by us or by a third party, which anybody can be),
 * canceled, or expired; undefined while the authorization is open. It is open until the chain itself is past its end:
 * a chain that stood still makes its next blocks by its own time, and our clock says nothing about those.
 */
export async function findTokenOutcome(
  { rpc, search, world, confirm }: Evidence,
  due: PaymentDue,
): Promise<Settlement | undefined> {
  const { network } = due.requirement
  const { payload } = due.payment
  const end = await findBlockPast({ rpc, world }, payload)
  const isOver = end !== undefined
  if (!(await isUsedAsOf(end, rpc, { network, payment: payload })))
    return isOver ? { state: 'failed', reason: 'expired', final: true } : undefined
  const use = await findUse(search, network, payload)
  if (use === undefined) return { state: 'pending', reason: 'use_not_found' }
  // A reorganisation may take the cancellation back, and bring the payment.
  if (use.canceled) return { state: 'failed', reason: 'authorization_canceled', final: isOver }
  const receipt = await confirm(use.transaction, payload)
  if (receipt === undefined) {
    return { state: 'pending', transaction: use.transaction, reason: 'not_confirmed' }
  }
  // Whoever used it can hide it among moves of nothing, and its payer may have signed another payment under the same nonce.
  // So it is neither made nor over, also past its end.
  if (receipt === 'too large') {
    const { transaction } = use
    const reason = `its transaction ${tooManyEvents}`
    return { state: 'pending', transaction, reason, usedIn: transaction }
  }
  return judgeReceipt(receipt, due)
}

/** Reads the outcome of an authorization that was used but never handed to us; failed if no event tells. */
export async function readUseOutcome(evidence: Evidence, due: PaymentDue): Promise<Settlement> {
  const stated = await findTokenOutcome(evidence, due)
  if (stated?.state === 'pending' && stated.transaction !== undefined) return stated
  if (stated !== undefined && stated.state !== 'pending') return stated
  return { state: 'failed', reason: 'use_not_found', final: false }
}

/** Decides the outcome by a transaction that succeeded: settled only where the token says that exactly this payment was made. */
export function judgeReceipt(receipt: TransactionReceipt, due: PaymentDue): Settlement {
  if (!hasPayment(receipt.logs, due.requirement.network, due.payment.payload)) {
    return { state: 'failed', reason: 'no_transfer', final: true }
  }
  return { state: 'settled', transaction: receipt.hash, blockNumber: receipt.blockNumber }
}

/**
 * Finds the height of a block past a payment's end, with the margin of clocks; undefined while there is none. A contract
 * that has not seen the payment used as of that block sees it never. It is to be asked for that block: the node that
 * answers may be another one than told of the time, and stand still before a block that used it.
 */
export async function findBlockPast(
  { rpc, world }: Pick<Evidence, 'rpc' | 'world'>,
  payment: Pick<ExactPayment, 'validBefore'>,
): Promise<bigint | undefined> {
  if (!isExpired(world, payment)) return undefined
  const { height, seconds } = await readNewestBlock(rpc)
  return isOverBy(seconds, payment) ? height : undefined
}

/** Returns true if the token has seen this authorization used or canceled. */
export function isUsed(rpc: Rpc, network: PaymentNetwork, payment: ExactPayment): Promise<boolean> {
  return isUsedAsOf(undefined, rpc, { network, payment })
}

/** The same as of a block; throws where the node does not have it. */
async function isUsedAsOf(
  height: bigint | undefined,
  rpc: Rpc,
  { network, payment }: { readonly network: PaymentNetwork; readonly payment: ExactPayment },
): Promise<boolean> {
  const data = encodeStateCall(payment.from, payment.nonce)
  return (await readCall(rpc, { to: network.asset.address, data }, height)) !== 0n
}

/** Reads the holder's balance of the network's asset, in atomic units. */
export function readBalance(rpc: Rpc, network: PaymentNetwork, holder: string): Promise<bigint> {
  return readCall(rpc, { to: network.asset.address, data: encodeBalanceCall(holder) })
}

/**
 * Finds the transaction in which the authorization was used or canceled, whoever sent it; undefined if none is
 * found within the range.
 */
async function findUse(
  search: LogSearch,
  { asset }: PaymentNetwork,
  payment: ExactPayment,
): Promise<{ readonly canceled: boolean; readonly transaction: string } | undefined> {
  const filter = { address: asset.address, topics: listAuthorizationTopics(payment) }
  const log = await search.find(filter, () => true)
  return log && { canceled: log.topics[0] === topics.canceled, transaction: log.transactionHash }
}
