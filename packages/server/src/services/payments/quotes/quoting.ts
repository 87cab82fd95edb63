import { limits } from '@tollbase/contract/limits'
import { chooseLarger } from '../../../base/bigint.ts'
import { Fault, makeInvalidFault } from '../../../base/fault.ts'
import { formatUnits } from '../../../base/format-usd.ts'
import { HttpReply } from '../../../http/reply.ts'
import type { RequestInfo } from '../../../http/request-info.ts'
import type { ChannelOffer } from '../../../x402/channels/channel-offer.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import { deriveDepositAddress } from '../../../x402/deposit-address.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { buildPaymentRequired } from '../../../x402/payment-required.ts'
import type { NativePayment, Requirement, SignedPayment } from '../../../x402/protocol.ts'
import {
  issueQuote,
  type Quote,
  type QuoteScope,
  quoteTermsCharsMax,
  readQuote,
} from '../../../x402/quote.ts'
import type { UptoOffer } from '../../../x402/upto/upto-offer.ts'
import { makeSignInOffer } from '../budgets/sign-in.ts'
import { type DirectPayee, type DirectPayees, toDirectNetwork } from '../direct/direct-payees.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import {
  canAnswerFirst,
  computeCap,
  depositOperation,
  digestOffer,
  isCostKnown,
  isFreeNow,
  isStillQuoted,
  type Offer,
  type Terms,
} from '../purchase.ts'
import type { AskedTerms } from './asked-terms.ts'
import { decodePrices, encodePrices } from './encode-prices.ts'

/** The ports that quotes are made with, and the memory of the terms that were asked. */
export type QuotePorts = PaymentPorts & { readonly askedTerms: AskedTerms }

/**
 * Answers 402: asks for the cap of an offer, on every network that is configured, in the form of both versions of x402.
 * No row is stored, because a quote is a MAC; this process's memory notes the terms for clients that send no quote back.
 */
export async function askForPayment(
  ports: QuotePorts & { readonly payees: DirectPayees },
  asked: {
    requestInfo: RequestInfo
    offer: Offer
    hash: string
    error: string
    /** Told to a payer whose books of a channel are wrong: the error goes out as it is, and this with it. */
    correction?: ChannelOffer['correction']
  },
): Promise<HttpReply> {
  const { requestInfo, offer, hash, error, correction } = asked
  const now = makeTermsNow(ports, offer)
  const breakdown = offer.breakdownUnder(now.prices)
  const issue = (network: PaymentNetwork) => {
    const terms = { ...now, quoteId: issueSalted(ports, now, makeQuoteScope(network, hash)) }
    ports.askedTerms.note(formatAskedName(network, hash), terms, ports.world.now())
    return { ...makeAskedRequirement(network, terms), costBreakdown: breakdown }
  }
  const requirements = ports.methods.map(({ network, native }): Requirement => {
    const requirement = issue(network)
    if (native === undefined) return requirement
    return {
      ...requirement,
      depositAddress: deriveDepositAddress(ports.depositSecret, requirement.quoteId),
    }
  })
  if (requirements.length === 0) {
    throw new Fault('PAYMENT_NETWORK_UNREACHABLE', {
      message: 'This has a price, but no payment network is configured',
    })
  }
  const texts = correction === undefined ? requirements.flatMap(listMinimumTexts) : []
  const said = [error, ...texts].join('. ')
  const payee = await ports.payees.find(offer, now)
  const direct = requirements.flatMap(({ network }): Requirement[] => {
    if (payee === undefined || !canBePaid(network, payee, now)) return []
    const requirement = issue(toDirectNetwork(network, payee.address))
    ports.payees.reserve(requirement.quoteId, payee)
    return [requirement]
  })
  const isDeposit = offer.operation === depositOperation
  const isUpto = canAnswerFirst(offer) || isCostKnown(offer, now)
  const offers = {
    // Stock clients take the first one that their wallet can pay.
    requirements: [...direct, ...requirements],
    uptos: isUpto ? listUptoOffers(ports, requirements) : [],
    channels: isDeposit ? [] : listChannelOffers(ports, { requirements, now, correction }),
    ...(offer.onlyByPayment !== true && {
      extensions: makeSignInOffer(ports, { hash, path: requestInfo.path, most: now.cap }),
    }),
  }
  const url = `${ports.publicUrl()}${requestInfo.path}`
  const resource = { url, description: offer.description, mimeType: 'application/json' }
  const { body, header } = buildPaymentRequired({ resource, error: said, ...offers })
  return new HttpReply(JSON.stringify(body), {
    status: 402,
    headers: { 'payment-required': header },
  })
}

