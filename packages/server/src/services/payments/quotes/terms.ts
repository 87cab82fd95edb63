import type { Budget } from '../../../model/spending-limits.ts'
import { digestMeaning, parseBase36 } from '../../../x402/quote.ts'
import type { Claim } from '../claims/claim-store.ts'
import { toApplicationAccount } from '../ledger-entries.ts'
import type { Offer, PartPrice, Payee } from './offer.ts'

/** The terms of a payment: an amount, the prices behind it, and the offer's meaning. */
export type Terms = {
  /** Atomic units. */
  readonly amount: bigint
  /** The price of each payee's part, in the order of the offer. */
  readonly prices: readonly PartPrice[]
  readonly payees: readonly Payee[]
  /** Digest of what the request resolved to. */
  readonly meaning: string
  readonly quoteId: string
  /** The budget that it is spent under, and the day in UTC that it counts on, where a key pays. */
  readonly budget?: Budget
  /** Unix seconds. */
  readonly expiresAt: number
}

/** Digests what the request resolves to now, and its payees. */
export function digestOffer(secret: Uint8Array, offer: Offer): string {
  const { operation, meaning, payees } = offer
  return digestMeaning(secret, JSON.stringify([operation, meaning, payees]))
}

/**
 * Encodes prices for a quote: the parts between `_`, each with its amounts per access, row and KB, 1 where an empty
 * answer is free, and its minimum and maximum, between `-`, in base 36; zeros are empty, and left out at the end.
 */
export function encodePrices(prices: readonly PartPrice[]): string {
  return prices.map(encodePrice).join('_')
}

function encodePrice({ minimum = 0n, maximum = 0n, ...price }: PartPrice): string {
  const { perAccess, perRow, perKb, emptyFree } = price
  const numbers = [perAccess, perRow, perKb, emptyFree ? 1n : 0n, minimum, maximum]
  const texts = numbers.map((number) => (number === 0n ? '' : number.toString(36)))
  return texts.join('-').replace(/-+$/, '')
}

export function decodePrices(text: string): readonly PartPrice[] {
  return text.split('_').map((part) => {
    const [perAccess = '', perRow = '', perKb = '', emptyFree = '', ...bounds] = part.split('-')
    const [minimum = '', maximum = ''] = bounds
    return {
      perAccess: parseBase36(perAccess),
      perRow: parseBase36(perRow),
      perKb: parseBase36(perKb),
      emptyFree: emptyFree !== '',
      ...(minimum !== '' && { minimum: parseBase36(minimum) }),
      ...(maximum !== '' && { maximum: parseBase36(maximum) }),
    }
  })
}

type StoredTerms = {
  readonly meaning: string
  readonly prices: string
  readonly payees: readonly Payee[]
  readonly budget?: Budget
}

/** Encodes the terms that a claim keeps, so that its delivery and shares follow them whatever is defined by then. */
export function encodeTerms({ meaning, prices, payees, budget }: Terms): string {
  const stored: StoredTerms = {
    meaning,
    prices: encodePrices(prices),
    payees,
    ...(budget && { budget }),
  }
  return JSON.stringify(stored)
}

/** The terms that a claim was made under. */
export function decodeClaimTerms({ app, cap, quote_id, valid_before, terms }: Claim): Terms {
  const common = { amount: cap, quoteId: quote_id ?? '', expiresAt: Number(valid_before) }
  if (terms !== null) {
    const { meaning, prices, payees, budget }: StoredTerms = JSON.parse(terms)
    const read = { ...common, meaning, payees, prices: decodePrices(prices) }
    return budget === undefined ? read : { ...read, budget }
  }
  // A claim from before terms were kept: its write is worth its cap, and it buys nothing new.
  const whole = { perAccess: cap, perRow: 0n, perKb: 0n, emptyFree: false }
  const payee = { account: toApplicationAccount(app), platformBasisPoints: 0 }
  return { ...common, meaning: '', payees: [payee], prices: [whole] }
}
