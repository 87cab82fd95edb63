import { limits } from '@tollbase/contract/limits'
import type { World } from '../../../base/world.ts'
import type { Budget } from '../../../model/spending-limits.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { Offer, Payee, Terms } from '../purchase.ts'
import { decodePrices, encodePrices } from '../quotes/encode-prices.ts'
import { type Claim, getPayerAccount } from './claim-store.ts'

type StoredTerms = {
  /**
   * The cap as it was quoted: that of the claim is less by what the payer has of quotas and passes. Terms from before it was kept lack
   * it.
   */
  readonly amount?: string
  readonly meaning: string
  readonly prices: string
  readonly payees: readonly Payee[]
  readonly budget?: Budget
}

/** Encodes the terms that a claim keeps, so that its delivery and shares follow them whatever is defined by then. */
export function encodeTerms({ cap, meaning, prices, payees, budget }: Terms): string {
  const stored: StoredTerms = {
    amount: String(cap),
    meaning,
    prices: encodePrices(prices),
    payees,
    ...(budget && { budget }),
  }
  return JSON.stringify(stored)
}

/** The terms that a claim was made under. */
export function decodeClaimTerms({ app, cap, quote_id, valid_before, terms }: Claim): Terms {
  const common = { cap, quoteId: quote_id ?? '', expiresAt: Number(valid_before) }
  if (terms !== null) {
    const { amount = String(cap), meaning, prices, payees, budget }: StoredTerms = JSON.parse(terms)
    const read = {
      ...common,
      cap: BigInt(amount),
      meaning,
      payees,
      prices: decodePrices(prices),
    }
    return budget === undefined ? read : { ...read, budget }
  }
  // A claim from before terms were kept: its write is worth its cap, and it buys nothing new.
  const whole = { perAccess: cap, perRow: 0n, perKb: 0n, emptyFree: false }
  const payee = { account: toApplicationAccount(app), platformBasisPoints: 0 }
  return { ...common, meaning: '', payees: [payee], prices: [whole] }
}

/**
 * Finds why a claim whose money is free on its payer's balance buys nothing any more: its price was promised for the life
 * of a quote, and is another one today. Otherwise a payment whose answer could not be made would buy at its price for ever.
 */
export function findPromiseEnd(world: World, offer: Offer, claim: Claim): string | undefined {
  const ageMs = world.now() - Number(claim.created_at_ms)
  if (claim.state !== 'deposited' || ageMs <= limits.quoteLifetimeSeconds * 1000) return undefined
  const { prices } = decodeClaimTerms(claim)
  if (encodePrices(prices) === encodePrices(offer.pricesNow())) return undefined
  const payer = getPayerAccount(claim).slice('wallet:'.length)
  return `The payment was refused: its price was promised for ${limits.quoteLifetimeSeconds / 60} minutes and has changed; its money is on the balance of ${payer}`
}
