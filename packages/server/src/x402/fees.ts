import type { Fees } from './evm-chain.ts'
import type { Transaction } from './transaction.ts'

/** The part of a transaction that says how much it pays for a unit of gas, in wei. */
export type FeeOffer = Pick<Transaction, 'maxFeePerGas' | 'maxPriorityFeePerGas'>

/** The factor by which the base fee may grow: at 12.5 % a block at most, it lasts for a dozen full blocks. */
const baseFeeHeadroom = 4n

/** Computes the offer of a transaction that is signed now. */
export function computeOffer(
  { baseFee, priorityFee }: Fees,
  baseFeeMax: bigint | undefined,
): FeeOffer {
  const wanted = baseFeeHeadroom * baseFee
  const base = baseFeeMax !== undefined && baseFeeMax < wanted ? baseFeeMax : wanted
  return { maxFeePerGas: base + priorityFee, maxPriorityFeePerGas: priorityFee }
}

/**
 * Computes the offer that replaces another one of the same nonce: what is asked for now, and an eighth above the last
 * one at least, as nodes take no replacement with less than a tenth more in both. Undefined where that would pay more
 * than the highest base fee that is paid.
 */
export function computeHigherOffer(
  last: FeeOffer,
  fees: Fees,
  baseFeeMax: bigint | undefined,
): FeeOffer | undefined {
  const now = computeOffer(fees, baseFeeMax)
  const maxPriorityFeePerGas = takeMore(
    addEighth(last.maxPriorityFeePerGas),
    now.maxPriorityFeePerGas,
  )
  const maxFeePerGas = takeMore(
    addEighth(last.maxFeePerGas),
    now.maxFeePerGas - now.maxPriorityFeePerGas + maxPriorityFeePerGas,
  )
  const isTooHigh = baseFeeMax !== undefined && maxFeePerGas - maxPriorityFeePerGas > baseFeeMax
  return isTooHigh ? undefined : { maxFeePerGas, maxPriorityFeePerGas }
}

/** Adds an eighth, rounded up, plus one wei, so that a tip of 0 grows too. */
function addEighth(wei: bigint): bigint {
  return wei + (wei + 7n) / 8n + 1n
}

function takeMore(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
