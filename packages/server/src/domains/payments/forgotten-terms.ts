import { limits } from '@tollbase/contract/limits'
import type { PaymentNetwork } from '../../x402/networks.ts'
import type { SignedPayment } from '../../x402/protocol.ts'
import { definedAt } from '../tenancy/defined-at.ts'
import type { Offer } from './offer.ts'
import type { QuotePorts } from './quoting.ts'

const quoteLifeMs = limits.quoteLifetimeSeconds * 1000
/** A definition may come into force so much later than its block was made. */
const lagMs = quoteLifeMs

/**
 * Why the price cannot be known that a payment without a quote was made for. Many prices ask for a network's smallest
 * payment, and who was told a low one is not charged another one: where memory does not reach back for a quote's life,
 * there must have been no other one.
 */
export async function forgottenTerms(
  { asked, world }: QuotePorts,
  { pricedBy }: Offer,
  { payment, network }: { payment: SignedPayment; network: PaymentNetwork },
): Promise<string | undefined> {
  const { minimumPayment } = network
  const { quoteId = '', payload } = payment
  if (quoteId !== '' || payload.value !== minimumPayment || minimumPayment === 1n) return undefined
  const { since } = asked
  const leftMs = since + quoteLifeMs - world.now()
  if (leftMs <= 0) return undefined
  const older = pricedBy.filter(({ application }) => Date.parse(application.created_at) < since)
  const times = await Promise.all(older.map(definedAt))
  if (times.every((time = 0) => time < world.now() - quoteLifeMs - lagMs)) return undefined
  return `The payment was refused: it does not say for which price it was made (quoteId), and there may have been another one lately; repeat the quote (x402 version 2), or pay in ${Math.ceil(leftMs / 1000)} seconds`
}
