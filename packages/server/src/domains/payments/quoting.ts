import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { RequestFacts } from '../../http/request.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import type { Payment, Requirement } from '../../x402/protocol.ts'
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
  const requirements = ports.ways.map(({ network }) =>
    requirementOf(network, newQuote(ports, offer, { catalog, network, hash }), offer.breakdown),
  )
  if (requirements.length === 0) {
    throw new Fault('PAYMENT_NETWORK_UNREACHABLE', {
      message: 'This has a price, but no payment network is configured',
    })
  }
  const url = `${ports.publicUrl()}${facts.path}`
  return paymentRequired({ url, description: offer.description, error, requirements })
}

/** The terms under which a payment was made, or why it has none. */
export function termsOfPayment(
  ports: PaymentPorts,
  offer: Offer,
  paid: { payment: Payment; network: PaymentNetwork; hash: string },
): Terms | string {
  const { payment, network, hash } = paid
  const catalogs = honoured(ports, offer)
  if (payment.quoteId !== undefined && payment.quoteId !== '') {
    const quote = readSalted(ports.quoteSecret, payment.quoteId, scopeOf(network, hash))
    if (quote === undefined) return 'The quote (quoteId) is not one for this request'
    if (quote.expiresAt * 1000 < ports.world.now()) return 'The quote (quoteId) has expired'
    // Prices that this process no longer knows: the charge is by today's, and never above the quote.
    const catalog =
      catalogs.find(({ version }) => version === quote.ruleVersion) ?? offer.tenant.data.catalog
    return { amount: quote.amount, catalog, quoteId: payment.quoteId, expiresAt: quote.expiresAt }
  }
  // Clients of version 1 do not echo the quote: their amount must be one that was asked within a quote's life.
  const { value } = payment.payload
  const catalog = value > 0n ? catalogs.find((one) => offer.capUnder(one) === value) : undefined
  if (catalog === undefined)
    return `The amount (payload.authorization.value) must be ${capNow(offer)}`
  return { amount: value, catalog, quoteId: '', expiresAt: newExpiry(ports) }
}

/** The terms that a claim was made under, whatever the prices are now. */
export function termsOfClaim(ports: PaymentPorts, offer: Offer, claim: Claim): Terms {
  const catalog = honoured(ports, offer).find(({ version }) => version === claim.rule_version)
  return {
    amount: claim.amount,
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
