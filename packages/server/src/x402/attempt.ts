import { judgeReceipt } from './authorization-use.ts'
import type { TransactionReceipt } from './evm-chain.ts'
import type { PaymentDue } from './facilitator.ts'
import type { Journaled } from './journal.ts'

/** A payment's transaction, as far as it is known. */
export type Attempt = {
  readonly id: string
  readonly journaled: Journaled | undefined
  /** The confirmed receipt of the journaled transaction. */
  readonly receipt: TransactionReceipt | undefined
}

/** Returns true once the journaled transaction can have no effect any more. */
export function isDead(journaled: Journaled): boolean {
  return journaled.state === 'reverted' || journaled.state === 'replaced'
}

export function isJoint(journaled: Journaled | undefined): journaled is Journaled {
  return journaled !== undefined && journaled.parts.length > 0
}

/**
 * Returns true where a block has the transaction, and it failed. The sender may have seen it in one that is not deep
 * enough for a receipt.
 */
export function isReverted({ journaled, receipt }: Attempt): boolean {
  return receipt?.succeeded === false || journaled?.state === 'reverted'
}

/** Returns true where a transaction was signed, and a block may still take it. */
export function isUndecided({ journaled, receipt }: Attempt): boolean {
  return journaled !== undefined && receipt === undefined && !isDead(journaled)
}

/** Returns true where a block has the transaction of a payment that it did not make. */
export function isInVain(attempt: Attempt): boolean {
  const { journaled, receipt } = attempt
  const isMined = receipt !== undefined || journaled?.state === 'mined'
  return isReverted(attempt) || (isJoint(journaled) && isMined)
}

/**
 * Returns true where a joint transaction was mined without this part: another part used up the gas, or left too little
 * for this one; or the token did not take it.
 */
export function isLeftOut(attempt: Attempt, due: PaymentDue): boolean {
  const { journaled, receipt } = attempt
  if (!isJoint(journaled)) return false
  if (isReverted(attempt)) return true
  return receipt !== undefined && judgeReceipt(receipt, due).state !== 'settled'
}
