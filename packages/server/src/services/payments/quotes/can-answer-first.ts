import { isMetered } from '../meters/meter.ts'
import type { Offer, Terms } from '../purchase.ts'
import { depositOperation } from '../purchase.ts'

/**
 * Returns true where the answer may be made before its money is here, or held, as the scheme `upto` does: making it does
 * nothing else. A write is made once its money is here, and a pass is named by its payment.
 */
export function canAnswerFirst(offer: Offer, terms: Pick<Terms, 'prices'>): boolean {
  return offer.isMoneyFirst !== true && isPlain(offer, terms) && !isCostKnown(offer, terms)
}

/** Returns true where the cap is the charge, so that the scheme `upto` may take it before: of a write and of a pass. */
export function isCostKnown(
  { writes, pass, ...offer }: Offer,
  terms: Pick<Terms, 'prices'>,
): boolean {
  return (writes !== undefined || pass !== undefined) && isPlain(offer, terms)
}

/** Returns true where the cost is known without a look at what the buyer had before. A mere deposit is no charge. */
function isPlain({ operation }: Offer, { prices }: Pick<Terms, 'prices'>): boolean {
  return operation !== depositOperation && !isMetered(prices)
}
