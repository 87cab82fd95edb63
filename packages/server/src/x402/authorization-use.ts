import type { World } from '../base/world.ts'
import { headOf, logsOf, type Receipt, readCall } from './evm-chain.ts'
import { type Due, isExpired, type Settlement } from './facilitator.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment } from './protocol.ts'
import type { Rpc } from './rpc.ts'
import {
  authorizationStateCall,
  authorizationTopics,
  balanceCall,
  showsPayment,
  topics,
} from './token.ts'

/** Blocks per question; public nodes refuse larger ranges. */
const rangeBlocks = 2_000n
/** How far back a use is looked for: a day on a chain with a block every two seconds. */
const rangesMax = 22

export type Evidence = {
  readonly rpc: Rpc
  readonly world: World
  /** The receipt once it is as deep as the service wants. */
  readonly confirm: (transaction: string) => Promise<Receipt | undefined>
}

/**
 * What the token itself knows of a payment: used (by us or by a third party, which anybody can
 * be), canceled, or expired; undefined while it is open.
 */
export async function statedByToken(
  { rpc, world, confirm }: Evidence,
  due: Due,
): Promise<Settlement | undefined> {
  const { network } = due.requirement
  const { payload } = due.payment
  if (!(await isUsed(rpc, network, payload))) {
    return isExpired(world, payload)
      ? { state: 'failed', reason: 'expired', final: true }
      : undefined
  }
  const use = await findUse(rpc, network, payload)
  if (use === undefined) return { state: 'pending', reason: 'use_not_found' }
  if (use.canceled) return { state: 'failed', reason: 'authorization_canceled', final: true }
  const receipt = await confirm(use.transaction)
  if (receipt === undefined) {
    return { state: 'pending', transaction: use.transaction, reason: 'not_confirmed' }
  }
  return paidBy(receipt, due)
}

/** What became of an authorization that is used and was never in our hands; failed where no event tells. */
export async function whereUsed(evidence: Evidence, due: Due): Promise<Settlement> {
  const stated = await statedByToken(evidence, due)
  if (stated?.state === 'pending' && stated.transaction !== undefined) return stated
  if (stated !== undefined && stated.state !== 'pending') return stated
  return { state: 'failed', reason: 'use_not_found', final: false }
}

/** The settlement by a transaction that succeeded: the token must say that exactly this payment was made. */
export function paidBy(receipt: Receipt, due: Due): Settlement {
  if (!showsPayment(receipt.logs, due.requirement.network, due.payment.payload)) {
    return { state: 'failed', reason: 'no_transfer', final: true }
  }
  return { state: 'settled', transaction: receipt.hash, blockNumber: receipt.blockNumber }
}

/** Whether the token has seen this authorization used or canceled. */
export async function isUsed(
  rpc: Rpc,
  network: PaymentNetwork,
  payment: ExactPayment,
): Promise<boolean> {
  const data = authorizationStateCall(payment.from, payment.nonce)
  return (await readCall(rpc, { to: network.asset.address, data })) !== 0n
}

/** What the holder has of the network's asset, in atomic units. */
export function balanceOf(rpc: Rpc, network: PaymentNetwork, holder: string): Promise<bigint> {
  return readCall(rpc, { to: network.asset.address, data: balanceCall(holder) })
}

/**
 * The transaction in which the authorization was used or canceled, by whomever it was sent;
 * undefined where none is found within reach.
 */
async function findUse(
  rpc: Rpc,
  network: PaymentNetwork,
  payment: ExactPayment,
): Promise<{ readonly canceled: boolean; readonly transaction: string } | undefined> {
  let toBlock = await headOf(rpc)
  for (let range = 0; range < rangesMax && toBlock >= 0n; range++) {
    const fromBlock = toBlock >= rangeBlocks ? toBlock - rangeBlocks + 1n : 0n
    const [log] = await logsOf(rpc, {
      address: network.asset.address,
      topics: authorizationTopics(payment),
      fromBlock,
      toBlock,
    })
    if (log !== undefined) {
      return { canceled: log.topics[0] === topics.canceled, transaction: log.transactionHash }
    }
    toBlock = fromBlock - 1n
  }
  return undefined
}
