import type { Budget } from '../../../model/spending-limits.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { Payee, Terms } from '../purchase.ts'
import { decodePrices, encodePrices } from '../quotes/encode-prices.ts'
import type { Claim } from './claim-store.ts'

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
