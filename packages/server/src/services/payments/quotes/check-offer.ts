import { Fault } from '../../../base/fault.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Offer, Terms } from '../purchase.ts'
import { isStillQuoted } from './quoting.ts'
import { digestOffer } from './terms.ts'

/** Throws where the offer is not any more what the terms are of. */
export function checkOffer(
  { quoteSecret }: Pick<PaymentPorts, 'quoteSecret'>,
  offer: Offer,
  terms: Terms,
): void {
  const isSame = terms.meaning === digestOffer(quoteSecret, offer)
  if (!isSame || !isStillQuoted(offer, terms)) throw new Fault('OFFER_CHANGED')
}
