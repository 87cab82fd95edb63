import { limits } from '@tollbase/contract/limits'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import type { SignedPayment } from '../../../x402/protocol.ts'
import { readDefinedAt } from '../../applications/read-defined-at.ts'
import type { Offer } from '../purchase.ts'
import type { QuotePorts } from './quoting.ts'

const quoteLifeMs = limits.quoteLifetimeSeconds * 1000
/** A definition may come into force so much later than its block was made. */
const lagMs = quoteLifeMs
/** A payer's clock may be ahead by so much: it was told the price so much before the time of its signature, at most. */
const clockMs = 60_000

/**
 * Tells the payer why the price is not known that a payment without a quote was made for; undefined where it is. Many prices ask for a
 * network's smallest payment, and a payer who was told a low one is not charged another one: where memory does not
 * reach back to its signature, the price must not have changed since then. A quote by result also grows with the
 * answer, which nobody can tell afterwards.
 */
export async function describeForgottenTerms(
  { askedTerms: asked, world }: QuotePorts,
  { pricedBy, isByResult }: Offer,
  { payment, network }: { payment: SignedPayment; network: PaymentNetwork },
): Promise<string | undefined> {
  const { minimumPayment } = network
  const { quoteId = '', payload } = payment
  if (quoteId !== '' || payload.value !== minimumPayment || minimumPayment === 1n) return undefined
  const { since } = asked
  const now = world.now()
  const toldMs = findTold(payload, now)
  // A price that is told from now on is remembered: after so long the time of the signature says so.
  const leftMs = Math.min(since + quoteLifeMs - now, since - toldMs)
  if (leftMs <= 0) return undefined
  const older = pricedBy.filter(({ application }) => Date.parse(application.created_at) < since)
  const mayDiffer = isByResult === true ? older.length > 0 : await hasChanged(older, toldMs)
  if (!mayDiffer) return undefined
  return `The payment was refused: it does not say for which price it was made (quoteId), and the price, or what the answer holds, may have changed recently. Send the quote back with the payment (x402 version 2), or ask and pay again in ${Math.ceil(leftMs / 1000)} seconds`
}

/**
 * Finds the earliest time at which a payer was told the price, in milliseconds since 1970. Stock clients let a payment
 * end so long after its signature as the 402 says; one that ends later does not say when it was signed.
 */
function findTold({ validBefore }: SignedPayment['payload'], nowMs: number): number {
  const signedMs = Number(validBefore) * 1000 - quoteLifeMs
  return signedMs > nowMs ? nowMs - quoteLifeMs : signedMs - clockMs
}

/** Returns whether prices are from a definition so new that somebody may still have been told the one before. */
async function hasChanged(pricedBy: Offer['pricedBy'], toldMs: number): Promise<boolean> {
  const times = await Promise.all(pricedBy.map(readDefinedAt))
  return times.some((time = 0) => time >= toldMs - lagMs)
}
