import { isMetered } from '../meters/meter.ts'
import type { Offer, Terms } from '../purchase.ts'
import { depositOperation } from '../purchase.ts'

/**
 * Returns true where the answer may be made before its money is here, or held, as the scheme `upto` does: making it does
 * nothing else. A write is made once its money is here, a pass is named by its payment, and a mere deposit is no charge.
 */
export function canAnswerFirst({ isMoneyFirst, operation, writes, pass }: Offer): boolean {
  const isPaidFirst = writes !== undefined || pass !== undefined || operation === depositOperation
  return isMoneyFirst !== true && !isPaidFirst
}

/** Returns true where the cap is the charge, so that the scheme `upto` may take it before: of a write and of a pass. */
export function isCostKnown({ writes, pass }: Offer, { prices }: Pick<Terms, 'prices'>): boolean {
  return (writes !== undefined || pass !== undefined) && !isMetered(prices)
}