/** A wallet takes no less than the network's smallest payment, and is neither ours nor the token. */
function canBePaid(
  { minimumPayment, payTo, asset }: PaymentNetwork,
  { address }: DirectPayee,
  { cap }: Terms,
): boolean {
  return cap >= minimumPayment && address !== payTo && address !== asset.address
}

function listUptoOffers(
  { methods }: PaymentPorts,
  requirements: readonly Requirement[],
): UptoOffer[] {
  return requirements.flatMap(({ network, amount, quoteId, maxTimeoutSeconds }) => {
    const upto = methods.find((one) => one.network.id === network.id)?.upto
    if (upto === undefined) return []
    return [{ network, amount, quoteId, maxTimeoutSeconds, facilitator: upto.address }]
  })
}

function listChannelOffers(
  { methods }: PaymentPorts,
  asked: {
    requirements: readonly Requirement[]
    now: Terms
    correction: ChannelOffer['correction']
  },
): ChannelOffer[] {
  const { requirements, now, correction } = asked
  return requirements.flatMap(({ network, quoteId, maxTimeoutSeconds }) => {
    const escrow = methods.find((one) => one.network.id === network.id)?.escrow
    if (escrow === undefined) return []
    const { authorizer } = escrow
    const offered = { network, amount: now.cap, quoteId, maxTimeoutSeconds, authorizer }
    return [correction === undefined ? offered : { ...offered, correction }]
  })
}

function listMinimumTexts({ network, amount, price }: Requirement): string[] {
  if (price === undefined) return []
  return [
    `The price is at most ${formatUnits(price)}; the smallest payment on ${network.id} is ${amount}, and what is not charged stays on the payer's balance`,
  ]
}

/** Makes today's terms, for a quote that is yet to be issued. */
export function makeTermsNow(ports: PaymentPorts, offer: Offer): Terms {
  const prices = offer.pricesNow()
  if (encodePrices(prices).length > quoteTermsCharsMax)
    throw makeInvalidFault('', 'has more sources with prices of their own than one quote can have')
  return {
    cap: computeCap(offer),
    prices,
    payees: offer.payees,
    meaning: digestOffer(ports.quoteSecret, offer),
    quoteId: '',
    expiresAt: Math.floor(ports.world.now() / 1000) + limits.quoteLifetimeSeconds,
  }
}

/** Computes the payment that is asked for a price: at least the network's smallest payment. */
export function computePayment({ minimumPayment }: PaymentNetwork, price: bigint): bigint {
  return chooseLarger(price, minimumPayment)
}

/** Makes the requirement that a payment under these terms must meet. */
export function makeAskedRequirement(network: PaymentNetwork, terms: Terms): Requirement {
  const { cap } = terms
  const amount = computePayment(network, cap)
  const requirement = makeRequirement(network, { ...terms, amount })
  return amount === cap ? requirement : { ...requirement, price: cap }
}

export function makeRequirement(
  network: PaymentNetwork,
  due: Pick<Requirement, 'amount' | 'quoteId' | 'expiresAt'>,
): Requirement {
  return {
    network,
    amount: due.amount,
    quoteId: due.quoteId,
    expiresAt: due.expiresAt,
    maxTimeoutSeconds: limits.quoteLifetimeSeconds,
  }
}

