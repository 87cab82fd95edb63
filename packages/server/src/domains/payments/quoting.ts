import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { RequestFacts } from '../../http/request.ts'
import { depositAddress } from '../../x402/deposit-address.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import type { NativePayment, Requirement, SignedPayment } from '../../x402/protocol.ts'
import { issueQuote, type Quote, type QuoteScope, readQuote } from '../../x402/quote.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import type { Claim } from './claim-store.ts'
import type { Offer } from './offer.ts'
import { paymentRequired } from './payment-required.ts'
import type { PaymentPorts } from './purchase.ts'

/** What a quote promises: an amount, and the prices behind it. */
export type Terms = {
  readonly amount: bigint
  readonly catalog: Catalog
  readonly quoteId: string
  /** Unix seconds. */
  readonly expiresAt: number
}

/** What the request costs at most by today's prices; 0 where it costs nothing. 400 where it cannot be bought. */
export function capNow(offer: Offer): bigint {
  return capUnder(offer, offer.tenant.data.catalog)
}

/** Asks for a payment, on every network that is configured. Nothing is stored: a quote is a MAC. */
export function askForPayment(
  ports: PaymentPorts,
  asked: { facts: RequestFacts; offer: Offer; hash: string; error: string },
): HttpReply {
  const { facts, offer, hash, error } = asked
  const { catalog } = offer.tenant.data
  const requirements = ports.ways.map(({ network, native }): Requirement => {
    const quote = newQuote(ports, offer, { catalog, network, hash })
    const requirement = requirementOf(network, quote, offer.breakdown)
    if (native === undefined) return requirement
    return { ...requirement, depositAddress: depositAddress(ports.depositSecret, quote.quoteId) }
  })
  if (requirements.length === 0) {
    throw new Fault('PAYMENT_NETWORK_UNREACHABLE', {
      message: 'This has a price, but no payment network is configured',
    })
  }
  const url = `${ports.publicUrl()}${facts.path}`
  return paymentRequired({ url, description: offer.description, error, requirements })
}

/** The terms under which a payment was signed, or why it has none. */
export function termsOfPayment(
  ports: PaymentPorts,
  offer: Offer,
  paid: { payment: SignedPayment; network: PaymentNetwork; hash: string },
): Terms | string {
  const { payment, network, hash } = paid
  const { quoteId } = payment
  if (quoteId !== undefined && quoteId !== '') {
    const terms = quotedTerms(ports, offer, { quoteId, network, hash })
    if (terms === undefined) return 'The quote (quoteId) is not one for this request'
    if (terms.expiresAt * 1000 < ports.world.now()) return 'The quote (quoteId) has expired'
    return terms
  }
  // Clients of version 1 do not echo the quote: their amount must be one that was asked within a quote's life.
  const { value } = payment.payload
  const catalog =
    value > 0n ? honoured(ports, offer).find((one) => offer.capUnder(one) === value) : undefined
  if (catalog === undefined)
    return `The amount (payload.authorization.value) must be ${capNow(offer)}`
  return { amount: value, catalog, quoteId: '', expiresAt: newExpiry(ports) }
}

/** The terms under which a transfer was made, or why it has none: it came too late, or is too little. */
export function termsOfTransfer(
  ports: PaymentPorts,
  offer: Offer,
  paid: { payment: NativePayment; network: PaymentNetwork; hash: string },
): Terms | string {
  const { payment, network, hash } = paid
  const { quoteId, payload } = payment
  const { value, blockTime } = payload
  const ageSeconds = Math.floor(ports.world.now() / 1000) - Number(blockTime)
  if (ageSeconds > limits.nativeProofSeconds) {
    return `its transfer is older than ${limits.nativeProofSeconds / 3600} hours (txHash)`
  }
  const terms =
    quoteId === undefined
      ? affordableTerms(ports, offer, value)
      : quotedTerms(ports, offer, { quoteId, network, hash })
  if (terms === undefined) return 'the quote (quoteId) is not one for this request'
  if (blockTime > BigInt(terms.expiresAt)) {
    return 'its transfer came after the quote (quoteId) had expired'
  }
  if (value < terms.amount) return `its value, ${value}, is less than the price, ${terms.amount}`
  return terms
}

