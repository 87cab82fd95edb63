import { chooseLarger, chooseSmaller } from '../base/bigint.ts'
import type { Fees } from './evm-chain.ts'
import type { Transaction } from './transaction.ts'

/** The part of a transaction that says how much it pays for a unit of gas, in wei. */
export type FeeOffer = Pick<Transaction, 'maxFeePerGas' | 'maxPriorityFeePerGas'>

/** The factor by which the base fee may grow: at 12.5 % a block at most, it lasts for a dozen full blocks. */
const baseFeeHeadroom = 4n

/**
 * Computes the offer of a transaction that is signed now. `feeMax` bounds base fee and tip together: the tip is what a
 * node says, and a node may say anything.
 */
export function computeOffer({ baseFee, priorityFee }: Fees, feeMax: bigint | undefined): FeeOffer {
  return limitOffer(
    { maxFeePerGas: baseFeeHeadroom * baseFee + priorityFee, maxPriorityFeePerGas: priorityFee },
    feeMax,
  )
}

/**
 * Computes the offer that replaces another one of the same nonce: what is asked for now, and an eighth above the last
 * one at least, as nodes take no replacement with less than a tenth more in both. Undefined where that would pay more
 * than `feeMax`.
 */
export function computeHigherOffer(
  last: FeeOffer,
  fees: Fees,
  feeMax: bigint | undefined,
): FeeOffer | undefined {
  const least = addEighth(last.maxFeePerGas)
  if (feeMax !== undefined && least > feeMax) return undefined
  const maxPriorityFeePerGas = chooseLarger(addEighth(last.maxPriorityFeePerGas), fees.priorityFee)
  const now = baseFeeHeadroom * fees.baseFee + maxPriorityFeePerGas
  return limitOffer({ maxFeePerGas: chooseLarger(least, now), maxPriorityFeePerGas }, feeMax)
}

function limitOffer(offer: FeeOffer, feeMax: bigint | undefined): FeeOffer {
  if (feeMax === undefined) return offer
  return {
    maxFeePerGas: chooseSmaller(offer.maxFeePerGas, feeMax),
    maxPriorityFeePerGas: chooseSmaller(offer.maxPriorityFeePerGas, feeMax),
  }
}

/** Adds an eighth, rounded up, plus one wei, so that a tip of 0 grows too. */
function addEighth(wei: bigint): bigint {
  return wei + (wei + 7n) / 8n + 1n
}