/** Names a request on a network, and the address that it was asked to pay to. */
export function formatAskedName({ id, payTo }: PaymentNetwork, hash: string): string {
  return `${id} ${payTo} ${hash}`
}

function makeQuoteScope(network: PaymentNetwork, requestHash: string): QuoteScope {
  const { id, asset, payTo } = network
  return { requestHash, network: id, asset: asset.address, payTo }
}

const saltBytes = 12
const salted = /^(.+)\.([A-Za-z0-9_-]{16})$/

/**
 * Issues a quote that nobody else can have: <quote>.<salt>, the salt bound by the quote's MAC. Two buyers of the
 * same offer get different quotes, so a payment seen on the chain cannot be repeated with the quote it was made
 * under.
 */
function issueSalted(ports: PaymentPorts, terms: Terms, scope: QuoteScope): string {
  const { cap, expiresAt, meaning, prices } = terms
  const salt = ports.world.randomBytes(saltBytes).toString('base64url')
  const quote = { cap, expiresAt, meaning, terms: encodePrices(prices) }
  const requestHash = `${scope.requestHash}.${salt}`
  return `${issueQuote(ports.quoteSecret, { ...quote, ...scope, requestHash })}.${salt}`
}

/**
 * Resolves the terms of a payment by a channel: those of its quote where that is for this request, or else those of
 * now, which its amount must cover; a string says why it has none.
 */
export function resolveChannelTerms(
  ports: QuotePorts,
  offer: Offer,
  paid: { payment: ChannelPayment; network: PaymentNetwork; hash: string },
): Terms | string {
  const { payment, network, hash } = paid
  const { quoteId, accepted } = payment
  const quote = findQuote(ports, { quoteId, network, hash })
  const isAlive = quote !== undefined && quote.expiresAt * 1000 >= ports.world.now()
  const quoted = isAlive ? findQuotedTerms(ports, offer, { quote, quoteId }) : undefined
  const now = makeTermsNow(ports, offer)
  if (quoted !== undefined && accepted.amount >= quoted.cap) return quoted
  if (accepted.amount >= now.cap) return now
  return `The amount (accepted.amount) must be ${now.cap} or more`
}

/** Resolves the terms under which a payment was signed; a string says why it has none. */
export function resolvePaymentTerms(
  ports: QuotePorts,
  offer: Offer,
  paid: {
    payment: SignedPayment
    /** With the address that the payment was asked for. */
    network: PaymentNetwork
    hash: string
    /** It is a direct payment: only a 402 tells of its seller's wallet. */
    isDirect?: true
  },
): Terms | string {
  const { payment, network, hash } = paid
  const { quoteId } = payment
  if (quoteId !== undefined && quoteId !== '') {
    const quote = findQuote(ports, { quoteId, network, hash })
    if (quote === undefined) return 'The quote (quoteId) is not one for this request'
    if (quote.expiresAt * 1000 < ports.world.now()) return 'The quote (quoteId) has expired'
    return (
      findQuotedTerms(ports, offer, { quote, quoteId }) ?? `The payment was refused: ${changed}`
    )
  }
  // Clients of version 1 do not echo the quote: their amount must be one that was asked within a quote's life.
  const { value } = payment.payload
  const terms = lowestAsking(network, listHonouredTerms(ports, offer, paid), value)
  if (terms !== undefined) return terms
  return `The amount (payload.authorization.value) must be ${computePayment(network, computeCap(offer))}`
}

/** Several prices may ask for the same smallest payment; a buyer that was told the lowest is not charged more. */
function lowestAsking(
  network: PaymentNetwork,
  terms: readonly Terms[],
  payment: bigint,
): Terms | undefined {
  const [lowest] = terms
    .filter(({ cap }) => computePayment(network, cap) === payment)
    .toSorted((a, b) => Number(a.cap - b.cap))
  return lowest
}