/** What the quote promises for this request on this network; undefined where it is not ours for it. */
export function quotedTerms(
  ports: PaymentPorts,
  offer: Offer,
  quoted: { quoteId: string; network: PaymentNetwork; hash: string },
): Terms | undefined {
  const { quoteId, network, hash } = quoted
  const quote = readSalted(ports.quoteSecret, quoteId, scopeOf(network, hash))
  if (quote === undefined) return undefined
  // Prices that this process no longer knows: the charge is by today's, and never above the quote.
  const catalog = honoured(ports, offer).find(({ version }) => version === quote.ruleVersion)
  const { amount, expiresAt } = quote
  return { amount, catalog: catalog ?? offer.tenant.data.catalog, quoteId, expiresAt }
}

/** By today's prices, or by others that are still honoured where only they are within the value. */
function affordableTerms(ports: PaymentPorts, offer: Offer, value: bigint): Terms {
  const today: Terms = {
    amount: capNow(offer),
    catalog: offer.tenant.data.catalog,
    quoteId: '',
    expiresAt: newExpiry(ports),
  }
  if (today.amount <= value) return today
  for (const catalog of honoured(ports, offer)) {
    const amount = offer.capUnder(catalog)
    if (amount !== undefined && amount > 0n && amount <= value) return { ...today, amount, catalog }
  }
  return today
}

/** The terms that a claim was made under, whatever the prices are now. */
export function termsOfClaim(ports: PaymentPorts, offer: Offer, claim: Claim): Terms {
  const catalog = honoured(ports, offer).find(({ version }) => version === claim.rule_version)
  return {
    amount: claim.cap,
    catalog: catalog ?? offer.tenant.data.catalog,
    quoteId: claim.quote_id ?? '',
    expiresAt: Number(claim.valid_before),
  }
}

export function requirementOf(
  network: PaymentNetwork,
  terms: Pick<Terms, 'amount' | 'quoteId' | 'expiresAt'>,
  costBreakdown?: Readonly<Record<string, number>>,
): Requirement {
  return {
    network,
    amount: terms.amount,
    quoteId: terms.quoteId,
    expiresAt: terms.expiresAt,
    maxTimeoutSeconds: limits.quoteLifetimeSeconds,
    ...(costBreakdown && { costBreakdown }),
  }
}

function honoured(ports: PaymentPorts, offer: Offer): Catalog[] {
  return [offer.tenant.data.catalog, ...offer.tenant.prices.honoured(ports.world.now())]
}

function capUnder(offer: Offer, catalog: Catalog): bigint {
  const cap = offer.capUnder(catalog)
  if (cap === undefined) throw invalid('', 'asks for more than can be quoted; give a limit')
  if (cap > limits.amountAtomicMax) {
    throw invalid(
      '',
      `would cost up to ${cap} atomic units, more than the ${limits.amountAtomicMax} that one payment may have; ask for less`,
    )
  }
  return cap
}

function newQuote(
  ports: PaymentPorts,
  offer: Offer,
  quoted: { catalog: Catalog; network: PaymentNetwork; hash: string },
): Terms {
  const { catalog, network, hash } = quoted
  const amount = capUnder(offer, catalog)
  const expiresAt = newExpiry(ports)
  const quote = { amount, ruleVersion: catalog.version, expiresAt }
  return { amount, catalog, quoteId: issueSalted(ports, quote, scopeOf(network, hash)), expiresAt }
}

/** Unix seconds. */
function newExpiry(ports: PaymentPorts): number {
  return Math.floor(ports.world.now() / 1000) + limits.quoteLifetimeSeconds
}

function scopeOf(network: PaymentNetwork, requestHash: string): QuoteScope {
  const { id, asset, payTo } = network
  return { requestHash, network: id, asset: asset.address, payTo }
}

const saltBytes = 12
const salted = /^(.+)\.([A-Za-z0-9_-]{16})$/

/**
 * A quote that nobody else can have: <quote>.<salt>, the salt bound by the quote's MAC. Two buyers of the same thing
 * get different quotes, so who sees a payment on the chain cannot repeat it with the quote it was made under.
 */
function issueSalted(ports: PaymentPorts, quote: Quote, scope: QuoteScope): string {
  const salt = ports.world.randomBytes(saltBytes).toString('base64url')
  const requestHash = `${scope.requestHash}.${salt}`
  return `${issueQuote(ports.quoteSecret, { ...quote, ...scope, requestHash })}.${salt}`
}

function readSalted(secret: Uint8Array, quoteId: string, scope: QuoteScope): Quote | undefined {
  const [, quote = '', salt = ''] = salted.exec(quoteId) ?? []
  return readQuote(secret, quote, { ...scope, requestHash: `${scope.requestHash}.${salt}` })
}
