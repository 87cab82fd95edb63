import { bigintOf36, meaningDigest } from '../../x402/quote.ts'
import type { Claim } from './claim-store.ts'
import { applicationAccount } from './ledger-entries.ts'
import type { Offer, PartPrice, Payee } from './offer.ts'

/** What a payment is made under: an amount, the prices behind it, and what they are the prices of. */
export type Terms = {
  /** Atomic units. */
  readonly amount: bigint
  /** Of each payee, in the order of the offer. */
  readonly prices: readonly PartPrice[]
  readonly payees: readonly Payee[]
  /** Digest of what the request resolved to. */
  readonly meaning: string
  readonly quoteId: string
  /** Unix seconds. */
  readonly expiresAt: number
}

/** Names what the request resolves to now, and who is paid for it. */
export function meaningOf(secret: Uint8Array, offer: Offer): string {
  const { operation, meaning, payees } = offer
  return meaningDigest(secret, JSON.stringify([operation, meaning, payees]))
}

/**
 * Prices as a quote carries them: the parts between `_`, of each its amounts per access, row and KB and 1 where an
 * empty answer is free, between `-`, in base 36; zeros are empty, and left out at the end.
 */
export function pricesText(prices: readonly PartPrice[]): string {
  return prices.map(priceText).join('_')
}

function priceText({ perAccess, perRow, perKb, emptyFree }: PartPrice): string {
  const numbers = [perAccess, perRow, perKb, emptyFree ? 1n : 0n]
  const texts = numbers.map((number) => (number === 0n ? '' : number.toString(36)))
  return texts.join('-').replace(/-+$/, '')
}

export function readPrices(text: string): readonly PartPrice[] {
  return text.split('_').map((part) => {
    const [perAccess = '', perRow = '', perKb = '', emptyFree = ''] = part.split('-')
    return {
      perAccess: bigintOf36(perAccess),
      perRow: bigintOf36(perRow),
      perKb: bigintOf36(perKb),
      emptyFree: emptyFree !== '',
    }
  })
}

type StoredTerms = {
  readonly meaning: string
  readonly prices: string
  readonly payees: readonly Payee[]
}

/** What a claim keeps of its terms, so that it is delivered and shared out by them whatever is defined by then. */
export function termsText({ meaning, prices, payees }: Terms): string {
  const stored: StoredTerms = { meaning, prices: pricesText(prices), payees }
  return JSON.stringify(stored)
}

/** The terms that a claim was made under. */
export function termsOfClaim({ app, cap, quote_id, valid_before, terms }: Claim): Terms {
  const common = { amount: cap, quoteId: quote_id ?? '', expiresAt: Number(valid_before) }
  if (terms !== null) {
    const { meaning, prices, payees }: StoredTerms = JSON.parse(terms)
    return { ...common, meaning, payees, prices: readPrices(prices) }
  }
  // Of a claim from before they were kept: what it wrote is worth its cap, and it buys nothing new.
  const whole = { perAccess: cap, perRow: 0n, perKb: 0n, emptyFree: false }
  const payee = { account: applicationAccount(app), platformBasisPoints: 0 }
  return { ...common, meaning: '', payees: [payee], prices: [whole] }
}
