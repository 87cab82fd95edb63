import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { RequestFacts } from '../../http/request.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import type { Payment, Requirement } from '../../x402/protocol.ts'
import { issueQuote, readQuote } from '../../x402/quote.ts'
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
    const scope = {
      requestHash: hash,
      network: network.id,
      asset: network.asset.address,
      payTo: network.payTo,
    }
    const quote = readQuote(ports.quoteSecret, payment.quoteId, scope)
    if (quote === undefined) return 'The quote is not one for this request'
    if (quote.expiresAt * 1000 < ports.world.now()) return 'The quote has expired'
    const catalog =
      catalogs.find(({ version }) => version === quote.ruleVersion) ?? offer.tenant.data.catalog
    return { amount: quote.amount, catalog, quoteId: payment.quoteId, expiresAt: quote.expiresAt }
  }
  // Clients of version 1 do not echo the quote: their amount must be one that was asked within a quote's life.
  const catalog = catalogs.find((one) => offer.capUnder(one) === payment.payload.value)
  if (catalog === undefined)
    return `The amount must be ${offer.capUnder(offer.tenant.data.catalog) ?? 0n}`
  return newQuote(ports, offer, { catalog, network, hash })
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

function newQuote(
  ports: PaymentPorts,
  offer: Offer,
  quoted: { catalog: Catalog; network: PaymentNetwork; hash: string },
): Terms {
  const { catalog, network, hash } = quoted
  const amount = offer.capUnder(catalog) ?? 0n
  const expiresAt = Math.floor(ports.world.now() / 1000) + limits.quoteLifetimeSeconds
  const quoteId = issueQuote(ports.quoteSecret, {
    amount,
    ruleVersion: catalog.version,
    expiresAt,
    requestHash: hash,
    network: network.id,
    asset: network.asset.address,
    payTo: network.payTo,
  })
  return { amount, catalog, quoteId, expiresAt }
}
