import { limits } from '@tollbase/contract/limits'
import { type Claim, getPayerAccount } from '../claims/claim-store.ts'
import { decodeClaimTerms } from '../claims/claim-terms.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { depositOperation, type Offer } from '../purchase.ts'
import { encodePrices } from '../quotes/encode-prices.ts'
import { refuseHeld } from './held-money.ts'

/**
 * Finds why a claim whose money is free on its payer's balance buys nothing any more: its price was promised for the life
 * of a quote, and is another one today. Otherwise a payment whose answer could not be made would buy at its price for ever.
 * PAYMENT_HELD where its money is held: nobody is asked for another payment then.
 */
export async function findPromiseEnd(
  ports: Pick<PaymentPorts, 'database' | 'tenants' | 'world'>,
  offer: Offer,
  claim: Claim,
): Promise<string | undefined> {
  const ageMs = ports.world.now() - Number(claim.created_at_ms)
  if (claim.state !== 'deposited' || ageMs <= limits.quoteLifetimeSeconds * 1000) return undefined
  if (offer.operation === depositOperation) return undefined
  const { prices } = decodeClaimTerms(claim)
  if (encodePrices(prices) === encodePrices(offer.pricesNow())) return undefined
  await refuseHeld(ports, claim)
  const payer = getPayerAccount(claim).slice('wallet:'.length)
  return `The payment was refused: its price was promised for ${limits.quoteLifetimeSeconds / 60} minutes and has changed; its money is on the balance of ${payer}`
}
