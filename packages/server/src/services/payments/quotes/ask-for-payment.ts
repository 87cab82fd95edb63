import { Fault } from '../../../base/fault.ts'
import type { HttpReply } from '../../../http/reply.ts'
import type { RequestInfo } from '../../../http/request-info.ts'
import type { ChannelOffer } from '../../../x402/channels/channel-offer.ts'
import { deriveDepositAddress } from '../../../x402/deposit-address.ts'
import type { Requirement } from '../../../x402/protocol.ts'
import type { UptoOffer } from '../../../x402/upto/upto-offer.ts'
import { isMetered } from '../meters/meter.ts'
import { depositOperation, type PaymentPorts } from '../purchase.ts'
import type { Offer } from './offer.ts'
import { makePaymentRequired } from './payment-required.ts'
import {
  formatAskedName,
  issueSalted,
  makeAskedRequirement,
  makeQuoteScope,
  makeTermsNow,
  type QuotePorts,
} from './quoting.ts'
import type { Terms } from './terms.ts'

/** Asks for a payment, on every network that is configured. No row is stored: a quote is a MAC. */
export function askForPayment(
  ports: QuotePorts,
  asked: {
    requestInfo: RequestInfo
    offer: Offer
    hash: string
    error: string
    /** Told to a payer whose books of a channel are wrong: the error goes out as it is, and this with it. */
    correction?: ChannelOffer['correction']
  },
): HttpReply {
  const { requestInfo, offer, hash, error, correction } = asked
  const now = makeTermsNow(ports, offer)
  const breakdown = offer.breakdownUnder(now.prices)
  const requirements = ports.methods.map(({ network, native }): Requirement => {
    const terms = { ...now, quoteId: issueSalted(ports, now, makeQuoteScope(network, hash)) }
    ports.asked.note(formatAskedName(network, hash), terms, ports.world.now())
    const requirement = { ...makeAskedRequirement(network, terms), costBreakdown: breakdown }
    if (native === undefined) return requirement
    return {
      ...requirement,
      depositAddress: deriveDepositAddress(ports.depositSecret, terms.quoteId),
    }
  })
  if (requirements.length === 0) {
    throw new Fault('PAYMENT_NETWORK_UNREACHABLE', {
      message: 'This has a price, but no payment network is configured',
    })
  }
  const url = `${ports.publicUrl()}${requestInfo.path}`
  const texts = correction === undefined ? requirements.flatMap(listMinimumTexts) : []
  const said = [error, ...texts].join('. ')
  const isDeposit = offer.operation === depositOperation
  const isUpto = canAnswerFirst(offer, now) || isCostKnown(offer, now)
  const offers = {
    requirements,
    uptos: isUpto ? listUptoOffers(ports, requirements) : [],
    channels: isDeposit ? [] : listChannelOffers(ports, { requirements, now, correction }),
  }
  return makePaymentRequired({ url, description: offer.description, error: said, ...offers })
}

/** Returns true where the cost is known without a look at what the buyer had before. A mere deposit is no charge. */
function isPlain({ operation }: Offer, { prices }: Pick<Terms, 'prices'>): boolean {
  return operation !== depositOperation && !isMetered(prices)
}

/**
 * Returns true where the answer may be made before its money is here, or held, as the scheme `upto` does: making it does
 * nothing else. A write is made once its money is here, and a pass is named by its payment.
 */
export function canAnswerFirst(offer: Offer, terms: Pick<Terms, 'prices'>): boolean {
  return offer.isMoneyFirst !== true && isPlain(offer, terms) && !isCostKnown(offer, terms)
}

/** Returns true where the cap is the charge, so that the scheme `upto` may take it before: of a write and of a pass. */
export function isCostKnown(
  { writes, pass, ...offer }: Offer,
  terms: Pick<Terms, 'prices'>,
): boolean {
  return (writes !== undefined || pass !== undefined) && isPlain(offer, terms)
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
    const offered = { network, amount: now.amount, quoteId, maxTimeoutSeconds, authorizer }
    return [correction === undefined ? offered : { ...offered, correction }]
  })
}

function listMinimumTexts({ network, amount, price }: Requirement): string[] {
  if (price === undefined) return []
  return [
    `The price is at most ${price} atomic units; the smallest payment on ${network.id} is ${amount}, and what is not charged stays on the payer's balance`,
  ]
}