/**
 * Resolves the terms under which a transfer was made; a string says why it has none: it came too late, or is too
 * little.
 */
export function resolveTransferTerms(
  ports: QuotePorts,
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
  const least = (cap: bigint) => computePayment(network, cap)
  if (quoteId === undefined) {
    // A transfer does not say which price its payer was told, so it counts for the highest price that it covers.
    const paid = ({ cap }: Terms) => least(cap) <= value
    const all = listHonouredTerms(ports, offer, { network, hash }).filter(paid)
    const most = all.map(({ cap }) => least(cap)).reduce(chooseLarger, 0n)
    return lowestAsking(network, all, most) ?? describeTooLittle(value, least(computeCap(offer)))
  }
  const quote = findQuote(ports, { quoteId, network, hash })
  if (quote === undefined) return 'the quote (quoteId) is not one for this request'
  if (blockTime > BigInt(quote.expiresAt)) {
    return 'its transfer came after the quote (quoteId) had expired'
  }
  if (value < least(quote.cap)) return describeTooLittle(value, least(quote.cap))
  return findQuotedTerms(ports, offer, { quote, quoteId }) ?? changed
}

function describeTooLittle(value: bigint, asked: bigint): string {
  return `its value, ${value}, is less than the price, ${asked}`
}

const changed = 'what the request names has changed since the quote (quoteId)'

/** Reads the quote; undefined where it is not ours for this request on this network. */
export function findQuote(
  { quoteSecret }: Pick<PaymentPorts, 'quoteSecret'>,
  quoted: { quoteId: string; network: PaymentNetwork; hash: string },
): Quote | undefined {
  const { quoteId, network, hash } = quoted
  return readSalted(quoteSecret, quoteId, makeQuoteScope(network, hash))
}

/** The quote's own prices; undefined where the request resolves to something else than it did then. */
function findQuotedTerms(
  { quoteSecret }: PaymentPorts,
  offer: Offer,
  { quote, quoteId }: { quote: Quote; quoteId: string },
): Terms | undefined {
  const { cap, expiresAt, meaning, terms } = quote
  if (meaning !== digestOffer(quoteSecret, offer)) return undefined
  const { payees } = offer
  const prices = decodePrices(terms)
  if (!isStillQuoted(offer, { prices, cap })) return undefined
  return { cap, prices, payees, meaning, quoteId, expiresAt }
}

/**
 * Lists the terms that a payment without a quote may have been made under: those of today, and those that were
 * asked within a quote's life for the same.
 */
function listHonouredTerms(
  ports: QuotePorts,
  offer: Offer,
  { network, hash, isDirect }: { network: PaymentNetwork; hash: string; isDirect?: true },
): readonly Terms[] {
  const meaning = digestOffer(ports.quoteSecret, offer)
  const asked = ports.askedTerms.list(formatAskedName(network, hash), ports.world.now())
  const before = asked.filter((one) => one.meaning === meaning && isStillQuoted(offer, one))
  // Only a 402 tells of a seller's wallet, and nobody is asked for what is free.
  const today = isDirect === true || isFreeNow(offer) ? [] : listTodaysTerms(ports, offer)
  return [...today, ...before].map((one) => ({ ...one, quoteId: '' }))
}

/** Lists today's terms; none where the offer cannot be bought today. */
function listTodaysTerms(ports: PaymentPorts, offer: Offer): readonly Terms[] {
  try {
    return [makeTermsNow(ports, offer)]
  } catch (error) {
    if (error instanceof Fault) return []
    throw error
  }
}

function readSalted(secret: Uint8Array, quoteId: string, scope: QuoteScope): Quote | undefined {
  const [, quote = '', salt = ''] = salted.exec(quoteId) ?? []
  return readQuote(secret, quote, { ...scope, requestHash: `${scope.requestHash}.${salt}` })
}
